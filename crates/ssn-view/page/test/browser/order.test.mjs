// What is shown is of what was chosen last, in whatever order answers come.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";

import { made, writeDistribution } from "./made.mjs";
import { chrome, control, folder, go, holding, labels, open, shown, url, viewing } from "./viewer.mjs";

const data = folder();
const cases = {
  picture: made({ name: "picture", classes: ["background", "lesion"], size: [1, 96, 96], rank: 6, seed: 3 }),
  volume: made({ name: "volume", classes: ["background", "oedema", "core"], size: [6, 30, 32], rank: 4, seed: 9 }),
};

viewing(() => {
  for (const [name, made] of Object.entries(cases)) writeDistribution(join(data, `${name}.ssn.safetensors`), made);
  return data;
});

/** A page whose answers can be held back. */
async function held(fragment) {
  const context = await chrome.newContext();
  await holding(context);
  const found = await open(context, `${url}&${fragment}`);
  await shown(found.page);
  return found;
}

/** The map of the main view, once it is there. */
async function map(page) {
  await page.waitForFunction(() => window.ssnViewer.map() !== null && document.querySelector(".map-progress").dataset.done === "true");
  return page.evaluate(() => Array.from(window.ssnViewer.map()));
}

test("a map is of the kind, the class and the voxel that are chosen, at every moment", async () => {
  const { page, problems } = await held("case=volume&layout=single&x=3,15,16&n=20");
  await control(page, "map-correlation").click();
  const moves = await map(page);
  assert.equal(moves[15 * 32 + 16], 1);
  /** What the page has at once after a click, before any answer can come. */
  const atOnce = (name) => page.evaluate((name) => {
    document.querySelector(`[data-control="${name}"]`).click();
    const found = window.ssnViewer.map();
    return found && Array.from(found);
  }, name);
  assert.equal(await atOnce("map-entropy"), null, "nothing while it is on its way");
  const entropy = await map(page);
  assert.ok(Math.min(...entropy) >= 0 && Math.max(...entropy) > 0.5);
  assert.deepEqual(await atOnce("map-correlation"), moves, "what is known is shown at once");
  assert.deepEqual(await map(page), moves, "and stays");
  assert.deepEqual(await atOnce("map-entropy"), entropy);
  const probability = await atOnce("map-probability");
  assert.notDeepEqual(probability, entropy);
  // Another class, other settings, another voxel.
  await control(page, "class").selectOption("2");
  const core = await map(page);
  assert.notDeepEqual(core, probability);
  const press = (key) => page.evaluate((key) => {
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    return window.ssnViewer.map();
  }, key);
  assert.equal(await press("T"), null, "a map of other settings is not shown");
  assert.notDeepEqual(await map(page), core);
  await control(page, "map-correlation").click();
  assert.notDeepEqual(await map(page), moves);
  await go(page, "layout=single&x=3,12,20&n=20&map=correlation&class=2");
  assert.equal((await map(page))[12 * 32 + 20], 1);
  assert.deepEqual(problems, []);
  await page.context().close();
});

test("a map that was left while it grew grows to its end when it comes back", async () => {
  const { page, problems } = await held("case=picture&n=200&map=entropy");
  // In the moment in which the first of it is there.
  const grown = await page.evaluate(async () => {
    while (window.ssnViewer.map() === null) await new Promise((done) => setTimeout(done, 1));
    document.querySelector('[data-control="map-none"]').click();
    return document.querySelector(".map-progress").value;
  });
  await page.waitForFunction(() => document.querySelector(".map-progress").dataset.done === "true");
  await control(page, "map-entropy").click();
  const found = await map(page);
  await go(page, "n=20&map=entropy");
  await go(page, "n=200&map=entropy");
  assert.deepEqual(found, await map(page), `it was left at ${grown}`);
  assert.deepEqual(problems, []);
  await page.context().close();
});

test("the case that was chosen last is shown, however late the others come", async () => {
  const { page, problems } = await held("case=picture");
  const choose = async (name) => {
    await page.locator(".case-button").click();
    await control(page, "search").fill(name);
    await control(page, "search").press("Enter");
  };
  for (const fails of [false, true]) {
    await page.evaluate(() => { window.held.paths = true; });
    await choose("volume");
    await page.waitForFunction(() => window.held.answers.length === 1);
    await page.evaluate(() => { window.held.paths = false; });
    await choose("picture");
    await page.waitForFunction(() => document.querySelector(".message").hidden);
    await shown(page);
    await page.evaluate((fails) => window.held.answers.splice(0).forEach((answer) => answer(fails)), fails);
    await page.waitForTimeout(500);
    await shown(page);
    assert.match(await page.title(), /^picture/);
    assert.equal(await page.locator(".message").isVisible(), false);
    assert.match(await page.locator(".case-name").innerText(), /^picture/);
    assert.equal((await labels(page)).size.join(), "1,96,96");
  }
  assert.deepEqual(problems, []);
  await page.context().close();
});

/** The pixels of the class that the page says this sample has, once it says so, and those that it has. */
async function volumes(page) {
  await page.waitForFunction(() => /this sample \d/.test(document.querySelector(".volumes .figures").textContent)
    && document.querySelector(".volumes progress").dataset.done === "true");
  const text = await page.locator(".volumes .figures").innerText();
  const told = Number(/this sample ([\d,]+)/.exec(text)[1].replaceAll(",", ""));
  return { told, counted: (await labels(page)).data.filter((label) => label === 1).length };
}

for (const [what, channel, key, fragment] of [
  ["another sample", "volume", "ArrowRight", "i=1000"],
  ["other settings", "survey", "T", "i=4"],
]) {
  test(`the volume of this sample is not that of ${what}, from an answer that comes late`, async () => {
    const { page, problems } = await held(`case=picture&n=20&${fragment}`);
    const before = await volumes(page);
    assert.equal(before.told, before.counted);
    await page.evaluate((channel) => window.held.channels.add(channel), channel);
    const press = () => document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "KEY", bubbles: true }));
    const pressed = `(${press})()`.replace("KEY", key);
    await page.evaluate(pressed);
    await page.waitForFunction(() => window.held.answers.length > 0);
    const between = (await labels(page)).data.filter((label) => label === 1).length;
    // The answer comes after the next step, and before anything else is asked for.
    await page.evaluate(`${pressed}; window.release()`);
    const found = await volumes(page);
    assert.notEqual(found.counted, between, "or the test shows nothing");
    assert.equal(found.told, found.counted);
    assert.deepEqual(problems, []);
    await page.context().close();
  });
}
