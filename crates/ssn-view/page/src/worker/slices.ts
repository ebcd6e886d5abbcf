// Samples of slices: what a slice needs is gathered once and kept for a while, so that a control that moves only redoes
// what it changes.

import { type Plane, cut, strides } from "../geometry";
import type { Settings } from "../messages";
import type { Case } from "../package";
import { type Distribution, labelCount, valueAt } from "../sampling/distribution";
import { type Drawer, drawer } from "../sampling/draw";
import { type Field, fieldAt } from "../sampling/field";
import type { Places } from "./places";

/** The kept voxels of a slice. */
interface Slice {
  readonly field: Field;
  /** Where they are in the slice, and which of the field each pixel shows. */
  readonly pixels: Uint32Array;
  readonly sources: Uint32Array;
  /** The prediction of the whole slice. */
  readonly prediction: Uint8Array;
  /** For each user of the slice, with the noise that it used last. */
  readonly drawers: Map<string, Drawer>;
  readonly labels: Uint8Array;
}

/** Slices that are kept: three planes, and some that were just left. */
const KEPT = 6;

export class Slices {
  private readonly slices = new Map<string, Slice>();
  private readonly distribution: Distribution;

  constructor(private readonly subject: Case, private readonly places: Places) {
    this.distribution = subject.distribution;
  }

  private slice(plane: Plane): Slice {
    const key = `${plane.axis} ${plane.index}`;
    let slice = this.slices.get(key);
    if (slice) {
      this.slices.delete(key);
    } else {
      const { size } = this.places;
      const entries = this.places.inPlane(plane.axis, plane.index);
      const { start, row, column, rows, columns } = strides(size, plane);
      const pixels = new Uint32Array(entries.length);
      for (let i = 0; i < entries.length; i++) {
        const index = this.places.where[entries[i]] - start;
        const y = Math.floor(index / row);
        pixels[i] = y * columns + (index - y * row) / column;
      }
      const { positions, sources } = distinct(entries.map((entry) => this.places.source[entry]));
      slice = {
        field: fieldAt(this.distribution, positions),
        pixels,
        sources,
        prediction: cut(this.subject.prediction, 0, size, plane, new Uint8Array(rows * columns)),
        drawers: new Map(),
        labels: new Uint8Array(positions.length),
      };
      while (this.slices.size >= KEPT) this.slices.delete(this.slices.keys().next().value as string);
    }
    this.slices.set(key, slice);
    return slice;
  }

  private drawerOf(slice: Slice, user: string): Drawer {
    let found = slice.drawers.get(user);
    if (!found) {
      found = drawer(this.distribution, slice.field);
      slice.drawers.set(user, found);
    }
    return found;
  }

  /** The labels `[rows, columns]` of a slice of a sample. */
  labels(plane: Plane, user: string, settings: Settings): Uint8Array {
    const slice = this.slice(plane);
    this.drawerOf(slice, user).labels(settings.seed, settings.sample, settings, slice.labels);
    const out = slice.prediction.slice();
    const { pixels, sources, labels } = slice;
    for (let i = 0; i < pixels.length; i++) out[pixels[i]] = labels[sources[i]];
    return out;
  }

  /** Gathers what samples say about a slice. */
  summary(plane: Plane, user: string): SliceSummary {
    const slice = this.slice(plane);
    return new SliceSummary(this.distribution, slice, this.drawerOf(slice, user));
  }

  /**
   * corr(η_a, η_b) of the logit a of a kept voxel and those of the same class in a slice, as `ssn-core` defines it, with the
   * weights of the modes and without the diagonal's noise where that is off. Voxels that are not kept do not move: 0.
   */
  correlation(plane: Plane, logit: number, voxel: number, settings: Settings): Float32Array {
    const { c, r, n, factor, diagonal } = this.distribution;
    const slice = this.slice(plane);
    const { field, pixels, sources } = slice;
    const { m } = field;
    const out = new Float32Array(slice.prediction.length);
    const noise = settings.diagonalNoise && diagonal !== null;
    const variance = new Float64Array(m);
    const covariance = new Float64Array(m);
    let own = noise ? valueAt(diagonal, logit * n + voxel) : 0;
    if (noise) for (let i = 0; i < m; i++) variance[i] = field.deviation[logit * m + i] ** 2;
    for (let q = 0; q < r && factor; q++) {
      const weight = settings.modeWeights[q] ** 2;
      const chosen = valueAt(factor, (q * c + logit) * n + voxel);
      own += weight * chosen * chosen;
      const column = (q * c + logit) * m;
      for (let i = 0; i < m; i++) {
        const x = field.factor[column + i];
        covariance[i] += weight * chosen * x;
        variance[i] += weight * x * x;
      }
    }
    for (let pixel = 0; pixel < pixels.length; pixel++) {
      const i = sources[pixel];
      const together = own > 0 && variance[i] > 0 ? covariance[i] / Math.sqrt(own * variance[i]) : 0;
      out[pixels[pixel]] = field.positions[i] === voxel && own > 0 ? 1 : together;
    }
    return out;
  }
}

/** The different numbers of a list, ascending, and for each entry of the list which of them it is. */
function distinct(list: Uint32Array): { positions: Uint32Array; sources: Uint32Array } {
  const sorted = list.slice().sort();
  const positions = sorted.filter((number, i) => i === 0 || number !== sorted[i - 1]);
  const places = new Map<number, number>();
  positions.forEach((number, i) => places.set(number, i));
  return { positions, sources: list.map((number) => places.get(number) as number) };
}

/** Sums over samples of one slice. */
export class SliceSummary {
  private readonly l: number;
  private readonly sums: Float64Array;
  private readonly counts: Uint32Array;
  private readonly probabilities: Float32Array;
  private samples = 0;

  constructor(private readonly distribution: Distribution, private readonly slice: Slice, private readonly draws: Drawer) {
    const { c } = distribution;
    const { m } = slice.field;
    this.l = labelCount(distribution);
    this.sums = new Float64Array(c * m);
    this.counts = new Uint32Array(this.l * m);
    this.probabilities = new Float32Array(c * m);
  }

  /** Adds a sample. */
  add(settings: Settings, sample: number): void {
    const { slice: { field: { m }, labels }, counts, sums, probabilities } = this;
    this.draws.labels(settings.seed, sample, settings, labels);
    for (let i = 0; i < m; i++) counts[labels[i] * m + i]++;
    this.draws.probabilities(settings.seed, sample, settings, probabilities);
    for (let i = 0; i < sums.length; i++) sums[i] += probabilities[i];
    this.samples++;
  }

  /** Mean probabilities and shares of samples, `[l, rows, columns]`. Voxels that are not kept have those of the prediction. */
  result(): { probabilities: Float32Array; shares: Float32Array } {
    const { l, samples, sums, counts, distribution: { c }, slice: { field: { m }, pixels, sources, prediction } } = this;
    const size = prediction.length;
    const probabilities = new Float32Array(l * size);
    const shares = new Float32Array(l * size);
    for (let i = 0; i < size; i++) probabilities[prediction[i] * size + i] = shares[prediction[i] * size + i] = 1;
    for (let pixel = 0; pixel < pixels.length; pixel++) {
      const i = sources[pixel];
      for (let k = 0; k < l; k++) {
        shares[k * size + pixels[pixel]] = counts[k * m + i] / samples;
        const p = c === 1 ? (k === 1 ? sums[i] / samples : 1 - sums[i] / samples) : sums[k * m + i] / samples;
        probabilities[k * size + pixels[pixel]] = p;
      }
    }
    return { probabilities, shares };
  }
}

/** How many voxels there are of each label, `[l]`. */
export function countLabels(labels: Uint8Array, l: number): number[] {
  const counts = new Uint32Array(256);
  for (let i = 0; i < labels.length; i++) counts[labels[i]]++;
  return Array.from(counts.subarray(0, l));
}
