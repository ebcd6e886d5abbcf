// Surfaces in 3D: of what is chosen, turned by mouse, finger and key, and a sentence where they cannot be drawn.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { test } from "node:test";

import { made, uniform, writeDataset, writeDistribution } from "./made.mjs";
import { SOFTWARE_WEBGL, chrome, control, exportTo, folder, go, labels, open, shown, url, viewing } from "./viewer.mjs";

const size = [14, 36, 40];
const [depth, rows, columns] = size;
const classes = ["background", "oedema", "core"];
const subject = made({ name: "volume", classes, size, rank: 4, seed: 9, spacing: [2, 1, 1] });
const random = uniform(6);
/** A ball of oedema with a core in it. */
const rater = (shift) => Uint8Array.from({ length: depth * rows * columns }, (_, i) => {
  const [z, y, x] = [Math.floor(i / (rows * columns)), Math.floor(i / columns) % rows, i % columns];
  const away = Math.hypot(2 * (z - 7), y - 18, x - 20 - shift);
  return away < 5 ? 2 : away < 11 ? 1 : 0;
});
const raters = [rater(-4), rater(3)];
const pictures = process.env.PICTURES;
let predictions;

viewing(() => {
  if (pictures) mkdirSync(pictures, { recursive: true });
  predictions = writeDataset(folder(), subject, { images: { t1: Float32Array.from({ length: depth * rows * columns }, () => 100 * random()) }, raters });
  writeDistribution(join(predictions, "picture.ssn.safetensors"), made({ name: "picture", classes, size: [1, 30, 30], rank: 2, seed: 2 }));
  return predictions;
}, SOFTWARE_WEBGL);

/** Triangles of the surfaces of all classes: two for each face between a voxel of a class and another. */
function triangles(map) {
  const at = (z, y, x) => (z < 0 || y < 0 || x < 0 || z >= depth || y >= rows || x >= columns ? 0 : map[(z * rows + y) * columns + x]);
  let faces = 0;
  for (let z = -1; z < depth; z++) {
    for (let y = -1; y < rows; y++) {
      for (let x = -1; x < columns; x++) {
        for (const other of [at(z + 1, y, x), at(z, y + 1, x), at(z, y, x + 1)]) {
          if (other !== at(z, y, x)) faces += Number(other > 0) + Number(at(z, y, x) > 0);
        }
      }
    }
  }
  return 2 * faces;
}

const dialog = (page) => page.locator("dialog.surface");
async function made3d(page) {
  await page.waitForFunction(() => document.querySelector("dialog.surface").dataset.done === "true", null, { timeout: 60000 });
  // Painted with the next frame.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return Number(await dialog(page).getAttribute("data-triangles"));
}
const choose = async (page, value) => {
  await control(page, "surface-of").selectOption(value);
  return made3d(page);
};
/** What is seen, without the frame of the focus. */
async function seen(page) {
  const box = await page.locator(".surface-view").boundingBox();
  return page.screenshot({ clip: { x: box.x + 5, y: box.y + 5, width: box.width - 10, height: box.height - 10 } });
}
/** How much of a picture is more blue than red, as the core is, and how much more red, as the oedema is. */
const colors = (page, png) => page.evaluate(async (base64) => {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, image.width, image.height);
  let [core, oedema] = [0, 0];
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 2] > data[i] + 30) core++;
    if (data[i] > data[i + 2] + 30) oedema++;
  }
  return { core: core / (data.length / 4), oedema: oedema / (data.length / 4) };
}, png.toString("base64"));

test("surfaces are those of the prediction, the sample, quantiles by volume and raters", async () => {
  const { page, problems } = await open(chrome, `${url}&case=volume&n=20&class=1`);
  await shown(page);
  const volumes = [];
  for (let sample = 0; sample < 20; sample++) {
    await go(page, `n=20&class=1&i=${sample}`);
    volumes.push((await labels(page)).data.filter((label) => label === 1).length);
  }
  await page.waitForFunction(() => document.querySelector(".volumes progress").dataset.done === "true");
  await page.getByRole("button", { name: "Surfaces in 3D" }).click();
  const mean = await made3d(page);
  assert.ok(mean > 1000);
  assert.equal(await choose(page, "sample"), triangles((await labels(page)).data), "sample 19");
  for (const [number, marked] of raters.entries()) assert.equal(await choose(page, `rater ${number}`), triangles(marked), `rater ${number}`);
  const order = volumes.map((_, sample) => sample).sort((a, b) => volumes[a] - volumes[b]);
  for (const share of [0.1, 0.5, 0.9]) {
    const wanted = volumes[order[20 * share]];
    await choose(page, String(share));
    const told = await page.locator("dialog.surface .note").innerText();
    const [, sample] = /^Sample (\d+), at \d+ % of 20 samples by the volume of oedema\.$/.exec(told);
    assert.equal(volumes[Number(sample)], wanted, told);
    assert.match(await control(page, "surface-class-1").innerText(), new RegExp(`^oedema ${Number((wanted * 0.002).toPrecision(3))} ml$`));
  }
  assert.equal(await choose(page, "prediction"), mean);
  // The page is the same when it is closed.
  await page.keyboard.press("Escape");
  assert.ok(!(await dialog(page).isVisible()));
  assert.equal(await control(page, "sample").inputValue(), "19");
  assert.deepEqual(problems, []);
  await page.close();
});

test("mouse, keys and fingers turn and zoom, and classes can be hidden", async () => {
  const context = await chrome.newContext({ viewport: { width: 1000, height: 800 }, hasTouch: true });
  const { page, problems } = await open(context, `${url}&case=volume`);
  await shown(page);
  await page.keyboard.press("z");
  await made3d(page);
  await choose(page, "rater 0");
  const view = page.locator('[data-control="surface-view"]');
  await view.focus();
  await page.keyboard.press("0");
  await made3d(page);
  const first = await seen(page);
  const start = await colors(page, first);
  assert.ok(start.oedema > 0.05, JSON.stringify(start));
  const changes = async (what, act) => {
    const before = await seen(page);
    await act();
    await made3d(page);
    const after = await seen(page);
    assert.ok(!before.equals(after), what);
    return after;
  };
  for (const key of ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]) await changes(key, () => page.keyboard.press(key));
  const near = await colors(page, await changes("zoom in", () => page.keyboard.press("+")));
  assert.ok(near.oedema > start.oedema);
  assert.ok((await colors(page, await changes("wheel", async () => {
    await view.hover();
    await page.mouse.wheel(0, 800);
  }))).oedema < near.oedema);
  const box = await view.boundingBox();
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await changes("drag", async () => {
    await page.mouse.move(x, y);
    await page.mouse.down();
    await page.mouse.move(x + 90, y + 20, { steps: 4 });
    await page.mouse.up();
  });
  const cdp = await context.newCDPSession(page);
  const touch = (type, ...points) => cdp.send("Input.dispatchTouchEvent", { type, touchPoints: points.map(([a, b], id) => ({ x: a, y: b, id })) });
  await changes("a finger", async () => {
    await touch("touchStart", [x, y]);
    await touch("touchMove", [x - 60, y + 30]);
    await touch("touchEnd");
  });
  const before = await colors(page, await seen(page));
  const spread = await colors(page, await changes("two fingers", async () => {
    await touch("touchStart", [x - 20, y], [x + 20, y]);
    await touch("touchMove", [x - 60, y], [x + 60, y]);
    await touch("touchEnd");
  }));
  assert.ok(spread.oedema > before.oedema, "fingers that spread enlarge");
  await view.focus();
  await page.keyboard.press("0");
  await made3d(page);
  assert.ok((await seen(page)).equals(first), "0 brings all back");
  // Classes.
  const bare = await colors(page, await changes("no oedema", () => control(page, "surface-class-1").click()));
  assert.ok(bare.oedema < 0.001 && bare.core > start.core, JSON.stringify(bare));
  assert.equal(await control(page, "surface-class-1").getAttribute("aria-pressed"), "false");
  await control(page, "surface-class-2").click();
  await control(page, "surface-class-1").click();
  await made3d(page);
  const outer = await colors(page, await seen(page));
  assert.ok(outer.core < 0.001 && outer.oedema > 0.05, JSON.stringify(outer));
  // It can be saved, opened again, and left with its work undone.
  const [saved] = await Promise.all([page.waitForEvent("download"), dialog(page).getByRole("button", { name: "Save this view as PNG" }).click()]);
  assert.equal(saved.suggestedFilename(), "volume_sample_0_surfaces.png");
  await dialog(page).getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Surfaces in 3D" }).click();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Surfaces in 3D" }).click();
  await made3d(page);
  assert.ok((await colors(page, await seen(page))).oedema > 0.05);
  assert.deepEqual(problems, []);
  await context.close();
});

test("without WebGL, a sentence says so; pictures have no surfaces", async () => {
  const context = await chrome.newContext();
  await context.addInitScript(() => {
    const { getContext } = HTMLCanvasElement.prototype;
    HTMLCanvasElement.prototype.getContext = function context(kind, ...rest) {
      return kind === "webgl2" ? null : getContext.call(this, kind, ...rest);
    };
  });
  const { page, problems } = await open(context, `${url}&case=volume`);
  await shown(page);
  await page.keyboard.press("z");
  assert.match(await page.locator(".surface-message").innerText(), /no WebGL 2.*slices show the same/);
  await page.keyboard.press("Escape");
  await go(page, "i=2");
  assert.equal((await labels(page)).size.join(), size.join());
  await page.evaluate((address) => { location.hash = `${address}&case=picture`; }, new URL(url).hash);
  await page.waitForFunction(() => document.title.startsWith("picture"));
  await shown(page);
  assert.equal(await page.getByRole("button", { name: "Surfaces in 3D" }).isVisible(), false);
  await page.keyboard.press("z");
  assert.equal(await dialog(page).isVisible(), false);
  assert.deepEqual(problems, []);
  await context.close();
});

test("an exported page has surfaces, too", async () => {
  const file = join(folder(), "cases.html");
  exportTo(file, predictions, "--case", "volume");
  const { page, problems } = await open(chrome, pathToFileURL(file).href);
  await shown(page);
  await page.keyboard.press("z");
  await made3d(page);
  assert.equal(await choose(page, "rater 1"), triangles(raters[1]));
  assert.ok((await colors(page, await seen(page))).oedema > 0.03);
  assert.deepEqual(problems, []);
  await page.close();
});

test("the view fits the window, light and dark, and its controls can be touched", async () => {
  for (const [width, height] of [[420, 800], [800, 700], [1400, 900]]) {
    for (const scheme of ["light", "dark"]) {
      const { page, problems } = await open(chrome, `${url}&case=volume&n=20`, { width, height, scheme });
      await shown(page);
      await page.keyboard.press("z");
      await made3d(page);
      const found = await page.evaluate(() => {
        const all = [...document.querySelectorAll("dialog.surface, dialog.surface button, dialog.surface select, .surface-view")];
        return all.map((one) => {
          const { left, right, top, bottom } = one.getBoundingClientRect();
          return { name: one.className, inside: left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight, large: right - left >= 24 && bottom - top >= 24 };
        });
      });
      assert.ok(found.every(({ inside, large }) => inside && large), `${width} ${scheme}: ${JSON.stringify(found)}`);
      const view = await page.locator(".surface-view").boundingBox();
      assert.ok(view.height > 0.5 * height && view.width > 0.75 * Math.min(width, 1100), JSON.stringify(view));
      if (pictures) await page.screenshot({ path: join(pictures, `surface-${width}-${scheme}.png`) });
      assert.deepEqual(problems, []);
      await page.close();
    }
  }
});
