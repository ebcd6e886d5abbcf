// What the tests of the sampler share: a distribution of known noise, and the plain Python implementation of the specification.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { address, normalsAt } from "../../build/library.mjs";

const REFERENCE = fileURLToPath(new URL("../../../../ssn-core/tests/tools/sample.py", import.meta.url));

/** `count` normal numbers of a stream. */
export function noise(seed, stream, count) {
  const out = new Float32Array(count);
  normalsAt(address(BigInt(seed), 0), stream, Uint32Array.from({ length: count }, (_, i) => i), count, out, 0);
  return out;
}

/** A distribution of all voxels, made of noise. */
export function distribution({ c, r, n, kind = "stochastic", seed = 5 }) {
  const stochastic = kind === "stochastic";
  return {
    kind, c, r: stochastic ? r : 0, n, indices: null,
    mean: noise(seed, 10, c * n),
    diagonal: stochastic ? noise(seed, 11, c * n).map((x) => 0.3 * x * x) : null,
    factor: stochastic ? noise(seed, 12, r * c * n) : null,
    samples: null, stored: 0,
  };
}

/** Bits of numbers in binary32. */
export function bits(numbers) {
  const words = new Uint32Array(Float32Array.from(numbers).buffer);
  return Array.from(words, (word) => word.toString(16).padStart(8, "0"));
}

/** Lines of the reference: for every sample its labels, and the bits of its logits and probabilities. */
export function reference(d, { seed, samples, steering, categorical = false }) {
  const folder = mkdtempSync(join(tmpdir(), "ssn-view-"));
  try {
    const file = join(folder, "distribution.json");
    const text = JSON.stringify({
      classes: d.c, voxels: d.n, rank: d.r, seed: "SEED", samples, categorical,
      diagonal_noise: steering.diagonalNoise,
      temperature: bits([steering.temperature]),
      class_scales: bits(steering.classScales),
      mode_weights: bits(steering.modeWeights),
      mean: bits(d.mean), diagonal: bits(d.diagonal ?? []), factor: bits(d.factor ?? []),
    });
    writeFileSync(file, text.replace('"SEED"', String(seed)));
    const lines = execFileSync("python3", [REFERENCE, file], { encoding: "utf8", maxBuffer: 1 << 28 }).trim().split("\n");
    return lines.map((line) => {
      const [labels, ...numbers] = line.split(" ");
      return {
        labels: Array.from(labels, Number),
        logits: numbers.slice(0, d.c * d.n),
        probabilities: numbers.slice(d.c * d.n),
      };
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A steering with some of its parts set. */
export function steering(d, parts = {}) {
  return {
    temperature: 1, classScales: Array(d.c).fill(1), modeWeights: Array(d.r).fill(1), diagonalNoise: true, ...parts,
  };
}
