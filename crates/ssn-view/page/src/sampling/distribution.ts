// The distribution of a case as its package holds it: parameters of the voxels that are kept, in the file's precision.

/** What a network gives: a distribution, logits alone, or samples that it drew itself. */
export type Kind = "stochastic" | "deterministic" | "sampled";

/** Numbers in single or half precision. */
export type Numbers = Float32Array | Uint16Array;

/** `n` voxels are kept, with `c` logits each; the factor has `r` columns. */
export interface Distribution {
  readonly kind: Kind;
  readonly c: number;
  readonly r: number;
  readonly n: number;
  /** `[n]`, ascending: where the voxels are in the region; null where all are kept. */
  readonly indices: Uint32Array | null;
  /** `[c, n]`. */
  readonly mean: Numbers;
  /** `[c, n]`, variances; null without noise. */
  readonly diagonal: Numbers | null;
  /** `[r, c, n]`. */
  readonly factor: Numbers | null;
  /** `[m, n]`, the labels of `stored` samples of a network that draws them itself. */
  readonly samples: Uint8Array | null;
  readonly stored: number;
}

/** How many labels there are: one per class, and two where a single one is off or on. */
export function labelCount(distribution: Distribution): number {
  return Math.max(distribution.c, 2);
}

let table: Float32Array | null = null;

/** The value of every pattern of 16 bits in half precision. */
function halves(): Float32Array {
  if (table) return table;
  table = new Float32Array(1 << 16);
  for (let word = 0; word < 1 << 16; word++) {
    const exponent = (word >> 10) & 31;
    const fraction = word & 1023;
    const size = exponent === 0 ? fraction * 2 ** -24
      : exponent === 31 ? (fraction === 0 ? Infinity : NaN)
      : (1024 + fraction) * 2 ** (exponent - 25);
    table[word] = word >> 15 ? -size : size;
  }
  return table;
}

/** Copies `count` numbers from `start` on, in single precision. */
export function widen(numbers: Numbers, start: number, count: number, out: Float32Array, to: number): void {
  if (numbers instanceof Float32Array) {
    out.set(numbers.subarray(start, start + count), to);
    return;
  }
  const value = halves();
  for (let i = 0; i < count; i++) out[to + i] = value[numbers[start + i]];
}

/** Copies the numbers at `start` plus each of the first `count` positions, in single precision. */
export function widenAt(
  numbers: Numbers, start: number, positions: Uint32Array, count: number, out: Float32Array, to: number,
): void {
  if (numbers instanceof Float32Array) {
    for (let i = 0; i < count; i++) out[to + i] = numbers[start + positions[i]];
    return;
  }
  const value = halves();
  for (let i = 0; i < count; i++) out[to + i] = value[numbers[start + positions[i]]];
}

/** One of the numbers. */
export function valueAt(numbers: Numbers, at: number): number {
  return numbers instanceof Float32Array ? numbers[at] : halves()[numbers[at]];
}
