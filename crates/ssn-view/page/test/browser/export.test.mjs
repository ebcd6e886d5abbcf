// An export is one file that needs nothing else: opened from disk it shows the same, and asks for nothing.

import assert from "node:assert/strict";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

import { made, writeDistribution } from "./made.mjs";
import { BARE, browser, differences, exportTo, folder, go, labels, open, painted, sampled, shown } from "./viewer.mjs";

const data = folder();
const file = (name) => join(data, `${name}.ssn.safetensors`);
let chrome;
before(async () => {
  writeDistribution(file("picture"), made({ name: "picture", classes: ["background", "lesion"], size: [1, 128, 128], rank: 10, seed: 3 }), { half: true });
  writeDistribution(file("volume"), made({ name: "volume", classes: ["background", "lesion", "core"], size: [12, 40, 36], rank: 4, seed: 4 }));
  chrome = await browser();
});
after(() => chrome?.close());

test("an exported file works from disk, with all its cases", async () => {
  const out = join(folder(), "case.html");
  exportTo(out, data);
  console.log(`an export of a picture of 128 × 128 and a volume of 12 × 40 × 36: ${(statSync(out).size / 1e6).toFixed(2)} MB`);
  const { page, problems } = await open(chrome, `${pathToFileURL(out).href}#${BARE}&seed=3&i=2&t=1.5`);
  await shown(page);
  const expected = sampled(file("picture"), "--seed", "3", "--first", "2", "--temperature", "1.5");
  assert.equal(differences((await painted(page)).labels, expected.data), 0);
  assert.equal(differences((await labels(page)).data, expected.data), 0);
  // The state is in the address: loading it again shows the same.
  await go(page, `${BARE}&seed=9&t=0.5`);
  const address = await page.evaluate(() => { void window.ssnViewer.fragment; return location.href; });
  assert.match(address, /seed=9&t=0\.5/);
  await page.reload();
  await shown(page);
  assert.equal(differences((await labels(page)).data, sampled(file("picture"), "--seed", "9", "--temperature", "0.5").data), 0);
  await page.keyboard.press("]");
  await page.waitForFunction(() => document.title.startsWith("volume"));
  await shown(page);
  await go(page, "seed=1");
  assert.equal(differences((await labels(page)).data, sampled(file("volume"), "--seed", "1").data), 0);
  assert.deepEqual(problems, []);
  await page.close();
});

test("an exported file works inside another page, as in a notebook", async () => {
  const out = join(folder(), "case.html");
  exportTo(out, file("picture"));
  const source = readFileSync(out, "utf8").replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  const outer = join(folder(), "notebook.html");
  writeFileSync(outer, `<!doctype html><meta charset="utf-8"><iframe srcdoc="${source}" width="1100" height="640"></iframe>`);
  const { page, problems } = await open(chrome, pathToFileURL(outer).href);
  const inner = page.frames()[1];
  await shown(inner);
  assert.equal(differences((await labels(inner)).data, sampled(file("picture")).data), 0);
  // The address is written after a moment.
  await page.waitForTimeout(400);
  assert.deepEqual(problems.filter((problem) => !problem.includes("about:srcdoc")), []);
  assert.ok(!problems.some((problem) => problem.startsWith("error")), problems.join("\n"));
  await page.close();
});
