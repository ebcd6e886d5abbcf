// Many samples of the whole volume: how large each class is in each of them, how far each is from the raters, and which of
// them are alike. What parts of the voxels say is added up here.

import type { Settings, Survey } from "../messages";
import { type Case, voxels } from "../package";
import { labelCount } from "../sampling/distribution";
import { type SampleGroup, sampleGroups } from "./clusters";
import { type PartCounts, type PartPairs, divide, surveyPart } from "./part";
import type { Places } from "./places";
import { countLabels } from "./slices";

/** Adds up what the parts of a case say. */
export class SurveySum {
  private readonly l: number;
  private readonly k: number;
  /** Voxels of each label among those that no kept voxel stands for, which are the same in all samples. */
  private readonly fixed: number[];
  /** Of those, the ones that a rater has too, `[k, l]`. */
  private readonly fixedShared: Float64Array;
  /** Voxels of each label that raters have, `[k, l]`. */
  private readonly raterCounts: number[][];
  private readonly volumes: Float64Array;
  /** In kept voxels, as distances between samples are. */
  private readonly sizes: Float64Array;
  private readonly fixedSizes: number[];
  private readonly shared: Float64Array;
  private readonly both: Float64Array;
  private readonly raterDistances: Float64Array;
  /** How many parts said what they have of a batch of samples, and of pairs. */
  private readonly arrived = new Map<number, number>();
  private paired = 0;

  constructor(subject: Case, places: Places, private readonly samples: number, private readonly parts: number, private readonly gallery: number) {
    const l = this.l = labelCount(subject.distribution);
    const k = this.k = subject.header.raters.length;
    const v = voxels(places.size);
    const rater = (number: number) => subject.raters.subarray(number * v, (number + 1) * v);
    this.fixed = countLabels(subject.prediction, l);
    this.raterCounts = Array.from({ length: k }, (_, number) => countLabels(rater(number), l));
    this.fixedShared = new Float64Array(k * l);
    for (let number = 0; number < k; number++) {
      const marked = rater(number);
      for (let i = 0; i < v; i++) if (marked[i] === subject.prediction[i]) this.fixedShared[number * l + marked[i]]++;
    }
    for (const at of places.where) {
      const label = subject.prediction[at];
      this.fixed[label]--;
      for (let number = 0; number < k; number++) if (subject.raters[number * v + at] === label) this.fixedShared[number * l + label]--;
    }
    // How many voxels of the image a kept voxel stands for in the mean.
    const { n } = subject.distribution;
    const density = n > 0 ? places.where.length / n : 1;
    this.fixedSizes = this.fixed.map((count) => count / density);
    const repeated = (row: ArrayLike<number>) => Float64Array.from({ length: samples * row.length }, (_, i) => row[i % row.length]);
    [this.volumes, this.sizes, this.shared] = [repeated(this.fixed), repeated(this.fixedSizes), repeated(this.fixedShared)];
    this.raterDistances = new Float64Array(samples * k);
    this.both = new Float64Array(((samples * (samples - 1)) / 2) * (l - 1));
  }

  /** Takes what a part found. Gives what is known once all parts said it. */
  add(found: PartCounts | PartPairs): Survey | null {
    const { l, k, samples, parts } = this;
    const into = (sums: Float64Array, row: number, from: Float64Array) => from.forEach((value, i) => { sums[row + i] += value; });
    if (found.kind === "pairs") {
      into(this.both, 0, found.both);
      return ++this.paired === parts ? this.known(samples, sampleGroups(this.distances(), samples, this.gallery)) : null;
    }
    const { first, last } = found;
    into(this.volumes, first * l, found.volumes);
    into(this.sizes, first * l, found.sizes);
    into(this.shared, first * k * l, found.shared);
    const arrived = (this.arrived.get(first) ?? 0) + 1;
    this.arrived.set(first, arrived);
    if (arrived < parts) return null;
    for (let sample = first; sample < last; sample++) {
      for (let rater = 0; rater < k; rater++) this.raterDistances[sample * k + rater] = this.raterDistance(sample, rater);
    }
    return this.known(last, []);
  }

  private known(samples: number, groups: readonly SampleGroup[]): Survey {
    const { l, k, volumes, raterDistances } = this;
    return { samples, total: this.samples, volumes: volumes.slice(0, samples * l), raterDistances: raterDistances.slice(0, samples * k), groups };
  }

  /** 1 − the mean IoU of the foreground classes of a sample and a rater, in voxels of the image. */
  private raterDistance(sample: number, rater: number): number {
    const { l, k, volumes, shared, raterCounts } = this;
    return distance(l, (label) => ({
      both: shared[(sample * k + rater) * l + label], first: volumes[sample * l + label], second: raterCounts[rater][label],
    }));
  }

  /** The same of each two samples, in kept voxels, `[m, m]`. */
  private distances(): Float64Array {
    const { l, samples, sizes, fixedSizes, both } = this;
    const out = new Float64Array(samples * samples);
    let pair = 0;
    for (let a = 0; a < samples; a++) {
      for (let b = a + 1; b < samples; b++, pair += l - 1) {
        out[a * samples + b] = out[b * samples + a] = distance(l, (label) => ({
          both: fixedSizes[label] + both[pair + label - 1], first: sizes[a * l + label], second: sizes[b * l + label],
        }));
      }
    }
    return out;
  }
}

/** 1 − the mean IoU of the foreground classes; a class that is absent in both has IoU 1. */
function distance(l: number, sizes: (label: number) => { both: number; first: number; second: number }): number {
  let sum = 0;
  for (let label = 1; label < l; label++) {
    const { both, first, second } = sizes(label);
    const union = first + second - both;
    sum += union === 0 ? 1 : both / union;
  }
  return 1 - sum / (l - 1);
}

/** Draws samples 0 … `samples` − 1 of `parts` parts one after another, yielding nothing between pieces and results after every batch. */
export function* survey(subject: Case, places: Places, settings: Settings, samples: number, gallery: number, parts = 1): Generator<Survey | null> {
  const sum = new SurveySum(subject, places, samples, parts, gallery);
  for (const part of divide(subject, places, parts)) {
    for (const found of surveyPart(part, settings, samples)) yield found && sum.add(found);
  }
}
