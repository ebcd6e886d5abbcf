// Small pages and fingers: the drawer, the size of what is touched, and pinching.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { made, writeDistribution } from "./made.mjs";
import { chrome, control, folder, open, part, shown, url, viewing } from "./viewer.mjs";

const data = folder();
const pictures = process.env.PICTURES;

viewing(() => {
  writeDistribution(join(data, "picture.ssn.safetensors"), made({ name: "picture", classes: ["background", "lesion"], size: [1, 96, 96], rank: 6, seed: 3 }));
  writeDistribution(join(data, "volume.ssn.safetensors"), made({ name: "volume", classes: ["background", "oedema", "core", "enhancing"], size: [20, 44, 52], rank: 8, seed: 9, spacing: [2.5, 1, 0.9] }));
  if (pictures) mkdirSync(pictures, { recursive: true });
  return data;
});

const sizes = [[420, 860], [800, 900], [1400, 900]];

test("below 800 pixels the panel is a drawer below the picture; from there on it stands beside it", async () => {
  for (const [width, height] of sizes) {
    for (const scheme of ["light", "dark"]) {
      const { page, problems } = await open(chrome, `${url}&case=volume`, { width, height, scheme });
      await shown(page);
      const box = async (selector) => (await page.locator(selector).first().boundingBox()) ?? { y: 0, height: 0, x: 0, width: 0 };
      const handle = control(page, "drawer");
      assert.equal(await handle.isVisible(), width < 800, `${width}`);
      const fits = () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth && document.documentElement.scrollHeight <= innerHeight);
      assert.ok(await fits(), `${width} ${scheme}`);
      if (pictures) await page.screenshot({ path: join(pictures, `volume-${width}-${scheme}.png`) });
      if (width < 800) {
        assert.ok(!(await page.locator(".panel").isVisible()));
        await handle.click();
        await shown(page);
        assert.equal(await handle.getAttribute("aria-expanded"), "true");
        const [picture, panel] = [await box(".pane"), await box(".panel")];
        assert.ok(picture.height > 200 && picture.y + picture.height <= panel.y, "the picture stays on top");
        assert.ok(panel.height > 300);
        assert.ok(await fits());
        assert.ok(await page.evaluate(() => document.querySelector(".panel").scrollWidth <= document.querySelector(".panel").clientWidth));
        // What the drawer changes is seen at once.
        await control(page, "map-entropy").click();
        await page.waitForFunction(() => window.ssnViewer.map() !== null);
        if (pictures) await page.screenshot({ path: join(pictures, `drawer-${width}-${scheme}.png`) });
        await handle.click();
        assert.ok(!(await page.locator(".panel").isVisible()));
      } else {
        const [picture, panel] = [await box(".pane"), await box(".panel")];
        assert.ok(panel.x >= picture.x + picture.width);
      }
      assert.deepEqual(problems, []);
      await page.close();
    }
  }
});

test("whatever is touched is at least 24 pixels wide and high", async () => {
  for (const [width, height] of sizes) {
    for (const name of ["picture", "volume"]) {
      const { page, problems } = await open(chrome, `${url}&case=${name}&compare=b`, { width, height });
      await shown(page);
      if (width < 800) await control(page, "drawer").click();
      await page.evaluate(() => { for (const group of document.querySelectorAll("details")) group.open = true; });
      await page.locator(".case-button").click();
      const small = () => page.evaluate(() => [...document.querySelectorAll("button, input, select, summary, a[href]")].flatMap((element) => {
        // A box is switched by its label.
        const target = element.type === "checkbox" ? element.closest("label") : element;
        const { width, height } = target.getBoundingClientRect();
        return width > 0 && (width < 24 || height < 24) ? [`${element.dataset.control ?? element.className} ${element.textContent.slice(0, 20)} ${width.toFixed(1)} × ${height.toFixed(1)}`] : [];
      }));
      assert.deepEqual(await small(), [], `${name} at ${width}`);
      await page.keyboard.press("Escape");
      await page.keyboard.press("Shift+S");
      assert.deepEqual(await small(), [], `figure at ${width}`);
      assert.deepEqual(problems, []);
      await page.close();
    }
  }
});

test("two fingers zoom and move the image, one chooses a voxel or moves it", async () => {
  const context = await chrome.newContext({ viewport: { width: 420, height: 860 }, hasTouch: true, isMobile: true });
  const page = await context.newPage();
  const problems = [];
  page.on("console", (message) => problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(error.message));
  await page.goto(`${url}&case=picture&x=0,5,5`);
  await shown(page);
  const session = await context.newCDPSession(page);
  const touch = (type, ...points) => session.send("Input.dispatchTouchEvent", { type, touchPoints: points.map(([x, y], id) => ({ x, y, id })) });
  const { x, y, width, height } = await page.locator(".pane canvas").boundingBox();
  const [cx, cy] = [x + width / 2, y + height / 2];
  await page.touchscreen.tap(cx, cy);
  await shown(page);
  assert.ok(["0,48,48", "0,47,47", "0,47,48", "0,48,47"].includes(await part(page, "x")), `a tap chooses: ${await part(page, "x")}`);
  await touch("touchStart", [cx - 30, cy]);
  await touch("touchStart", [cx - 30, cy], [cx + 30, cy]);
  for (const apart of [40, 50, 60]) await touch("touchMove", [cx - apart, cy], [cx + apart, cy]);
  await touch("touchEnd");
  await shown(page);
  assert.ok(Math.abs(Number(await part(page, "zoom")) - 2) < 0.02, `twice as far apart is twice as large: ${await part(page, "zoom")}`);
  const center = async () => (await part(page, "at")).split(",").map(Number);
  const still = await center();
  assert.ok(still.slice(1).every((at) => Math.abs(at - 47.5) < 1.5), `what is between the fingers stays: ${still}`);
  await touch("touchStart", [cx - 30, cy]);
  await touch("touchStart", [cx - 30, cy], [cx + 30, cy]);
  for (const by of [10, 20, 30]) await touch("touchMove", [cx - 30 + by, cy], [cx + 30 + by, cy]);
  await touch("touchEnd");
  await shown(page);
  const moved = await center();
  assert.ok(moved[2] < still[2] - 2 && Math.abs(moved[1] - still[1]) < 0.5, `both to the right: ${still} → ${moved}`);
  await touch("touchStart", [cx, cy]);
  for (const by of [10, 20, 30]) await touch("touchMove", [cx, cy + by]);
  await touch("touchEnd");
  await shown(page);
  assert.ok((await center())[1] < moved[1] - 2, "one finger moves it");
  assert.deepEqual(problems, []);
  await context.close();
});
