// The sampler in the browser draws the bits that docs/reference/sampling.md specifies: its test vectors, and the plain
// Python implementation beside the library's tests.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { NormalDrawer, address, caseSeed, drawer, fieldAt, fieldOfRange, normalsAt, philox } from "../../build/library.mjs";
import { bits, distribution, reference, steering } from "./support.mjs";

const page = readFileSync(new URL("../../../../../docs/reference/sampling.md", import.meta.url), "utf8");

test("Philox gives its known answers", () => {
  const words = new Int32Array(4);
  const answer = (counter, key) => {
    philox(...counter.map((word) => word | 0), ...key.map((word) => word | 0), words, 0, 1);
    return Array.from(words, (word) => (word >>> 0).toString(16));
  };
  const all = 0xffffffff;
  assert.deepEqual(answer([0, 0, 0, 0], [0, 0]), ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]);
  assert.deepEqual(answer([all, all, all, all], [all, all]), ["408f276d", "41c83b0e", "a20bc7c6", "6d5451fd"]);
  assert.deepEqual(
    answer([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0]),
    ["d16cfe09", "94fdcceb", "5001e420", "24126ea1"],
  );
});

test("normal numbers are those of the specification's vectors", () => {
  const vectors = page.split("```vectors\n")[1].split("```")[0].trim().split("\n").filter((line) => !line.startsWith("#"));
  assert.equal(vectors.length, 13);
  for (const line of vectors) {
    const [seed, stream, draw, index, word] = line.split(" ");
    const out = new Float32Array(1);
    normalsAt(address(BigInt(seed), Number(draw)), Number(stream) | 0, Uint32Array.of(Number(index)), 1, out, 0);
    assert.equal(bits(out)[0], word, line);
  }
});

test("seeds of cases are those of the specification's vectors", () => {
  const rows = page.split("```cases\n")[1].split("```")[0].trim().split("\n").filter((line) => !line.startsWith("#"));
  assert.equal(rows.length, 4);
  for (const row of rows) {
    const [, seed, expected, name] = /^(\d+) ([0-9a-f]{16}) "(.*)"$/.exec(row);
    assert.equal(caseSeed(BigInt(seed), name).toString(16).padStart(16, "0"), expected, row);
  }
});

test("numbers of whole tiles and single numbers are the same", () => {
  const at = address(2n ** 63n + 77n, 2 ** 40 + 3);
  const every = Uint32Array.from({ length: 1000 }, (_, i) => i + 37);
  const whole = new Float32Array(1000);
  normalsAt(at, 3, every, 1000, whole, 0);
  for (const step of [2, 3, 7, 64, 65]) {
    const some = every.filter((_, i) => i % step === 0);
    const out = new Float32Array(some.length + 5);
    normalsAt(at, 3, some, some.length, out, 5);
    assert.deepEqual(bits(out.subarray(5)), bits(whole.filter((_, i) => i % step === 0)), `every ${step}`);
  }
});

const settings = {
  unsteered: {},
  hot: { temperature: 1.35 },
  cold: { temperature: 0 },
  "class scales": { classScales: [1, -2.2, 0, 3] },
  "mode weights": { modeWeights: [0, -3, 1.5, 1, 2.7] },
  "no diagonal noise": { diagonalNoise: false },
  all: { temperature: 0.7, classScales: [0.5, 3, -1, 1], modeWeights: [3, 0.1, -1, 0, 1], diagonalNoise: false },
};

for (const c of [1, 2, 4]) {
  test(`samples with ${c} logits are those of the reference, bit for bit`, () => {
    const d = distribution({ c, r: 5, n: 150, seed: c });
    for (const [name, { classScales, ...parts }] of Object.entries(settings)) {
      const steer = steering(d, { ...parts, ...(classScales && { classScales: classScales.slice(0, c) }) });
      const seed = 2n ** 64n - 3n;
      const field = fieldOfRange(d, 0, d.n);
      const draws = new NormalDrawer(d, field);
      reference(d, { seed, samples: 3, steering: steer }).forEach((expected, sample) => {
        const [labels, logits, probabilities] = [new Uint8Array(d.n), new Float32Array(c * d.n), new Float32Array(c * d.n)];
        draws.labels(seed, sample, steer, labels);
        draws.logits(seed, sample, steer, logits);
        draws.probabilities(seed, sample, steer, probabilities);
        assert.deepEqual(Array.from(labels), expected.labels, `labels, ${name}`);
        assert.deepEqual(bits(logits), expected.logits, `logits, ${name}`);
        assert.deepEqual(bits(probabilities), expected.probabilities, `probabilities, ${name}`);
      });
    }
  });

  test(`independent voxels with ${c} logits are those of the reference`, () => {
    const d = distribution({ c, n: 500, kind: "deterministic", seed: c });
    const draws = drawer(d, fieldOfRange(d, 0, d.n));
    reference(d, { seed: 7n, samples: 4, steering: steering(d), categorical: true }).forEach((expected, sample) => {
      const labels = new Uint8Array(d.n);
      draws.labels(7n, sample, steering(d), labels);
      assert.deepEqual(Array.from(labels), expected.labels);
    });
  });
}

test("what is kept between settings changes no label", () => {
  const d = distribution({ c: 3, r: 4, n: 300 });
  const kept = new NormalDrawer(d, fieldOfRange(d, 0, d.n));
  const steps = [
    [1n, 0, {}], [1n, 0, { temperature: 2 }], [1n, 0, { modeWeights: [2, 1, 1, 1] }], [1n, 0, { diagonalNoise: false }],
    [1n, 1, {}], [1n, 0, { modeWeights: [2, 1, 1, 1] }], [2n, 0, {}], [2n, 0, { classScales: [1, -1, 2] }],
  ];
  for (const [seed, sample, parts] of steps) {
    const [found, fresh] = [new Uint8Array(d.n), new Uint8Array(d.n)];
    kept.labels(seed, sample, steering(d, parts), found);
    new NormalDrawer(d, fieldOfRange(d, 0, d.n)).labels(seed, sample, steering(d, parts), fresh);
    assert.deepEqual(found, fresh);
  }
});

test("some voxels have the labels that they have among all", () => {
  const all = distribution({ c: 4, r: 5, n: 2000 });
  const whole = new Uint8Array(2000);
  new NormalDrawer(all, fieldOfRange(all, 0, 2000)).labels(9n, 12, steering(all), whole);
  // The same voxels kept as a list, in half of the places.
  const kept = Uint32Array.from({ length: 2000 }, (_, i) => i).filter((i) => i % 3 !== 1);
  const rows = (numbers, count) => {
    const out = new Float32Array(count * kept.length);
    for (let row = 0; row < count; row++) kept.forEach((x, i) => { out[row * kept.length + i] = numbers[row * 2000 + x]; });
    return out;
  };
  const some = {
    ...all, n: kept.length, indices: kept, mean: rows(all.mean, 4), diagonal: rows(all.diagonal, 4), factor: rows(all.factor, 20),
  };
  const positions = Uint32Array.from({ length: kept.length }, (_, i) => i).filter((i) => i % 5 === 2);
  const labels = new Uint8Array(positions.length);
  new NormalDrawer(some, fieldAt(some, positions)).labels(9n, 12, steering(all), labels);
  assert.deepEqual(Array.from(labels), Array.from(positions, (position) => whole[kept[position]]));
});

test("half precision is widened exactly", () => {
  const d = distribution({ c: 2, r: 1, n: 3 });
  const halves = Uint16Array.of(0x3c00, 0xc000, 0x0001, 0x7bff, 0x03ff, 0x3555);
  const field = fieldOfRange({ ...d, mean: halves }, 0, 3);
  assert.deepEqual(Array.from(field.mean), [1, -2, 2 ** -24, 65504, 1023 * 2 ** -24, 0.333251953125]);
  const at = fieldAt({ ...d, mean: halves }, Uint32Array.of(0, 2));
  assert.deepEqual(Array.from(at.mean), [1, 2 ** -24, 65504, 0.333251953125]);
});

test("stored samples are handed out, and no others", () => {
  const d = { ...distribution({ c: 2, n: 4, kind: "sampled" }), samples: Uint8Array.of(0, 1, 0, 1, 1, 1, 0, 0), stored: 2 };
  const draws = drawer(d, fieldAt(d, Uint32Array.of(1, 3)));
  const labels = new Uint8Array(2);
  draws.labels(0n, 1, steering(d), labels);
  assert.deepEqual(Array.from(labels), [1, 0]);
  assert.throws(() => draws.labels(0n, 2, steering(d), labels), /2 samples/);
});
