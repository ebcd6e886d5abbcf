// Cases for the tests of the page, made of smooth noise: distributions as files that `ssn` reads.

import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Numbers in 0 … 1 that depend on a seed alone. */
export function uniform(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A smooth field over `[d, h, w]` of about unit size: a few waves. */
function waves([d, h, w], random, length) {
  const parts = Array.from({ length: 6 }, () => ({
    z: (random() - 0.5) * 2 / length, y: (random() - 0.5) * 2 / length, x: (random() - 0.5) * 2 / length, phase: random() * 6.283, size: 0.4 + 0.4 * random(),
  }));
  return (z, y, x) => parts.reduce((sum, p) => sum + p.size * Math.sin(6.283 * ((p.z * z) / Math.max(d, 2) * 2 + (p.y * y) / h * 2 + (p.x * x) / w * 2) + p.phase), 0) / 1.6;
}

/**
 * A distribution of nested blobs: class k lies inside class k − 1, and its border moves with the columns of the factor.
 * `region` is a box of the image. With `resampled`, size and spacing are those of the network, and the image has others.
 */
export function made({ name, classes, size, region = { start: [0, 0, 0], size }, rank = 10, kind = "stochastic", seed = 1, single = false, spacing = [1, 1, 1], direction, resampled }) {
  const random = uniform(seed);
  const c = single ? 1 : classes.length;
  const [d, h, w] = region.size;
  const v = d * h * w;
  const [mean, diagonal] = [new Float32Array(c * v), new Float32Array(c * v)];
  const r = kind === "stochastic" ? rank : 0;
  const factor = new Float32Array(r * c * v);
  const middle = [0, 1, 2].map((axis) => size[axis] * (0.45 + 0.1 * random()));
  const columns = Array.from({ length: r * c }, () => waves(size, random, 1 + 2 * random()));
  const texture = waves(size, random, 0.2);
  for (let z = 0, i = 0; z < d; z++) {
    for (let y = 0; y < h; y++) {
      for (let x = 0; x < w; x++, i++) {
        const at = [z + region.start[0], y + region.start[1], x + region.start[2]];
        const away = Math.hypot(...at.map((p, axis) => (size[axis] > 1 ? (p - middle[axis]) / (0.34 * size[axis]) : 0)));
        const edge = away + 0.12 * texture(...at);
        for (let k = 0; k < c; k++) {
          const depth = single ? 1 : k;
          mean[k * v + i] = depth === 0 ? 0 : 7 * depth * (1 - edge) - 2.2 * depth * (depth - 1);
          diagonal[k * v + i] = kind === "stochastic" ? 0.05 + 0.1 * Math.exp(-8 * (edge - 1) ** 2) : 0;
          for (let q = 0; q < r; q++) factor[(q * c + k) * v + i] = (depth === 0 ? 0.2 : 2.2 * depth) * 0.72 ** q * columns[q * c + k](...at) * Math.exp(-3 * (edge - 0.8) ** 2);
        }
      }
    }
  }
  let samples = null;
  if (kind === "sampled") {
    samples = new Uint8Array(8 * v);
    for (let m = 0; m < 8; m++) {
      for (let i = 0; i < v; i++) {
        let best = 0;
        for (let k = 1; k < c; k++) if (mean[k * v + i] + (m - 4) * 0.4 * k > mean[best * v + i] + (m - 4) * 0.4 * best) best = k;
        samples[m * v + i] = best;
      }
    }
  }
  const geometry = {
    spacing: [...(resampled?.spacing ?? spacing)].reverse(), origin: [-40.5, -30, 12],
    direction: direction ?? [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  };
  const grid = resampled && { size, spacing };
  return { name, classes, size: resampled?.size ?? size, grid, region, kind, c, r, v, mean, diagonal, factor, samples, geometry, spacing: resampled?.spacing ?? spacing };
}

/** Bits of half precision, rounded to nearest even. */
function toHalf(values) {
  const out = new Uint16Array(values.length);
  const real = new Float32Array(1);
  const bits = new Uint32Array(real.buffer);
  values.forEach((value, i) => {
    real[0] = value;
    const sign = (bits[0] >>> 16) & 0x8000;
    const size = Math.abs(real[0]);
    if (size < 2 ** -14) {
      out[i] = sign | Math.round(size * 2 ** 24);
      return;
    }
    const word = bits[0] & 0x7fffffff;
    const rounded = word + 0xfff + ((word >>> 13) & 1);
    out[i] = sign | ((rounded >>> 13) - (112 << 10));
  });
  return out;
}

/** Writes a distribution file (docs/reference/distribution-files.md). */
export function writeDistribution(path, d, { half = false } = {}) {
  const about = JSON.stringify({
    version: d.grid ? 2 : 1, case: d.name, classes: d.classes, kind: d.kind, size: d.size, geometry: d.geometry, region: d.region,
    ...(d.grid ? { network_grid: d.grid } : {}),
    model: { sha256: "5f", name: "made for a test" },
  });
  const numbers = (values) => (half ? ["F16", toHalf(values)] : ["F32", values]);
  const tensors = [
    ["diagonal", ...numbers(d.diagonal), [d.c, d.v]], ["factor", ...numbers(d.factor), [d.r, d.c, d.v]], ["mean", ...numbers(d.mean), [d.c, d.v]],
    ...(d.samples ? [["samples", "U8", d.samples, [8, d.v]]] : []),
  ];
  const hash = createHash("sha256").update(`${Buffer.byteLength(about)} ${about}\n`);
  const header = {};
  let offset = 0;
  for (const [name, type, values, shape] of tensors) {
    hash.update(`${name} ${type} [${shape.join(", ")}]\n`).update(bytes(values));
    header[name] = { dtype: type, shape, data_offsets: [offset, offset + values.byteLength] };
    offset += values.byteLength;
  }
  header.__metadata__ = { ssn: about, sha256: hash.digest("hex") };
  const text = Buffer.from(JSON.stringify(header));
  const padded = Buffer.concat([text, Buffer.alloc((8 - (text.length % 8)) % 8, " ")]);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(padded.length));
  writeFileSync(path, Buffer.concat([length, padded, ...tensors.map(([, , values]) => bytes(values))]));
}

/** Writes a volume `[d, h, w]` of bytes or of numbers in single precision as NIfTI, in the geometry of a distribution. */
export function writeVolume(path, values, d) {
  const header = Buffer.alloc(352);
  const real = values instanceof Float32Array;
  header.writeInt32LE(348, 0);
  [3, ...[...d.size].reverse(), 1, 1, 1, 1].forEach((extent, i) => header.writeInt16LE(extent, 40 + 2 * i));
  header.writeInt16LE(real ? 16 : 2, 70);
  header.writeInt16LE(real ? 32 : 8, 72);
  [1, ...d.geometry.spacing].forEach((step, i) => header.writeFloatLE(step, 76 + 4 * i));
  header.writeFloatLE(352, 108);
  header.writeFloatLE(1, 112);
  header.writeInt16LE(1, 254);
  for (let row = 0; row < 3; row++) {
    const { direction, spacing, origin } = d.geometry;
    [...[0, 1, 2].map((axis) => direction[row][axis] * spacing[axis]), origin[row]]
      .forEach((value, i) => header.writeFloatLE(value, 280 + 16 * row + 4 * i));
  }
  header.write("n+1", 344);
  writeFileSync(path, Buffer.concat([header, bytes(values)]));
}

/** A folder of predictions with its dataset: images by name and label maps of raters, null for one who marked nothing, beside the distributions. */
export function writeDataset(folder, d, { images, raters }) {
  const [set, predictions] = [join(folder, "set"), join(folder, "predictions")];
  mkdirSync(set);
  mkdirSync(predictions);
  const maps = [...Object.entries(images), ...raters.map((labels, rater) => [`seg_${rater}`, labels])];
  for (const [name, values] of maps) if (values) writeVolume(join(set, `${name}.nii`), values, d);
  const files = maps.map(([name, values]) => (values ? `${name}.nii` : ""));
  // A rater has a number if any case has their marks: another case, without a prediction, has those that are missing here.
  const any = files.at(-1);
  const rows = [["id", ...maps.map(([name]) => name)], [d.name, ...files], ["other", ...files.map((file) => file || any)]];
  writeFileSync(join(set, "index.csv"), rows.map((cells) => `${cells.join(",")}\n`).join(""));
  writeFileSync(join(predictions, "predictions.json"), JSON.stringify({
    version: 1, model: { sha256: "5f", name: "made for a test" }, seed: 0, dataset: join(set, "index.csv"), split: "all",
  }));
  writeDistribution(join(predictions, `${d.name}.ssn.safetensors`), d);
  return predictions;
}

function bytes(values) {
  return Buffer.from(values.buffer, values.byteOffset, values.byteLength);
}
