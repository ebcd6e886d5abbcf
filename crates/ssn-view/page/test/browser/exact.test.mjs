// Sample i in the page is sample i of the command line, voxel for voxel: in what the page computes, and on its canvas.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";

import { made, writeDistribution } from "./made.mjs";
import { BARE, chrome, differences, folder, go, labels, open, painted, plane, sampled, shown, url, viewing } from "./viewer.mjs";

const data = folder();
const cases = {
  picture: made({ name: "picture", classes: ["background", "lesion"], size: [1, 128, 128], rank: 10, seed: 3 }),
  switch: made({ name: "switch", classes: ["off", "on"], size: [1, 70, 90], rank: 5, seed: 5, single: true }),
  volume: made({
    name: "volume", classes: ["background", "oedema", "core", "enhancing"], size: [20, 44, 52], rank: 8, seed: 9, spacing: [2.5, 1, 0.9],
    region: { start: [2, 4, 3], size: [16, 38, 40] },
  }),
  turned: made({
    name: "turned", classes: ["background", "lesion", "core"], size: [14, 30, 26], rank: 3, seed: 12, spacing: [1, 2, 1.5],
    direction: [[0, 0, -1], [-1, 0, 0], [0, 1, 0]],
  }),
  resampled: made({
    name: "resampled", classes: ["background", "lesion", "core"], size: [12, 25, 21], rank: 4, seed: 8, spacing: [2.4, 2, 2],
    region: { start: [1, 0, 2], size: [11, 24, 17] }, resampled: { size: [29, 40, 44], spacing: [1, 1.25, 0.95] },
  }),
  grain: made({ name: "grain", classes: ["background", "lesion", "core"], size: [1, 60, 50], kind: "deterministic", seed: 6 }),
  stored: made({ name: "stored", classes: ["background", "lesion", "core"], size: [1, 60, 50], kind: "sampled", seed: 7 }),
};
const file = (name) => join(data, `${name}.ssn.safetensors`);

/** What the page is asked for, and the same of the command line. */
const steered = {
  "nothing steered": ["seed=0", ["--seed", "0"]],
  "another sample": ["seed=7&i=13", ["--seed", "7", "--first", "13"]],
  "a large seed and a high number": ["seed=18446744073709551557&i=1099511627781", ["--seed", "18446744073709551557", "--first", "1099511627781"]],
  temperature: ["seed=1&i=2&t=1.85", ["--seed", "1", "--first", "2", "--temperature", "1.85"]],
  "no temperature": ["seed=1&i=2&t=0", ["--seed", "1", "--first", "2", "--temperature", "0"]],
  "no diagonal noise": ["seed=1&i=2&d=0", ["--seed", "1", "--first", "2", "--no-diagonal-noise"]],
};
const more = {
  picture: {
    "class scale": ["seed=4&i=1&w=1,-2.35", ["--seed", "4", "--first", "1", "--class-scale", "lesion=-2.35"]],
    "mode weights": ["seed=4&i=1&g=-3,1,0,1,1,2.15,1,1,1,1", ["--seed", "4", "--first", "1", "--mode-weight", "0=-3", "--mode-weight", "2=0", "--mode-weight", "5=2.15"]],
    all: [
      "seed=4&i=9&t=0.65&w=0.5,2.9&g=1,1,-1.2,1,1,1,1,1,1,0&d=0",
      ["--seed", "4", "--first", "9", "--temperature", "0.65", "--class-scale", "background=0.5", "--class-scale", "lesion=2.9",
        "--mode-weight", "2=-1.2", "--mode-weight", "9=0", "--no-diagonal-noise"],
    ],
  },
  switch: { "class scale": ["seed=4&i=1&w=-3", ["--seed", "4", "--first", "1", "--class-scale", "on=-3"]] },
  volume: {
    "class scales": ["seed=2&i=5&w=1,-3,1,2.5", ["--seed", "2", "--first", "5", "--class-scale", "oedema=-3", "--class-scale", "enhancing=2.5"]],
    "mode weights": ["seed=2&i=5&g=3,1,-1.5,1,1,1,1,0", ["--seed", "2", "--first", "5", "--mode-weight", "0=3", "--mode-weight", "2=-1.5", "--mode-weight", "7=0"]],
  },
  resampled: { "mode weights": ["seed=2&i=5&g=3,1,-1.5,1", ["--seed", "2", "--first", "5", "--mode-weight", "0=3", "--mode-weight", "2=-1.5"]] },
  turned: { "class scale": ["seed=2&i=5&t=2.5&w=1,3,1", ["--seed", "2", "--first", "5", "--temperature", "2.5", "--class-scale", "lesion=3"]] },
};

viewing(() => {
  for (const [name, made] of Object.entries(cases)) writeDistribution(file(name), made, { half: name === "volume" });
  return data;
});

/** Compares all labels, and those on the canvas across some planes, with the command line's. */
async function compare(page, name, fragment, args, planes) {
  const expected = sampled(file(name), ...args);
  for (const [axis, index] of planes) {
    await go(page, `${BARE}&${fragment}&axis=${axis}&x=${[0, 1, 2].map((a) => (a === axis ? index : Math.floor(cases[name].size[a] / 2))).join(",")}`);
    const canvas = await painted(page);
    assert.deepEqual([canvas.axis, canvas.index, canvas.outside], [axis, index, 0]);
    const wanted = plane(expected.data, expected.size, axis, index);
    assert.equal(differences(wanted, canvas.listed), 0, `${name}: labels of the plane`);
    assert.equal(differences(wanted, canvas.labels), 0, `${name}: labels on the canvas`);
  }
  const found = await labels(page);
  assert.deepEqual(found.size, expected.size);
  assert.equal(differences(found.data, expected.data), 0, `${name}: labels of the whole image`);
  return expected;
}

for (const name of ["picture", "switch", "volume", "turned", "resampled"]) {
  test(`${name}: samples are those of the command line under every steering`, async () => {
    const { page, problems } = await open(chrome, `${url}&case=${name}`);
    await shown(page);
    const planes = cases[name].size[0] === 1 ? [[0, 0]] : [[0, 9], [1, 17], [2, 12]];
    const seen = new Set();
    for (const [what, [fragment, args]] of Object.entries({ ...steered, ...more[name] })) {
      const { data: expected } = await compare(page, name, fragment, args, planes);
      seen.add(expected.toString("base64"));
      assert.ok(expected.some((label) => label > 0), `${what} shows something`);
    }
    assert.ok(seen.size >= 6, "the settings differ in what they show");
    assert.deepEqual(problems, []);
    await page.close();
  });
}

test("a deterministic network draws every voxel by itself, as the command line does", async () => {
  const { page, problems } = await open(chrome, `${url}&case=grain`);
  await shown(page);
  await compare(page, "grain", "seed=5&i=4", ["--seed", "5", "--first", "4"], [[0, 0]]);
  assert.ok(await page.locator('[data-control="temperature"]').isDisabled());
  assert.ok(await page.locator('[data-control="map-correlation"]').isDisabled());
  assert.match(await page.locator('[data-group="Steering"]').innerText(), /deterministic/);
  assert.deepEqual(problems, []);
  await page.close();
});

test("samples that a network drew itself are shown, and no others", async () => {
  const { page, problems } = await open(chrome, `${url}&case=stored`);
  await shown(page);
  await compare(page, "stored", "i=5", ["--first", "5"], [[0, 0]]);
  // There are eight: the last is as far as it goes, and a map of more has those.
  await go(page, `${BARE}&i=100&map=entropy&n=500&quantiles=1`);
  await page.waitForFunction(() => window.ssnViewer.map() !== null);
  assert.equal(await page.locator('[data-control="samples"]').inputValue(), "8");
  assert.equal(await page.locator('[data-control="sample"]').inputValue(), "7");
  assert.ok(await page.locator('[data-control="seed"]').isDisabled());
  assert.match(await page.locator('[data-group="Steering"]').innerText(), /drew its samples itself/);
  assert.deepEqual(problems, []);
  await page.close();
});
