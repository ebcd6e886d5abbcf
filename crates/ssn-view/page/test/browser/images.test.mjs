// Images and raters of a dataset stand where they belong, in the colors that they should have.

import assert from "node:assert/strict";
import { test } from "node:test";

import { made, uniform, writeDataset } from "./made.mjs";
import { BARE, chrome, differences, folder, go, open, painted, plane, shown, url, viewing } from "./viewer.mjs";

const subject = made({
  name: "volume", classes: ["background", "lesion", "core"], size: [10, 30, 26], rank: 3, seed: 12, spacing: [1, 2, 1.5],
  direction: [[0, 0, -1], [-1, 0, 0], [0, 1, 0]], region: { start: [1, 2, 3], size: [8, 26, 20] },
});
const voxels = 10 * 30 * 26;
const random = uniform(4);
const image = Float32Array.from({ length: voxels }, () => Math.floor(random() * 2000) / 4);
const raters = [0, 1].map((rater) => Uint8Array.from({ length: voxels }, (_, i) => (random() < 0.1 * (rater + 1) ? 1 + (i % 2) : 0)));

viewing(() => writeDataset(folder(), subject, { images: { image }, raters }));

test("raters are painted where they marked", async () => {
  const { page, problems } = await open(chrome, url);
  await shown(page);
  for (const [axis, index] of [[0, 4], [1, 20], [2, 11]]) {
    const at = [0, 1, 2].map((a) => (a === axis ? index : 5)).join(",");
    for (const [rater, letters] of [[0, "fo"], [1, "of"]]) {
      await go(page, `${BARE.replace("sample=f", "sample=o")}&raters=${letters}&axis=${axis}&x=${at}`);
      const canvas = await painted(page);
      assert.deepEqual([canvas.axis, canvas.index], [axis, index]);
      assert.equal(differences(canvas.labels, plane(raters[rater], subject.size, axis, index)), 0, `rater ${rater} across ${axis}`);
    }
  }
  assert.deepEqual(problems, []);
  await page.close();
});

test("the image has the greys of its window, and the readout its values", async () => {
  const { page, problems } = await open(chrome, url);
  await shown(page);
  const [z, y, x] = [4, 13, 9];
  for (const [black, white] of [[0, 500], [100, 300]]) {
    await go(page, `sample=o&prediction=o&cross=0&layout=single&gallery=0&smooth=0&window=${black},${white}&axis=0&x=${z},${y},${x}`);
    const greys = await page.evaluate(() => {
      const { rows, columns, matrix: [a, b, c, d, e, f] } = window.ssnViewer.slice();
      const canvas = document.querySelector(".pane canvas");
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
      copy.drawImage(canvas, 0, 0);
      const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
      return Array.from({ length: rows * columns }, (_, i) => {
        const [row, column] = [Math.floor(i / columns) + 0.5, (i % columns) + 0.5];
        return data[4 * (Math.floor(b * column + d * row + f) * canvas.width + Math.floor(a * column + c * row + e))];
      });
    });
    // Letters stand over some voxels at the edges.
    const wrong = greys.filter((gray, i) => {
      const value = image[z * 30 * 26 + i];
      return Math.abs(gray - Math.min(Math.max(((value - black) / (white - black)) * 255, 0), 255)) > 1;
    });
    assert.ok(wrong.length <= 12, `${wrong.length} greys are wrong`);
  }
  const value = image[(z * 30 + y) * 26 + x];
  const said = await page.locator(".readout").innerText();
  const [, told] = /value ([\d.,]+)/.exec(said);
  assert.ok(Math.abs(Number(told.replace(",", "")) - value) <= 0.5, `${said}, but the value is ${value}`);
  const label = (rater) => subject.classes[raters[rater][(z * 30 + y) * 26 + x]];
  assert.ok(said.endsWith(label(0) === label(1) ? `raters: ${label(0)} ×2` : `raters: ${label(0)} ×1, ${label(1)} ×1`), said);
  const each = await page.locator(".readout").getAttribute("title");
  assert.ok(each.endsWith(`rater 0: ${label(0)}\nrater 1: ${label(1)}`), each);
  assert.deepEqual(problems, []);
  await page.close();
});

test("the letters at the edges are those of the patient", async () => {
  // Grid axis w runs backwards (to P), h upwards (to S), d to the left of the patient (to L).
  const { page, problems } = await open(chrome, url);
  await shown(page);
  const planes = await page.evaluate(() => window.ssnViewer.planes());
  assert.deepEqual(planes.map((one) => one.name), ["sagittal", "axial", "coronal"]);
  assert.deepEqual(planes.map((one) => one.letters.join("")), ["APSI", "RLAP", "RLSI"]);
  assert.deepEqual(problems, []);
  await page.close();
});
