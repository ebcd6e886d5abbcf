// Where the random numbers of a sample are: the key is the seed, and half of the counter the number of the sample.

/** Seed and sample number as words. */
export interface Address {
  readonly seedLow: number;
  readonly seedHigh: number;
  readonly drawLow: number;
  readonly drawHigh: number;
}

/** Sample numbers are whole numbers that a double holds exactly. */
export const LARGEST_SAMPLE = Number.MAX_SAFE_INTEGER;
export const LARGEST_SEED = (1n << 64n) - 1n;

/** The words of a seed and of the number of a sample. */
export function address(seed: bigint, sample: number): Address {
  return {
    seedLow: Number(seed & 0xffffffffn) | 0,
    seedHigh: Number((seed >> 32n) & 0xffffffffn) | 0,
    drawLow: sample | 0,
    drawHigh: Math.floor(sample / 2 ** 32) | 0,
  };
}
