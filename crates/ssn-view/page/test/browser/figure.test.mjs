// A saved figure: its size, background, legend and settings, and that it shows what the views show.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { made, writeDistribution } from "./made.mjs";
import { chrome, control, folder, go, open, shown, url, viewing } from "./viewer.mjs";

const data = folder();
const pictures = process.env.PICTURES;

viewing(() => {
  writeDistribution(join(data, "picture.ssn.safetensors"), made({ name: "picture", classes: ["background", "lesion"], size: [1, 96, 128], rank: 6, seed: 3 }));
  writeDistribution(join(data, "volume.ssn.safetensors"), made({ name: "volume", classes: ["background", "oedema", "core", "enhancing"], size: [20, 44, 52], rank: 8, seed: 9, spacing: [2.5, 1, 0.9] }));
  if (pictures) mkdirSync(pictures, { recursive: true });
  return data;
});

/** Chooses in the dialog and saves; gives the size of the picture and the pixels at some of its points. */
async function save(page, choices, name, points = []) {
  await page.keyboard.press("Shift+S");
  for (const [what, value] of Object.entries(choices)) {
    const one = control(page, typeof value === "boolean" ? `figure-${what}` : `figure-${what}-${value}`);
    if (typeof value === "boolean") await one.setChecked(value);
    else await one.click();
  }
  const [saved] = await Promise.all([page.waitForEvent("download"), control(page, "figure-save").click()]);
  const path = join(pictures ?? folder(), `${name}.png`);
  await saved.saveAs(path);
  return page.evaluate(async ([png, wanted]) => {
    const bitmap = await createImageBitmap(new Blob([Uint8Array.from(atob(png), (c) => c.charCodeAt(0))]));
    const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d", { willReadFrequently: true });
    context.drawImage(bitmap, 0, 0);
    const { data: bytes } = context.getImageData(0, 0, bitmap.width, bitmap.height);
    const colors = new Set();
    for (let i = 0; i < bytes.length; i += 4) colors.add(`${bytes[i]} ${bytes[i + 1]} ${bytes[i + 2]}`);
    const at = ([x, y]) => Array.from(context.getImageData(x < 0 ? bitmap.width + x : x, y < 0 ? bitmap.height + y : y, 1, 1).data.subarray(0, 3)).join(" ");
    return { width: bitmap.width, height: bitmap.height, points: wanted.map(at), colors: [...colors] };
  }, [readFileSync(path).toString("base64"), points]);
}

test("a figure has the size and background that were chosen, without what is around the image", async () => {
  const { page, problems } = await open(chrome, `${url}&case=picture`, { width: 1400, height: 900 });
  await shown(page);
  const bare = { legend: false, settings: false };
  const one = await save(page, { scale: "1", background: "white", ...bare }, "bare-1", [[2, 2], [-3, -3]]);
  assert.deepEqual(one.points, ["255 255 255", "255 255 255"]);
  // The image has 4 columns to 3 rows, and there are 10 pixels around it.
  assert.ok(Math.abs((one.width - 20) / (one.height - 20) - 4 / 3) < 0.01, `${one.width} × ${one.height}`);
  const two = await save(page, { scale: "2", background: "black" }, "bare-2", [[2, 2]]);
  const four = await save(page, { scale: "4" }, "bare-4");
  assert.deepEqual(two.points, ["0 0 0"]);
  assert.deepEqual([two.width, two.height, four.width, four.height], [2 * one.width, 2 * one.height, 4 * one.width, 4 * one.height]);
  const explained = await save(page, { scale: "1", legend: true, settings: true }, "explained");
  assert.ok(explained.width === one.width && explained.height > one.height + 60, "legend and settings stand below");
  // The last choice stays, and a key saves with it.
  const [again] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("s")]);
  const path = join(folder(), "again.png");
  await again.saveAs(path);
  assert.deepEqual([again.suggestedFilename(), readFileSync(path).readUInt32BE(16), readFileSync(path).readUInt32BE(20)], ["picture_sample_0.png", explained.width, explained.height]);
  assert.deepEqual(problems, []);
  await page.close();
});

test("the legend has the colors of the classes that are shown, and those of the map", async () => {
  const usual = "image=0&cross=0&gallery=0&opacity=0.5";
  const { page, problems } = await open(chrome, `${url}&case=volume&${usual}`, { width: 1400, height: 900 });
  await shown(page);
  const classes = { oedema: "230 159 0", core: "86 180 233", enhancing: "204 121 167" };
  const all = await save(page, { scale: "2", background: "white" }, "classes");
  for (const [name, color] of Object.entries(classes)) assert.ok(all.colors.includes(color), name);
  await go(page, `${usual}&hide=2,3&sample=f`);
  const one = await save(page, {}, "one-class");
  assert.deepEqual(Object.values(classes).map((color) => one.colors.includes(color)), [true, false, false]);
  const none = await save(page, { legend: false }, "no-legend");
  assert.ok(!none.colors.includes(classes.oedema), "areas are half clear: the color itself is the legend's");
  await go(page, `${usual}&sample=o&map=entropy&n=20`);
  await page.waitForFunction(() => document.querySelector(".map-progress").dataset.done === "true" && window.ssnViewer.map() !== null);
  const map = await save(page, { legend: true }, "map");
  const off = await save(page, { legend: false }, "map-no-legend");
  assert.ok(map.height > off.height);
  await page.evaluate(() => {
    window.written = [];
    const fill = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
      window.written.push(text);
      fill.call(this, text, ...place);
    };
  });
  await save(page, { legend: true }, "map-text");
  const texts = await page.evaluate(() => window.written);
  for (const text of ["entropy, 20 samples", "0", "1", "axial 11 of 20", "volume · --seed 0 --first 0 --samples 1"]) assert.ok(texts.includes(text), `${text} in ${texts.join(" | ")}`);
  const lowest = ({ colors }) => colors.some((color) => color.split(" ").every((part, i) => Math.abs(Number(part) - [68, 1, 84][i]) <= 3));
  assert.deepEqual([lowest(map), lowest(off)], [true, false], "the color of 0, which is clear in the map itself");
  await page.keyboard.press("c");
  await shown(page);
  const sides = await save(page, { legend: true }, "compare");
  assert.ok(sides.width > map.width / 2 && sides.width > sides.height);
  assert.deepEqual(problems, []);
  await page.close();
});
