// Which voxels quantile contours hold.

/** Levels of the contours, with the width of their lines and their dashes. */
export const LEVELS: readonly (readonly [number, number, readonly number[]])[] = [[0.1, 1, [2, 3]], [0.5, 1.75, []], [0.9, 2.75, []]];

/**
 * Whether a share of samples in single precision is at least a level. The level is rounded as the share was: 9 of 10 samples
 * are then 0.9, and other shares, at least a tenth of a sample away, stay on their side.
 */
export function atLeast(share: number, level: number): boolean {
  return share >= Math.fround(level);
}
