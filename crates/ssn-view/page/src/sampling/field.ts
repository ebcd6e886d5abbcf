// The parameters of some of the voxels, gathered and in single precision: those of a slice, or of a block of a volume.

import { type Distribution, widen, widenAt } from "./distribution";

/** The parameters of `m` voxels. Arrays are as large as needed or larger; rows have `m` entries. */
export interface Field {
  m: number;
  /** `[m]`: places among the voxels of the distribution. */
  positions: Uint32Array;
  /** `[m]`, ascending: places in the region, by which noise is addressed. */
  indices: Uint32Array;
  /** `[c, m]`. */
  mean: Float32Array;
  /** `[c, m]`: √D. */
  deviation: Float32Array;
  /** `[r, c, m]`. */
  factor: Float32Array;
}

/** Room for `m` voxels. */
function room(distribution: Distribution, m: number): Field {
  const { c, r } = distribution;
  return {
    m,
    positions: new Uint32Array(m),
    indices: new Uint32Array(m),
    mean: new Float32Array(c * m),
    deviation: new Float32Array(distribution.diagonal ? c * m : 0),
    factor: new Float32Array(distribution.factor ? r * c * m : 0),
  };
}

/** The voxels at ascending `positions`. */
export function fieldAt(distribution: Distribution, positions: Uint32Array): Field {
  const field = room(distribution, positions.length);
  const { c, r, n, mean, diagonal, factor } = distribution;
  const m = field.m;
  field.positions.set(positions);
  for (let i = 0; i < m; i++) {
    field.indices[i] = distribution.indices ? distribution.indices[positions[i]] : positions[i];
  }
  for (let k = 0; k < c; k++) {
    widenAt(mean, k * n, positions, m, field.mean, k * m);
    if (diagonal) widenAt(diagonal, k * n, positions, m, field.deviation, k * m);
  }
  if (factor) for (let row = 0; row < r * c; row++) widenAt(factor, row * n, positions, m, field.factor, row * m);
  roots(field.deviation);
  return field;
}

/** The voxels from `start` to `end`. */
export function fieldOfRange(distribution: Distribution, start: number, end: number): Field {
  const m = end - start;
  const field = room(distribution, m);
  const { c, r, n, mean, diagonal, factor } = distribution;
  for (let i = 0; i < m; i++) {
    field.positions[i] = start + i;
    field.indices[i] = distribution.indices ? distribution.indices[start + i] : start + i;
  }
  for (let k = 0; k < c; k++) {
    widen(mean, k * n + start, m, field.mean, k * m);
    if (diagonal) widen(diagonal, k * n + start, m, field.deviation, k * m);
  }
  if (factor) for (let row = 0; row < r * c; row++) widen(factor, row * n + start, m, field.factor, row * m);
  roots(field.deviation);
  return field;
}

function roots(variances: Float32Array): void {
  for (let i = 0; i < variances.length; i++) variances[i] = Math.sqrt(variances[i]);
}
