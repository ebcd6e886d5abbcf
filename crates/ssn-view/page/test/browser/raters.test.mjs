// Seven raters of one class are told apart, have their own numbers everywhere, and each channel of the image its own contrast.

import assert from "node:assert/strict";
import { test } from "node:test";

import { made, uniform, writeDataset } from "./made.mjs";
import { BARE, chrome, folder, go, open, pixels, shown, url, viewing } from "./viewer.mjs";

const [rows, columns] = [40, 48];
const subject = made({ name: "picture", classes: ["background", "lesion"], size: [1, rows, columns], rank: 3, seed: 5 });
const random = uniform(6);
const values = (high) => Float32Array.from({ length: rows * columns }, () => high * random());
// All mark the same, so that only their marks can differ; the second column of the dataset is empty.
const block = Uint8Array.from({ length: rows * columns }, (_, i) => Number(i % columns >= 8 && i % columns < 24 && i >= 8 * columns && i < 24 * columns));
const numbers = [0, 2, 3, 4, 5, 6, 7];

viewing(() => {
  const raters = Array.from({ length: 8 }, (_, rater) => (rater === 1 ? null : block));
  return writeDataset(folder(), subject, { images: { bright: values(500), faint: values(2e-5) }, raters });
});

/** The letters of raters with one of them drawn. */
const only = (rater, letter) => numbers.map((_, i) => (i === rater ? letter : "o")).join("");

test("areas and outlines of raters and of the prediction look like no other's", async () => {
  const { page, problems } = await open(chrome, url);
  await shown(page);
  const bare = BARE.replace("sample=f", "sample=o");
  for (const letter of ["f", "c"]) {
    const seen = new Set();
    for (const rater of numbers.keys()) {
      await go(page, `${bare}&raters=${only(rater, letter)}`);
      seen.add(await pixels(page));
    }
    assert.equal(seen.size, numbers.length, letter);
  }
  // The colors in the middle of areas, where there is no other.
  const color = (at) => page.evaluate(([row, column]) => {
    const { matrix: [a, b, c, d, e, f] } = window.ssnViewer.slice();
    const canvas = document.querySelector(".pane canvas");
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
    copy.drawImage(canvas, 0, 0);
    return Array.from(copy.getImageData(a * (column + 0.5) + c * (row + 0.5) + e, b * (column + 0.5) + d * (row + 0.5) + f, 1, 1).data.subarray(0, 3)).join(" ");
  }, at);
  await go(page, `${bare}&raters=${only(0, "f")}`);
  assert.equal(await color([16, 16]), "86 180 233");
  await go(page, bare.replace("prediction=o", "prediction=f"));
  assert.equal(await color([rows / 2, columns / 2]), "255 255 255");
  assert.deepEqual(problems, []);
  await page.close();
});

test("raters have their numbers in panel, histogram and readout", async () => {
  const { page, problems } = await open(chrome, `${url}&x=0,12,12`);
  await shown(page);
  const names = await page.locator(".overlay .label").allInnerTexts();
  assert.deepEqual(names.slice(2), numbers.map((number) => `rater ${number}`));
  assert.deepEqual((await page.locator(".histogram text.rater").allTextContents()).sort(), numbers.map(String));
  // The histogram is drawn anew as samples come: its lines are looked at in one go.
  const looks = (lines) => page.evaluate((selector) => [...document.querySelectorAll(selector)].map((line) => {
    const { stroke, strokeDasharray } = getComputedStyle(line);
    return `${stroke} ${strokeDasharray}`;
  }), lines);
  const dashes = await looks(".histogram .mark.rater");
  assert.equal(new Set(dashes).size, numbers.length, dashes.join("; "));
  const samples = await looks(".line-sample line");
  assert.equal(new Set(samples).size, 2 + numbers.length, samples.join("; "));
  const readout = page.locator(".readout");
  assert.match(await readout.innerText(), /raters: lesion ×7$/);
  assert.ok((await readout.getAttribute("title")).endsWith(numbers.map((number) => `rater ${number}: lesion`).join("\n")));
  assert.ok(await readout.evaluate((element) => element.scrollWidth <= element.clientWidth), "all of it is seen");
  assert.deepEqual(problems, []);
  await page.close();
});

test("black and white are those of the channel, and the address keeps tiny ones", async () => {
  const { page, problems } = await open(chrome, url);
  await shown(page);
  const black = page.locator('[data-control="black"]');
  const ends = () => black.evaluate(({ min, max, step }) => [min, max, step].map(Number));
  const bright = await ends();
  assert.ok(bright[1] > 490 && bright[2] === 1, `${bright}`);
  await page.evaluate(() => { document.querySelector('[data-group="Image"]').open = true; });
  await page.locator('[data-control="channel"]').selectOption("1");
  await shown(page);
  const faint = await ends();
  assert.ok(faint[1] > 1.9e-5 && faint[1] < 2.1e-5 && faint[2] < 1e-6, `${faint}`);
  const number = page.locator('.slider:has([data-control="black"]) .number');
  await number.fill("0.0000031");
  await number.press("Enter");
  await shown(page);
  assert.equal(await number.inputValue(), "0.0000031");
  const address = await page.evaluate(() => window.ssnViewer.fragment);
  const [low, high] = new URLSearchParams(address.slice(1)).get("window").split(",").map(Number);
  assert.ok(low === 3.1e-6 && high > 1.9e-5 && high < 2.1e-5, address);
  // A double click brings back what is usual for this channel.
  await black.dblclick();
  await shown(page);
  const usual = Number(await number.inputValue());
  assert.ok(usual >= 0 && usual < 1e-6, `${usual}`);
  await page.locator('[data-control="channel"]').selectOption("0");
  await shown(page);
  assert.deepEqual(await ends(), bright);
  assert.deepEqual(problems, []);
  await page.close();
});
