// Some of the kept voxels, surveyed by themselves: how many voxels each sample has of each label among them, how many it
// shares with raters, and how many two samples share. All of these are whole numbers, whose sums over the parts of a case
// are the same however it is divided.

import type { Settings } from "../messages";
import { type Case, voxels } from "../package";
import { type Distribution, type Numbers, labelCount } from "../sampling/distribution";
import { drawer } from "../sampling/draw";
import { fieldOfRange } from "../sampling/field";
import type { Places } from "./places";

/** Voxels and samples that are worked on at once: milliseconds of work. A multiple of 32, the bits of a word. */
const BLOCK = 2048;
const BATCH = 8;

export interface Part {
  /** Of `n` voxels of the case. */
  readonly distribution: Distribution;
  /** `[n]`: how many voxels of the image each stands for. */
  readonly weights: Uint32Array;
  /** `[k, Σ weights]`: what raters marked in the voxels of the image that the voxels stand for, in their order. */
  readonly raters: Uint8Array;
}

/** What samples `first` to `last` have in a part. */
export interface PartCounts {
  readonly kind: "counts";
  readonly first: number;
  readonly last: number;
  /** Voxels of the image and kept voxels, by sample and label, `[m, l]`. */
  readonly volumes: Float64Array;
  readonly sizes: Float64Array;
  /** Voxels of the image that a sample and a rater have in common, `[m, k, l]`. */
  readonly shared: Float64Array;
}

/** Kept voxels that two samples a < b both have, by pair and label above 0, `[m(m − 1)/2, l − 1]`. */
export interface PartPairs {
  readonly kind: "pairs";
  readonly both: Float64Array;
}

/** Divides the kept voxels of a case into parts of nearly the same size. One part is the case itself, and nothing is copied. */
export function divide(subject: Case, places: Places, count: number): Part[] {
  const { distribution, header: { raters: { length: raters } } } = subject;
  const { n } = distribution;
  const weights = new Uint32Array(n);
  for (const number of places.source) weights[number]++;
  // Voxels of the image in the order of the kept voxels that stand for them.
  const ends = new Float64Array(n + 1);
  for (let i = 0; i < n; i++) ends[i + 1] = ends[i] + weights[i];
  const order = new Uint32Array(places.where.length);
  const next = ends.slice();
  for (let i = 0; i < order.length; i++) order[next[places.source[i]]++] = places.where[i];
  return Array.from({ length: count }, (_, part) => {
    const [start, end] = [Math.floor((part * n) / count), Math.floor(((part + 1) * n) / count)];
    const marked = order.subarray(ends[start], ends[end]);
    const labels = new Uint8Array(raters * marked.length);
    for (let rater = 0; rater < raters; rater++) {
      const base = rater * voxels(places.size);
      for (let i = 0; i < marked.length; i++) labels[rater * marked.length + i] = subject.raters[base + marked[i]];
    }
    return { distribution: count === 1 ? distribution : range(distribution, start, end), weights: weights.slice(start, end), raters: labels };
  });
}

/** The voxels from `start` to `end` of a distribution, copied. */
function range(distribution: Distribution, start: number, end: number): Distribution {
  const { n, indices, mean, diagonal, factor, samples } = distribution;
  const m = end - start;
  const rows = <T extends Numbers | Uint8Array>(numbers: T): T => {
    const count = numbers.length / n;
    const out = new (numbers.constructor as new (length: number) => T)(count * m);
    for (let row = 0; row < count; row++) out.set(numbers.subarray(row * n + start, row * n + end), row * m);
    return out;
  };
  return {
    ...distribution, n: m,
    // Noise is addressed by the place in the region, which has to be stated in a part.
    indices: indices ? indices.slice(start, end) : Uint32Array.from({ length: m }, (_, i) => start + i),
    mean: rows(mean), diagonal: diagonal && rows(diagonal), factor: factor && rows(factor), samples: samples && rows(samples),
  };
}

/** The memory of a part, which can be handed over. */
export function buffers({ distribution: { indices, mean, diagonal, factor, samples }, weights, raters }: Part): ArrayBufferLike[] {
  return [indices, mean, diagonal, factor, samples, weights, raters].flatMap((numbers) => (numbers ? [numbers.buffer] : []));
}

/** The labels of all kept voxels in one sample, piece by piece. */
export function* sampleLabels(distribution: Distribution, settings: Settings, out: Uint8Array): Generator<void> {
  for (let start = 0; start < distribution.n; start += BLOCK) {
    const end = Math.min(start + BLOCK, distribution.n);
    const draws = drawer(distribution, fieldOfRange(distribution, start, end));
    draws.labels(settings.seed, settings.sample, settings, out.subarray(start, end));
    yield;
  }
}

/** Draws samples 0 … `samples` − 1 in a part, yielding nothing between pieces, counts after every batch, and pairs at the end. */
export function* surveyPart({ distribution, weights, raters }: Part, settings: Settings, samples: number): Generator<PartCounts | PartPairs | null> {
  const { n } = distribution;
  const l = labelCount(distribution);
  const words = Math.ceil(n / 32);
  const planes: Int32Array[] = [];
  const labels = new Uint8Array(BLOCK);
  const marked = weights.reduce((sum, weight) => sum + weight, 0);
  const k = marked > 0 ? raters.length / marked : 0;
  for (let first = 0; first < samples; first += BATCH) {
    const last = Math.min(first + BATCH, samples);
    for (let sample = first; sample < last; sample++) planes.push(new Int32Array((l - 1) * words));
    const [volumes, sizes] = [new Float64Array((last - first) * l), new Float64Array((last - first) * l)];
    const shared = new Float64Array((last - first) * k * l);
    for (let start = 0, entry = 0; start < n; start += BLOCK) {
      const end = Math.min(start + BLOCK, n);
      const draws = drawer(distribution, fieldOfRange(distribution, start, end));
      for (let sample = first; sample < last; sample++) {
        draws.labels(settings.seed, sample, settings, labels);
        const [plane, row] = [planes[sample], (sample - first) * l];
        for (let i = 0; i < end - start; i++) {
          const label = labels[i];
          volumes[row + label] += weights[start + i];
          sizes[row + label]++;
          if (label > 0) plane[(label - 1) * words + ((start + i) >> 5)] |= 1 << (i & 31);
        }
        for (let rater = 0; rater < k; rater++) {
          const to = ((sample - first) * k + rater) * l;
          for (let i = 0, at = rater * marked + entry; i < end - start; i++) {
            const label = labels[i];
            for (const stop = at + weights[start + i]; at < stop; at++) if (raters[at] === label) shared[to + label]++;
          }
        }
      }
      for (let i = start; i < end; i++) entry += weights[i];
      yield null;
    }
    yield { kind: "counts", first, last, volumes, sizes, shared };
  }
  const both = new Float64Array(((samples * (samples - 1)) / 2) * (l - 1));
  let at = 0;
  for (let a = 0; a < samples; a++) {
    for (let b = a + 1; b < samples; b++) {
      for (let label = 0; label < l - 1; label++) {
        let sum = 0;
        for (let i = label * words; i < (label + 1) * words; i++) sum += ones(planes[a][i] & planes[b][i]);
        both[at++] = sum;
      }
      if (words * l > BLOCK) yield null;
    }
    yield null;
  }
  yield { kind: "pairs", both };
}

function ones(word: number): number {
  word -= (word >>> 1) & 0x55555555;
  word = (word & 0x33333333) + ((word >>> 2) & 0x33333333);
  return Math.imul((word + (word >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
