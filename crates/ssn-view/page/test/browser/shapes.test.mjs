// Which classes and slices are shown, and how outlines look: on maps, and where voxels are small.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";

import { made, writeDistribution } from "./made.mjs";
import { BARE, chrome, control, folder, go, open, painted, part, shown, url, viewing } from "./viewer.mjs";

const data = folder();
const volume = made({ name: "volume", classes: ["background", "oedema", "core", "enhancing"], size: [20, 44, 52], rank: 8, seed: 9, region: { start: [2, 4, 3], size: [16, 38, 40] } });
const picture = made({ name: "picture", classes: ["background", "lesion"], size: [1, 128, 128], rank: 6, seed: 3 });

viewing(() => {
  for (const subject of [picture, volume]) writeDistribution(join(data, `${subject.name}.ssn.safetensors`), subject);
  return data;
});

test("classes are switched off one by one and shown alone, in views and gallery", async () => {
  const { page, problems } = await open(chrome, `${url}&case=volume&${BARE}&x=9,24,26`, { height: 1200 });
  await shown(page);
  const whole = (await painted(page)).labels;
  assert.ok([1, 2].every((label) => whole.includes(label)));
  const seen = async () => { await shown(page); return (await painted(page)).labels; };
  await control(page, "show-class-2").uncheck();
  assert.deepEqual(await seen(), whole.map((label) => (label === 2 ? 0 : label)));
  assert.equal(await part(page, "hide"), "2");
  await control(page, "solo-class-2").click();
  assert.deepEqual(await seen(), whole.map((label) => (label === 2 ? 2 : 0)));
  assert.equal(await control(page, "solo-class-2").getAttribute("aria-pressed"), "true");
  await control(page, "solo-class-2").click();
  assert.deepEqual(await seen(), whole, "again brings all back");
  await page.keyboard.press("o");
  assert.deepEqual(await seen(), whole.map((label) => (label === 1 ? 1 : 0)));
  for (let press = 0; press < 3; press++) await page.keyboard.press("o");
  assert.equal(await part(page, "hide"), null);
  // Outlines too: with lines alone, nothing is left of a hidden class.
  await go(page, `${BARE.replace("sample=f", "sample=c")}&x=9,24,26&hide=1,2,3`);
  const colors = await page.evaluate(() => {
    const canvas = document.querySelector(".pane canvas");
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data: bytes } = copy.getImageData(150, 100, canvas.width - 300, canvas.height - 200);
    return new Set(Array.from({ length: bytes.length / 4 }, (_, i) => bytes.slice(4 * i, 4 * i + 3).join(" "))).size;
  });
  assert.equal(colors, 1);
  // The gallery follows: its pictures are empty, and have one class when that is shown alone.
  await go(page, "image=0&x=9,24,26&n=20");
  await page.waitForFunction(() => [...document.querySelectorAll(".thumb:not([hidden])")].every((thumb) => !thumb.disabled), null, { timeout: 60000 });
  const thumbs = (wanted) => page.waitForFunction((list) => {
    const seen = new Set();
    // Tiles that hold no group keep what they showed before.
    for (const canvas of document.querySelectorAll(".thumb:not([hidden]) canvas")) {
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
      copy.drawImage(canvas, 0, 0);
      const { data: bytes } = copy.getImageData(0, 0, canvas.width, canvas.height);
      for (let i = 0; i < bytes.length; i += 4) seen.add(bytes[i] > bytes[i + 2] + 20 ? "orange" : bytes[i + 2] > bytes[i] + 20 ? "blue" : "other");
    }
    return list.every((color) => seen.has(color)) && seen.size === list.length;
  }, wanted, { timeout: 20000 });
  await thumbs(["orange", "blue", "other"]);
  await control(page, "solo-class-1").click();
  await thumbs(["orange", "other"]);
  await control(page, "show-class-1").uncheck();
  await thumbs(["other"]);
  await page.keyboard.press("[");
  await page.waitForFunction(() => document.title.startsWith("picture"));
  await shown(page);
  assert.equal(await control(page, "show-class-1").count(), 0, "a single class is switched by its overlays");
  assert.deepEqual(problems, []);
  await page.close();
});

test("the slider goes through the slices of any plane and says which it is", async () => {
  const { page, problems } = await open(chrome, `${url}&case=volume&x=9,24,26`);
  await shown(page);
  const told = () => page.locator(".slice-number").innerText();
  assert.equal(await told(), "10 of 20");
  const slider = control(page, "slice");
  assert.deepEqual([await slider.getAttribute("aria-label"), await slider.getAttribute("aria-valuetext")], ["axial slice", "10 of 20"]);
  await slider.focus();
  await page.keyboard.press("ArrowRight");
  await shown(page);
  assert.deepEqual([await told(), await part(page, "x")], ["11 of 20", "10,24,26"]);
  await page.keyboard.press("Home");
  await shown(page);
  assert.deepEqual([await told(), (await page.evaluate(() => window.ssnViewer.slice())).index], ["1 of 20", 0]);
  await page.keyboard.press("End");
  assert.equal(await told(), "20 of 20");
  await control(page, "plane-2").click();
  await shown(page);
  assert.deepEqual([await told(), await part(page, "axis")], ["27 of 52", "2"]);
  await slider.evaluate((input) => { input.value = "51"; input.dispatchEvent(new Event("input")); });
  await shown(page);
  assert.deepEqual([await told(), (await part(page, "x")).split(",")[2]], ["52 of 52", "51"]);
  await page.keyboard.press("[");
  await page.waitForFunction(() => document.title.startsWith("picture"));
  assert.ok(!(await page.locator(".slice-bar").isVisible()), "a picture has one slice");
  assert.deepEqual(problems, []);
  await page.close();
});

/** How many pixels lines of a color cover, and how bright it is to the left and right of them. */
const lineOf = (page, color) => page.evaluate(([r, g, b]) => {
  const canvas = document.querySelector(".pane canvas");
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const { data: bytes, width, height } = copy.getImageData(0, 0, canvas.width, canvas.height);
  const is = (x, y) => { const at = 4 * (y * width + x); return Math.abs(bytes[at] - r) < 3 && Math.abs(bytes[at + 1] - g) < 3 && Math.abs(bytes[at + 2] - b) < 3; };
  let area = 0;
  const beside = [];
  for (let y = 1; y < height - 1; y++) {
    for (let x = 1; x < width - 1; x++) {
      if (!is(x, y)) continue;
      area++;
      // The darker of the two pixels beyond the line: the nearer one may have some of the line in it.
      const light = (at) => Math.max(...bytes.slice(4 * (y * width + at), 4 * (y * width + at) + 3));
      for (const step of [-1, 1]) if (!is(x + step, y)) beside.push(Math.min(light(x + step), light(x + 2 * step)));
    }
  }
  return { area, beside };
}, color);

test("outlines are thinner where voxels are small", async () => {
  const orange = [0xe6, 0x9f, 0x00];
  const lines = "sample=c&prediction=o&image=0&gallery=0&d=0";
  const { page, problems } = await open(chrome, `${url}&case=picture&${lines}`, { width: 1280, height: 900 });
  await shown(page);
  const large = (await lineOf(page, orange)).area;
  await go(page, `${lines}&zoom=0.3`);
  const small = (await lineOf(page, orange)).area;
  // The length of the outline is three tenths: less than two tenths of the area can only be a thinner line.
  assert.ok(small > 0 && small < 0.2 * large, `${small} of ${large}`);
  assert.deepEqual(problems, []);
  await page.close();
});

test("outlines on a map have a rim that sets them off from any of its colors", async () => {
  const orange = [0xe6, 0x9f, 0x00];
  const { page, problems } = await open(chrome, `${url}&case=picture&sample=c&prediction=o&image=0&gallery=0&d=0&map=probability&n=20&mapopacity=1`, { width: 1280, height: 900 });
  await shown(page);
  await page.waitForFunction(() => window.ssnViewer.map() !== null && document.querySelector(".map-progress").dataset.done === "true");
  await shown(page);
  const { area, beside } = await lineOf(page, orange);
  assert.ok(area > 500);
  const dark = beside.filter((light) => light < 90).length;
  assert.ok(dark > 0.8 * beside.length, `${dark} of ${beside.length} pixels beside the line are dark`);
  assert.deepEqual(problems, []);
  await page.close();
});
