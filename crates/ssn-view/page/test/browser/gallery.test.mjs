// The gallery is filled as samples arrive, and what many samples say does not depend on how many workers drew them.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { made, writeDistribution } from "./made.mjs";
import { chrome, control, exportTo, folder, holding, labels, open, shown, url, viewing } from "./viewer.mjs";

const data = folder();
/** Large enough for helpers of the worker. */
const large = made({ name: "large", classes: ["background", "oedema", "core"], size: [20, 84, 90], rank: 10, seed: 9 });
/** Some samples have nothing of the class, and some do. */
const faint = made({ name: "faint", classes: ["background", "lesion"], size: [1, 40, 40], rank: 2, seed: 4 });
faint.mean.fill(-1, faint.v);
faint.diagonal.fill(1e-6);
faint.factor.fill(0);
faint.factor.fill(3, faint.v, faint.v + 30);

viewing(() => {
  for (const one of [large, faint]) writeDistribution(join(data, `${one.name}.ssn.safetensors`), one);
  return data;
});

const found = (page) => page.waitForFunction(() => /groups of alike/.test(document.querySelector(".gallery .note").textContent), null, { timeout: 120000 });
/** Which tiles have a picture of their own. */
const painted = (page) => page.evaluate(() => [...document.querySelectorAll(".thumb canvas")].map((canvas) => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
  copy.drawImage(canvas, 0, 0);
  return copy.getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value > 0);
}));
const names = (page) => page.locator(".thumb:not([hidden])").evaluateAll((tiles) => tiles.map((tile) => tile.getAttribute("aria-label")));

/** There are groups, each with its share. */
function grouped(list) {
  assert.ok(list.length > 1 && list.length <= 8 && new Set(list).size === list.length, list.join());
  assert.ok(list.every((name) => /^\d+ %(, rare)?, sample \d+/.test(name)), list.join());
}

/** A page that has so many CPU cores. */
async function withCores(cores, address) {
  const context = await chrome.newContext({ viewport: { width: 1400, height: 900 } });
  await holding(context);
  await context.addInitScript((count) => Object.defineProperty(navigator, "hardwareConcurrency", { value: count }), cores);
  return open(context, address);
}

test("the first samples are shown before many are drawn", async () => {
  const { page, problems } = await withCores(2, `${url}&case=large&n=20`);
  await page.evaluate(() => window.held.channels.add("survey"));
  await shown(page);
  await page.waitForFunction(() => !document.querySelector(".thumb").disabled);
  while ((await painted(page)).includes(false)) await page.waitForTimeout(20);
  assert.deepEqual(await names(page), Array.from({ length: 8 }, (_, sample) => `sample ${sample}`));
  assert.match(await page.locator(".gallery .note").innerText(), /being found/);
  const height = () => page.evaluate(() => document.querySelector(".pane canvas").clientHeight);
  const before = await height();
  await page.locator(".thumb").nth(5).click();
  await shown(page);
  assert.equal(await control(page, "sample").inputValue(), "5");
  await page.evaluate(() => window.release());
  await found(page);
  grouped(await names(page));
  assert.equal(await height(), before, "the view keeps its size when groups are found");
  assert.deepEqual(problems, []);
  await page.context().close();
});

test("volumes and groups of samples are the same with one worker and with several", async () => {
  const seen = [];
  for (const cores of [1, 2, 5]) {
    const { page, problems } = await withCores(cores, `${url}&case=large&n=20&seed=6`);
    await shown(page);
    await found(page);
    seen.push(JSON.stringify([await names(page), await page.locator(".volumes .figures").innerText()]));
    const workers = page.workers().length;
    assert.equal(workers, cores > 1 ? 1 + cores : 1, `${cores} cores`);
    // Another setting while helpers work, and another case: nothing of it is left.
    await control(page, "temperature").focus();
    await page.keyboard.press("ArrowRight");
    await page.waitForTimeout(300);
    await page.keyboard.press("ArrowLeft");
    await found(page);
    assert.equal(JSON.stringify([await names(page), await page.locator(".volumes .figures").innerText()]), seen[0]);
    await page.keyboard.press("[");
    await page.waitForFunction(() => document.title.startsWith("faint"));
    await shown(page);
    await found(page);
    assert.equal(page.workers().length, 1, "helpers end with their case");
    assert.deepEqual(problems, []);
    await page.context().close();
  }
  assert.equal(new Set(seen).size, 1, seen.join("\n"));
});

test("an exported page has helpers, too", async () => {
  const file = join(folder(), "large.html");
  exportTo(file, data, "--case", "large");
  const { page, problems } = await withCores(2, `${pathToFileURL(file).href}#n=20`);
  await shown(page);
  await found(page);
  assert.equal(page.workers().length, 3);
  grouped(await names(page));
  assert.deepEqual(problems, []);
  await page.context().close();
});

test("an empty sample says so", async () => {
  const { page, problems } = await withCores(2, `${url}&case=faint&n=20`);
  await shown(page);
  await found(page);
  const told = await names(page);
  const empty = [];
  for (const [place, name] of told.entries()) {
    await page.locator(".thumb").nth(place).click();
    await shown(page);
    const { data: map } = await labels(page);
    empty.push(map.every((label) => label === 0));
    assert.equal(/, empty$/.test(name), empty[place], name);
    assert.equal(await page.locator(".thumb-empty").nth(place).isVisible(), empty[place], name);
  }
  assert.ok(empty.includes(true) && empty.includes(false), `${empty}`);
  assert.deepEqual(problems, []);
  await page.context().close();
});
