// Samples of the voxels of a field: labels, logits and probabilities (docs/reference/sampling.md, sections 3 to 5).
//
// What a change of the settings leaves as it is is kept: the normal numbers of a sample while its steering changes, and its
// noise while only temperature and class scales do. Both give the same bits as drawing anew.

import { address } from "./address";
import type { Distribution } from "./distribution";
import type { Field } from "./field";
import { RANK_STREAM, firstNormals, normalsAt } from "./normal";
import { philox } from "./philox";
import { softmax } from "./softmax";

const f = Math.fround;

/** How the noise of samples is changed. All 1 and `true` change nothing. */
export interface Steering {
  readonly temperature: number;
  /** `[c]`. */
  readonly classScales: readonly number[];
  /** `[r]`. */
  readonly modeWeights: readonly number[];
  readonly diagonalNoise: boolean;
}

/** Draws samples of one field. */
export interface Drawer {
  /** The labels `[m]` of a sample. */
  labels(seed: bigint, sample: number, steering: Steering, out: Uint8Array): void;
  /** The probabilities `[c, m]` of a sample; of networks without noise of their own, those of the mean. */
  probabilities(seed: bigint, sample: number, steering: Steering, out: Float32Array): void;
}

/** Draws by the kind of the distribution. */
export function drawer(distribution: Distribution, field: Field): Drawer {
  switch (distribution.kind) {
    case "stochastic": return new NormalDrawer(distribution, field);
    case "deterministic": return new CategoricalDrawer(distribution, field);
    case "sampled": return new StoredDrawer(distribution, field);
  }
}

/** The noise g_q·ε_q of the columns of the factor in a sample, `[r]`. */
export function rankNoise(seed: bigint, sample: number, weights: readonly number[]): Float32Array {
  const noise = new Float32Array(weights.length);
  firstNormals(address(seed, sample), RANK_STREAM, noise);
  for (let q = 0; q < noise.length; q++) noise[q] = f(weights[q]) * noise[q];
  return noise;
}

/** Samples of a low-rank normal distribution. */
export class NormalDrawer implements Drawer {
  private readonly c: number;
  private readonly normals: Float32Array;
  private normalsOf = "";
  private readonly noise: Float32Array;
  private noiseOf = "";
  private readonly best: Float32Array;

  constructor(distribution: Distribution, private readonly field: Field) {
    this.c = distribution.c;
    this.normals = new Float32Array(field.deviation.length);
    this.noise = new Float32Array(this.c * field.m);
    this.best = new Float32Array(field.m);
  }

  labels(seed: bigint, sample: number, steering: Steering, out: Uint8Array): void {
    this.makeNoise(seed, sample, steering);
    const { c, noise, best } = this;
    const { m, mean } = this.field;
    for (let k = 0; k < c; k++) {
      const scale = f(f(steering.temperature) * f(steering.classScales[k]));
      const row = k * m;
      if (c === 1) {
        for (let x = 0; x < m; x++) out[x] = logit(mean[x], scale, noise[x]) > 0 ? 1 : 0;
      } else if (k === 0) {
        for (let x = 0; x < m; x++) {
          best[x] = logit(mean[x], scale, noise[x]);
          out[x] = 0;
        }
      } else {
        for (let x = 0; x < m; x++) {
          const eta = logit(mean[row + x], scale, noise[row + x]);
          if (eta > best[x]) {
            best[x] = eta;
            out[x] = k;
          }
        }
      }
    }
  }

  /** The logits `[c, m]` of a sample. */
  logits(seed: bigint, sample: number, steering: Steering, out: Float32Array): void {
    this.makeNoise(seed, sample, steering);
    const { c, noise } = this;
    const { m, mean } = this.field;
    for (let k = 0; k < c; k++) {
      const scale = f(f(steering.temperature) * f(steering.classScales[k]));
      for (let x = k * m; x < (k + 1) * m; x++) out[x] = logit(mean[x], scale, noise[x]);
    }
  }

  probabilities(seed: bigint, sample: number, steering: Steering, out: Float32Array): void {
    this.logits(seed, sample, steering, out);
    softmax(out, this.c, this.field.m);
  }

  /** Σ_q ζ_q P_q + √D ε of a sample, unless it is there already. */
  private makeNoise(seed: bigint, sample: number, steering: Steering): void {
    const draw = `${seed} ${sample}`;
    const noiseOf = `${draw} ${steering.diagonalNoise} ${steering.modeWeights.join(" ")}`;
    if (noiseOf === this.noiseOf) return;
    const { c, noise, normals, field: { m, indices, deviation, factor } } = this;
    const zeta = rankNoise(seed, sample, steering.modeWeights);
    noise.fill(0);
    for (let q = 0; q < zeta.length; q++) addScaled(noise, zeta[q], factor, q * c * m);
    if (steering.diagonalNoise && deviation.length > 0) {
      if (draw !== this.normalsOf) {
        for (let k = 0; k < c; k++) normalsAt(address(seed, sample), k, indices, m, normals, k * m);
        this.normalsOf = draw;
      }
      addProducts(noise, deviation, normals);
    }
    this.noiseOf = noiseOf;
  }
}

function logit(mean: number, scale: number, noise: number): number {
  return scale === 0 ? mean : f(mean + f(scale * noise));
}

/** sum ← sum ⊕ (weight ⊗ column). */
function addScaled(sum: Float32Array, weight: number, column: Float32Array, from: number): void {
  for (let i = 0; i < sum.length; i++) sum[i] = sum[i] + f(weight * column[from + i]);
}

/** sum ← sum ⊕ (a ⊗ b). */
function addProducts(sum: Float32Array, a: Float32Array, b: Float32Array): void {
  for (let i = 0; i < sum.length; i++) sum[i] = sum[i] + f(a[i] * b[i]);
}

/** The stream of the words of independent categoricals. */
const CATEGORICAL_STREAM = 0xfffffffd | 0;

/** Voxels of a deterministic network, each drawn by itself. */
class CategoricalDrawer implements Drawer {
  private readonly c: number;
  /** `[c, m]`. */
  private readonly means: Float32Array;
  /** `[c − 1, m]`: where the labels end in 0 … 1. A single class has one row, its probability. */
  private readonly ends: Float32Array;
  private readonly words = new Int32Array(4);

  constructor(distribution: Distribution, private readonly field: Field) {
    this.c = distribution.c;
    const { c } = this;
    const { m } = field;
    this.means = field.mean.slice(0, c * m);
    softmax(this.means, c, m);
    this.ends = this.means.slice(0, Math.max(c - 1, 1) * m);
    for (let i = m; i < this.ends.length; i++) this.ends[i] = this.ends[i - m] + this.means[i];
  }

  labels(seed: bigint, sample: number, _steering: Steering, out: Uint8Array): void {
    const { c, ends, words, field: { m, indices } } = this;
    const at = address(seed, sample);
    for (let i = 0; i < m; i++) {
      const x = indices[i];
      const counter = (x >>> 6) * 16 + (x & 15);
      philox(counter, CATEGORICAL_STREAM, at.drawLow, at.drawHigh, at.seedLow, at.seedHigh, words, 0, 1);
      const u = (words[(x >>> 4) & 3] >>> 8) * 2 ** -24;
      if (c === 1) {
        out[i] = u < ends[i] ? 1 : 0;
      } else {
        let label = 0;
        for (let k = 0; k < c - 1; k++) if (u >= ends[k * m + i]) label++;
        out[i] = label;
      }
    }
  }

  probabilities(_seed: bigint, _sample: number, _steering: Steering, out: Float32Array): void {
    out.set(this.means);
  }
}

/** Samples that the network drew itself. */
class StoredDrawer implements Drawer {
  private readonly means: Float32Array;

  constructor(private readonly distribution: Distribution, private readonly field: Field) {
    this.means = field.mean.slice(0, distribution.c * field.m);
    softmax(this.means, distribution.c, field.m);
  }

  labels(_seed: bigint, sample: number, _steering: Steering, out: Uint8Array): void {
    const { samples, stored, n } = this.distribution;
    const { m, positions } = this.field;
    if (!samples || sample >= stored) throw new RangeError(`there are ${stored} samples, counted from 0, and no sample ${sample}`);
    for (let i = 0; i < m; i++) out[i] = samples[sample * n + positions[i]];
  }

  probabilities(_seed: bigint, _sample: number, _steering: Steering, out: Float32Array): void {
    out.set(this.means);
  }
}

/** The steering that changes nothing. */
export function unsteered(c: number, r: number): Steering {
  return { temperature: 1, classScales: Array(c).fill(1), modeWeights: Array(r).fill(1), diagonalNoise: true };
}

