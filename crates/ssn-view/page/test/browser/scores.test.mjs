// The scores that `ssn evaluate` wrote: in the list of cases, which they sort, beside each case, and in exported files.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { made, writeDistribution, writeVolume } from "./made.mjs";
import { SSN, chrome, control, exportTo, folder, open, shown, url, viewing } from "./viewer.mjs";

const names = ["a1", "b2", "c3"];
const size = [1, 40, 48];
const root = folder();
const predictions = join(root, "predictions");

viewing(() => {
  for (const part of ["set", "predictions"]) mkdirSync(join(root, part));
  const rows = ["id,image,seg_0,seg_1"];
  names.forEach((name, i) => {
    const subject = made({ name, classes: ["background", "lesion"], size, rank: 3, seed: 5 + i });
    writeDistribution(join(predictions, `${name}.ssn.safetensors`), subject);
    // Two raters who mark blocks, the farther from the middle the later the case.
    const block = (side) => Uint8Array.from({ length: 40 * 48 }, (_, at) => Number(Math.abs(Math.floor(at / 48) - 20 - 2 * i) < side && Math.abs((at % 48) - 24 - 4 * i) < side));
    writeVolume(join(root, "set", `${name}.nii`), Float32Array.from({ length: 40 * 48 }, (_, at) => at % 100), subject);
    [8, 10].forEach((side, rater) => writeVolume(join(root, "set", `${name}_${rater}.nii`), block(side), subject));
    rows.push(`${name},${name}.nii,${name}_0.nii,${name}_1.nii`);
  });
  writeFileSync(join(root, "set/index.csv"), `${rows.join("\n")}\n`);
  writeFileSync(join(predictions, "predictions.json"), JSON.stringify({
    version: 1, model: { sha256: "5f", name: "made for a test" }, seed: 0, dataset: join(root, "set/index.csv"), split: "all",
  }));
  execFileSync(SSN, ["evaluate", predictions, "--samples", "10", "--quiet"], { stdio: ["ignore", "ignore", "inherit"] });
  return predictions;
});

/** The scores of the table that `ssn evaluate` wrote, by case. */
function written() {
  const [keys, ...rows] = readFileSync(join(predictions, "evaluation/cases.csv"), "utf8").trim().split("\n").map((line) => line.split(","));
  const at = (row, key) => Number(row[keys.indexOf(key)]);
  return new Map(rows.map((row) => [row[0], { ged2: at(row, "ged2_10"), dsc: at(row, "dsc lesion"), sample_diversity: at(row, "sample_diversity") }]));
}

/** The cells of the list, row by row. */
const listed = (page) => page.locator(".case-table tbody tr").evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));

/** What the list should hold in an order of cases, with or without the sizes that only a server knows. */
function expected(order, sizes) {
  const scores = written();
  return order.map((name) => {
    const { ged2, dsc, sample_diversity: diversity } = scores.get(name);
    return [name, ...(sizes ? ["48 × 40"] : []), ged2.toFixed(3), diversity.toFixed(3), (100 * dsc).toFixed(1)];
  });
}

async function check(address, sizes) {
  const { page, problems } = await open(chrome, address);
  await shown(page);
  await page.locator(".case-button").click();
  assert.deepEqual(await listed(page), expected(names, sizes), "as they came");
  const scores = written();
  for (const key of ["ged2", "sample_diversity", "dsc"]) {
    const upward = [...names].sort((a, b) => scores.get(a)[key] - scores.get(b)[key]);
    const sort = control(page, `sort-${key}`);
    await sort.click();
    assert.deepEqual(await listed(page), expected(upward, sizes), key);
    assert.equal(await page.locator("th[aria-sort]").getAttribute("aria-sort"), "ascending");
    await sort.click();
    assert.deepEqual(await listed(page), expected(upward.toReversed(), sizes), `${key} downward`);
    await sort.click();
    assert.deepEqual(await listed(page), expected(names, sizes), `${key} no more`);
  }
  // The cases before and after are those of the list.
  await control(page, "sort-ged2").click();
  const order = [...names].sort((a, b) => scores.get(a).ged2 - scores.get(b).ged2);
  await page.locator(".case-table tbody button").first().click();
  await page.waitForFunction((name) => document.title.startsWith(name), order[0]);
  await shown(page);
  assert.equal(await page.locator(".case-name").innerText(), `${order[0]} (1 of 3)`);
  await page.keyboard.press("]");
  await page.waitForFunction((name) => document.title.startsWith(name), order[1]);
  await shown(page);
  const about = page.locator('[data-group="About this case"]');
  const facts = await about.locator(".scores").evaluate((list) => Object.fromEntries([...list.querySelectorAll("dt")].map((name) => [name.textContent, name.nextElementSibling.textContent])));
  const { ged2, dsc, sample_diversity: diversity } = scores.get(order[1]);
  assert.deepEqual([facts["GED², 10 samples"], facts["DSC %"], facts["diversity of samples"]], [ged2.toFixed(3), (100 * dsc).toFixed(1), diversity.toFixed(3)]);
  assert.equal(facts["GED², 4 samples"], undefined, "only that of all samples");
  assert.deepEqual(problems, []);
  await page.close();
}

test("the list of a server has scores and is sorted by them, and each case tells its own", () => check(url, true));

test("an exported file has the same scores", async () => {
  const out = join(folder(), "cases.html");
  exportTo(out, predictions);
  await check(pathToFileURL(out).href, false);
});
