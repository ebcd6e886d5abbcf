// What several raters say together: where they agree, which sample is nearest to one of them, and what is at the cross-hair.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { made, uniform, writeDataset } from "./made.mjs";
import { chrome, control, folder, go, labels, open, part, pixels, shown, url, viewing } from "./viewer.mjs";

const size = [6, 40, 48];
const [depth, rows, columns] = size;
const classes = ["background", "oedema", "core"];
const subject = made({ name: "volume", classes, size, rank: 4, seed: 5 });
const random = uniform(6);
/** A ball of oedema with a core in it, shifted for each rater. */
const rater = (shift) => Uint8Array.from({ length: depth * rows * columns }, (_, i) => {
  const [z, y, x] = [Math.floor(i / (rows * columns)), Math.floor(i / columns) % rows, i % columns];
  const away = Math.hypot(2 * (z - 3), y - 20, x - 22 - shift);
  return away < 5 ? 2 : away < 11 ? 1 : 0;
});
const raters = [-6, 0, 7].map(rater);
const pictures = process.env.PICTURES;

viewing(() => {
  if (pictures) mkdirSync(pictures, { recursive: true });
  return writeDataset(folder(), subject, { images: { t1: Float32Array.from({ length: depth * rows * columns }, () => 100 * random()) }, raters });
});

const map = async (page) => {
  await page.waitForFunction(() => window.ssnViewer.map() !== null);
  return page.evaluate(() => Array.from(window.ssnViewer.map()));
};

test("agreement is the share of raters with the class, and their entropy is 0 where all agree", async () => {
  const { page, problems } = await open(chrome, `${url}&layout=single&x=2,20,22`);
  await shown(page);
  const slice = raters.map((all) => all.subarray(2 * rows * columns, 3 * rows * columns));
  const share = (label) => Array.from(slice[0], (_, i) => slice.filter((one) => one[i] === label).length / 3);
  const near = (found, wanted, what) => found.forEach((value, i) => assert.ok(Math.abs(value - wanted[i]) < 1e-6, `${what} at ${i}: ${value}, ${wanted[i]}`));
  const before = await pixels(page);
  await control(page, "map-agreement").click();
  near(await map(page), share(1), "oedema");
  assert.ok(share(1).includes(1) || share(1).includes(2 / 3));
  assert.equal(await control(page, "map-agreement").getAttribute("aria-pressed"), "true");
  await page.waitForFunction((old) => document.querySelector(".pane canvas").toDataURL() !== old, before);
  await control(page, "class").selectOption("2");
  near(await map(page), share(2), "core");
  await control(page, "map-disagreement").click();
  const wanted = slice[0].map(() => 0);
  const entropies = Array.from(wanted, (_, i) => [0, 1, 2].reduce((sum, label) => {
    const p = slice.filter((one) => one[i] === label).length / 3;
    return p > 0 ? sum - (p * Math.log(p)) / Math.log(3) : sum;
  }, 0));
  near(await map(page), entropies, "entropy");
  assert.ok(Math.max(...entropies) > 0.5);
  assert.equal(await part(page, "map"), "disagreement");
  // Another slice has a map of its own, and the address brings it back.
  await go(page, "layout=single&x=4,20,22&map=agreement&class=1");
  near(await map(page), Array.from({ length: rows * columns }, (_, i) => raters.filter((all) => all[4 * rows * columns + i] === 1).length / 3), "slice 4");
  assert.deepEqual(problems, []);
  await page.close();
});

test("the sample nearest to a rater is the one with the smallest 1 − IoU of those drawn", async () => {
  const { page, problems } = await open(chrome, `${url}&n=20&layout=single`);
  await shown(page);
  await page.waitForFunction(() => document.querySelector(".volumes progress").dataset.done === "true", null, { timeout: 60000 });
  const distances = [];
  for (let sample = 0; sample < 20; sample++) {
    await go(page, `n=20&layout=single&i=${sample}`);
    const { data } = await labels(page);
    distances.push(raters.map((marked) => {
      const iou = [1, 2].map((label) => {
        let [both, either] = [0, 0];
        data.forEach((x, i) => {
          both += Number(x === label && marked[i] === label);
          either += Number(x === label || marked[i] === label);
        });
        return either === 0 ? 1 : both / either;
      });
      return 1 - (iou[0] + iou[1]) / 2;
    }));
  }
  const chosen = new Set();
  for (const [number] of raters.entries()) {
    const best = distances.reduce((least, one, sample) => (one[number] < distances[least][number] ? sample : least), 0);
    const button = control(page, `nearest-${number}`);
    assert.equal(await button.getAttribute("aria-label"), `go to the sample nearest to rater ${number}`);
    await button.click();
    await shown(page);
    assert.equal(await control(page, "sample").inputValue(), String(best));
    assert.equal(await page.locator(".nearest .note").innerText(), `Sample ${best} is the nearest of 20 to rater ${number}: 1 − IoU = ${distances[best][number].toFixed(2)}.`);
    chosen.add(best);
  }
  assert.ok(chosen.size > 1, "or the test shows nothing");
  // Of other settings nothing is known yet.
  await page.evaluate(() => document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "T", bubbles: true })));
  assert.ok(await control(page, "nearest-0").isDisabled());
  assert.equal(await page.locator(".nearest .note").innerText(), "");
  assert.deepEqual(problems, []);
  await page.close();
});

test("the line below the views says the class of the sample at the cross-hair", async () => {
  const { page, problems } = await open(chrome, `${url}&x=2,20,22`);
  await shown(page);
  const seen = new Set();
  for (const [fragment, [z, y, x]] of [["i=3", [2, 20, 22]], ["i=3", [2, 0, 0]], ["i=8&t=2", [1, 20, 33]], ["i=2&axis=1", [4, 24, 24]]]) {
    await go(page, `${fragment}&x=${z},${y},${x}`);
    const { data } = await labels(page);
    const name = classes[data[(z * rows + y) * columns + x]];
    await page.waitForFunction((wanted) => document.querySelector(".readout").textContent.includes(wanted), `sample: ${name}`);
    seen.add(name);
  }
  assert.ok(seen.size > 1, [...seen].join());
  assert.deepEqual(problems, []);
  await page.close();
});

test("the controls of raters fit the panel, light and dark", async () => {
  for (const [width, height] of [[420, 800], [800, 700], [1400, 900]]) {
    for (const scheme of ["light", "dark"]) {
      const { page, problems } = await open(chrome, `${url}&map=agreement&n=20`, { width, height, scheme });
      await shown(page);
      const sizes = await page.evaluate(() => [...document.querySelectorAll(".chip, [data-control^=map-]")].filter((one) => one.offsetParent).map((one) => {
        const [box, panel] = [one, one.closest(".panel")].map((element) => element.getBoundingClientRect());
        return { inside: box.left >= panel.left && box.right <= panel.right, height: one.classList.contains("chip") ? box.height : 24 };
      }));
      assert.ok(sizes.every(({ inside, height: tall }) => inside && tall >= 24), `${width} ${scheme}: ${JSON.stringify(sizes)}`);
      if (pictures) await page.screenshot({ path: join(pictures, `agreement-${width}-${scheme}.png`) });
      assert.deepEqual(problems, []);
      await page.close();
    }
  }
});
