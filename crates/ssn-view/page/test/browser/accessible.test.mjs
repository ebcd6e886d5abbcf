// Readers who hear the page or use no mouse: axe-core finds nothing serious, views take keys, and changes are told.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";

import { made, writeDistribution } from "./made.mjs";
import { chrome, control, folder, go, open, part, shown, url, viewing } from "./viewer.mjs";

const data = folder();
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

viewing(() => {
  writeDistribution(join(data, "picture.ssn.safetensors"), made({ name: "picture", classes: ["background", "lesion"], size: [1, 96, 96], rank: 6, seed: 3 }));
  writeDistribution(join(data, "volume.ssn.safetensors"), made({ name: "volume", classes: ["background", "oedema", "core", "enhancing"], size: [20, 44, 52], rank: 8, seed: 9, spacing: [2.5, 1, 0.9] }));
  return data;
});

/** What axe-core finds that keeps readers from the page. */
const violations = async (page) => {
  await page.evaluate(axe);
  return page.evaluate(async () => (await window.axe.run(document)).violations.filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html.slice(0, 120)} ${failureSummary.slice(0, 200)}`).join(" | ")}`));
};

test("axe-core finds no serious violation, at any size, light or dark", async () => {
  for (const [width, height] of [[420, 860], [800, 900], [1400, 900]]) {
    for (const scheme of ["light", "dark"]) {
      const { page, problems } = await open(chrome, `${url}&case=volume&map=entropy&n=20`, { width, height, scheme });
      await shown(page);
      const where = `${width} ${scheme}`;
      if (width < 800) await control(page, "drawer").click();
      await page.evaluate(() => { for (const group of document.querySelectorAll("details")) group.open = true; });
      await shown(page);
      assert.deepEqual(await violations(page), [], where);
      await page.locator(".case-button").click();
      assert.deepEqual(await violations(page), [], `${where}, list`);
      await page.keyboard.press("Escape");
      await page.keyboard.press("Shift+S");
      assert.deepEqual(await violations(page), [], `${where}, figure`);
      await page.keyboard.press("Escape");
      await page.keyboard.press("?");
      assert.deepEqual(await violations(page), [], `${where}, help`);
      assert.deepEqual(problems, []);
      await page.close();
    }
  }
});

test("a page that cannot start is accessible too", async () => {
  const { page } = await open(chrome, url.replace(/token=.*/, "token=wrong"));
  await page.locator(".message h2").waitFor();
  assert.deepEqual(await violations(page), []);
  await page.close();
});

test("a view is reached by Tab, shows that it has the focus, and takes arrows", async () => {
  const { page, problems } = await open(chrome, `${url}&case=volume&x=9,20,25`);
  await shown(page);
  const focused = () => page.evaluate(() => document.activeElement.tagName);
  for (let press = 0; press < 30 && (await focused()) !== "CANVAS"; press++) await page.keyboard.press("Tab");
  assert.equal(await focused(), "CANVAS");
  const look = await page.evaluate(() => ({
    shadow: getComputedStyle(document.activeElement.parentElement).boxShadow, label: document.activeElement.getAttribute("aria-label"), main: document.activeElement.parentElement.dataset.main,
  }));
  assert.match(look.shadow, / 3px/, "a frame of three pixels");
  assert.match(look.label, /^axial view\. Arrow keys move the cross-hair/);
  // The patient's right is at the left and the front at the top: right is less x, up is more y.
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("PageUp");
  await shown(page);
  assert.equal(await part(page, "x"), "10,22,24");
  await page.keyboard.press("Shift+ArrowLeft");
  assert.equal(await part(page, "x"), "10,22,34");
  for (let press = 0; press < 9; press++) await page.keyboard.press("Shift+ArrowLeft");
  assert.equal(await part(page, "x"), "10,22,51", "not beyond the image");
  // Other keys are the page's, as everywhere.
  await page.keyboard.press("m");
  await shown(page);
  assert.equal(await part(page, "map"), "entropy");
  await page.locator("body").evaluate(() => document.activeElement.blur());
  await page.keyboard.press("ArrowRight");
  await shown(page);
  assert.equal(await part(page, "i"), "1", "without the focus, arrows go through samples");
  assert.deepEqual(problems, []);
  await page.close();
});

test("changes are told to those who do not see them", async () => {
  const { page, problems } = await open(chrome, `${url}&case=volume&x=9,20,25`);
  await shown(page);
  const live = page.locator('[data-control="announcement"][aria-live="polite"]');
  await page.waitForFunction(() => document.querySelector('[data-control="announcement"]').textContent.startsWith("volume, sample 0, axial slice 10 of 20"));
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => document.querySelector('[data-control="announcement"]').textContent.includes("sample 1"));
  await go(page, "x=9,22,26&axis=1");
  await page.waitForFunction(() => document.querySelector('[data-control="announcement"]').textContent.includes("coronal slice 23 of 44"));
  assert.match(await live.textContent(), /prediction: \w+/);
  assert.deepEqual(problems, []);
  await page.close();
});

test("impossible values in an address are brought to possible ones, and nothing breaks", async () => {
  const { page, problems } = await open(chrome, `${url}&case=volume&seed=-3&i=1e999&t=1e999&w=9,9,9,9&g=,,,&x=-5,1e999,1e999&axis=99&zoom=1e999&at=1e999,-1e999,0&opacity=1e9&map=nope&class=0&n=-1&channel=7&window=1e999,-1e999&hide=0,2,99&theme=pink&compare=z&b.i=-1`);
  await shown(page);
  const found = Object.fromEntries(new URLSearchParams(await page.evaluate(() => window.ssnViewer.fragment.slice(1))));
  delete found.token;
  assert.deepEqual(found, { case: "volume", i: String(2 ** 53 - 1), t: "3", w: "3,3,3,3", compare: "a", x: "0,43,51", axis: "2", zoom: "40", at: "19,0,0", opacity: "1", n: "20", hide: "2" });
  for (const name of ["picture", "volume"]) {
    // A page that is open already would write its own address over another one.
    await page.goto("about:blank");
    await page.goto(`${url}&case=${name}&map=correlation&class=-1&zoom=0&x=nan,nan,nan&layout=seven&raters=zzzzzz&sample=%E0%A4%A`);
    await shown(page);
    assert.ok(!(await page.locator(".message").isVisible()));
    assert.equal(await part(page, "zoom"), "0.2");
  }
  assert.deepEqual(problems, []);
  await page.close();
});
