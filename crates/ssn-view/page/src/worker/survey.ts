// Many samples of the whole volume: how large each class is in each of them, and which of them differ. Done in pieces, so
// that whoever asks can turn to something else between them.

import type { Settings, Survey } from "../messages";
import type { Case } from "../package";
import { type Distribution, labelCount } from "../sampling/distribution";
import { drawer } from "../sampling/draw";
import { fieldOfRange } from "../sampling/field";
import { countLabels } from "./slices";
import type { Places } from "./places";

/** Voxels and samples that are worked on at once: milliseconds of work. A multiple of 32, the bits of a word. */
const BLOCK = 2048;
const BATCH = 8;

/** Voxels of each label among those that no kept voxel stands for, which are the same in all samples. */
export function fixedCounts(subject: Case, places: Places): number[] {
  const counts = countLabels(subject.prediction, labelCount(subject.distribution));
  for (const at of places.where) counts[subject.prediction[at]]--;
  return counts;
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

/** Draws samples 0 … `samples` − 1, yielding nothing between pieces and results after every batch. */
export function* survey(
  subject: Case, places: Places, settings: Settings, samples: number, gallery: number,
): Generator<Survey | null> {
  const { distribution } = subject;
  const { n } = distribution;
  const l = labelCount(distribution);
  const fixed = fixedCounts(subject, places);
  // How many voxels of the image a kept voxel stands for, and how many that is in the mean.
  const weights = new Uint32Array(n);
  for (const number of places.source) weights[number]++;
  const density = n > 0 ? places.where.length / n : 1;
  const words = Math.ceil(n / 32);
  const planes: Int32Array[] = [];
  const volumes = new Float64Array(samples * l);
  // In kept voxels, as distances are.
  const sizes = new Float64Array(samples * l);
  const fixedSizes = fixed.map((count) => count / density);
  const labels = new Uint8Array(BLOCK);
  for (let first = 0; first < samples; first += BATCH) {
    const last = Math.min(first + BATCH, samples);
    for (let sample = first; sample < last; sample++) {
      planes.push(new Int32Array((l - 1) * words));
      volumes.set(fixed, sample * l);
      sizes.set(fixedSizes, sample * l);
    }
    for (let start = 0; start < n; start += BLOCK) {
      const end = Math.min(start + BLOCK, n);
      const draws = drawer(distribution, fieldOfRange(distribution, start, end));
      for (let sample = first; sample < last; sample++) {
        draws.labels(settings.seed, sample, settings, labels);
        const plane = planes[sample];
        for (let i = 0; i < end - start; i++) {
          const label = labels[i];
          volumes[sample * l + label] += weights[start + i];
          sizes[sample * l + label]++;
          if (label > 0) plane[(label - 1) * words + ((start + i) >> 5)] |= 1 << (i & 31);
        }
      }
      yield null;
    }
    if (last < samples) yield { samples: last, total: samples, volumes: volumes.slice(0, last * l), diverse: [] };
  }
  const distances = new Float64Array(samples * samples);
  for (let a = 0; a < samples; a++) {
    for (let b = a + 1; b < samples; b++) {
      distances[a * samples + b] = distances[b * samples + a] = distance(planes[a], planes[b], words, sizes, a, b, fixedSizes);
      if (words * l > BLOCK) yield null;
    }
    yield null;
  }
  yield { samples, total: samples, volumes, diverse: diverse(distances, samples, gallery) };
}

/** 1 − the mean IoU of the foreground classes; a class that is absent in both has IoU 1. */
function distance(
  first: Int32Array, second: Int32Array, words: number, sizes: Float64Array, a: number, b: number, fixed: readonly number[],
): number {
  const l = fixed.length;
  let sum = 0;
  for (let k = 1; k < l; k++) {
    let both = fixed[k];
    for (let i = (k - 1) * words; i < k * words; i++) both += ones(first[i] & second[i]);
    const union = sizes[a * l + k] + sizes[b * l + k] - both;
    sum += union === 0 ? 1 : both / union;
  }
  return 1 - sum / (l - 1);
}

function ones(word: number): number {
  word -= (word >>> 1) & 0x55555555;
  word = (word & 0x33333333) + ((word >>> 2) & 0x33333333);
  return Math.imul((word + (word >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

/** The most typical sample, and then always the one farthest from all before it, as in reports. */
export function diverse(distances: Float64Array, samples: number, count: number): number[] {
  const chosen: number[] = [];
  let typical = 0;
  let least = Infinity;
  for (let sample = 0; sample < samples; sample++) {
    let sum = 0;
    for (let other = 0; other < samples; other++) sum += distances[sample * samples + other];
    if (sum < least) [typical, least] = [sample, sum];
  }
  if (samples > 0) chosen.push(typical);
  while (chosen.length < Math.min(count, samples)) {
    let farthest = -1;
    let most = -1;
    for (let sample = 0; sample < samples; sample++) {
      if (chosen.includes(sample)) continue;
      const nearest = Math.min(...chosen.map((other) => distances[sample * samples + other]));
      if (nearest > most) [farthest, most] = [sample, nearest];
    }
    chosen.push(farthest);
  }
  return chosen;
}
