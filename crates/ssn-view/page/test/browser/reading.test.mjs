// What is written can be read and says what is used: on small views, on pressed buttons, in numbers and below saved pictures.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { made, writeDistribution } from "./made.mjs";
import { chrome, control, folder, open, part, shown, url, viewing } from "./viewer.mjs";

const data = folder();
viewing(() => {
  writeDistribution(join(data, "volume.ssn.safetensors"), made({
    name: "volume", classes: ["background", "oedema", "core", "enhancing"], size: [24, 36, 40], rank: 8, seed: 9, spacing: [2, 1, 1],
  }));
  return data;
});

/** Between words of one line, in pixels. */
const GAP = 6;

test("no text runs into another on the views of a comparison", async () => {
  const { page, problems } = await open(chrome, `${url}&x=20,20,20&compare=b&map=entropy`);
  await shown(page);
  const texts = await page.evaluate(async () => {
    const found = [];
    const fill = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
      const { actualBoundingBoxLeft: left, actualBoundingBoxRight: right, actualBoundingBoxAscent: up, actualBoundingBoxDescent: down } = this.measureText(text);
      found.push({ view: this.canvas.getAttribute("aria-label"), text, box: [x - left, y - up, x + right, y + down] });
      fill.call(this, text, x, y);
    };
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "h", bubbles: true }));
    await window.ssnViewer.settled();
    CanvasRenderingContext2D.prototype.fillText = fill;
    return found;
  });
  assert.ok(new Set(texts.map(({ view }) => view)).size === 6 && texts.length >= 6 * 6, `${texts.length} texts`);
  for (const [i, a] of texts.entries()) {
    for (const b of texts.slice(i + 1).filter((other) => other.view === a.view)) {
      const apart = a.box[2] + GAP <= b.box[0] || b.box[2] + GAP <= a.box[0] || a.box[3] <= b.box[1] || b.box[3] <= a.box[1];
      assert.ok(apart, `${a.view}: ${a.text} and ${b.text}`);
    }
  }
  assert.deepEqual(problems, []);
  await page.close();
});

test("a pressed choice is as readable under the mouse as without it", async () => {
  for (const scheme of ["light", "dark"]) {
    const { page, problems } = await open(chrome, url, { scheme });
    await shown(page);
    const pressed = page.locator('.choice button[aria-pressed="true"]:visible').first();
    const color = () => pressed.evaluate((button) => getComputedStyle(button).color);
    const before = await color();
    await pressed.hover();
    assert.equal(await color(), before, scheme);
    assert.deepEqual(problems, []);
    await page.close();
  }
});

test("a setting is rounded to what number, address and command say", async () => {
  const { page, problems } = await open(chrome, `${url}&w=1,0.123456,1,1`);
  await shown(page);
  const number = (name) => page.locator(`.slider:has([data-control="${name}"]) .number`);
  await number("temperature").fill("1.23456789");
  await number("temperature").press("Enter");
  await shown(page);
  assert.equal(await number("temperature").inputValue(), "1.2346");
  assert.equal(await number("class-1").inputValue(), "0.1235");
  assert.ok(await number("temperature").evaluate((input) => input.scrollWidth <= input.clientWidth), "all digits are seen");
  assert.deepEqual([await part(page, "t"), await part(page, "w")], ["1.2346", "1,0.1235,1,1"]);
  await Promise.all([page.waitForEvent("download"), page.keyboard.press("n")]);
  assert.match(await page.locator(".toast").innerText(), /--temperature 1\.2346 --class-scale oedema=0\.1235/);
  // What is no number leaves what was there.
  await number("temperature").fill("");
  await number("temperature").press("Enter");
  assert.equal(await number("temperature").inputValue(), "1.2346");
  assert.deepEqual(problems, []);
  await page.close();
});

test("below a picture stand all settings, in as many lines as they need", async () => {
  const height = async (fragment) => {
    const { page, problems } = await open(chrome, `${url}&${fragment}`);
    await shown(page);
    // No text may be squeezed into a width.
    await page.evaluate(() => {
      window.squeezed = 0;
      const fill = CanvasRenderingContext2D.prototype.fillText;
      CanvasRenderingContext2D.prototype.fillText = function (text, x, y, room) {
        if (room !== undefined && this.measureText(text).width > room) window.squeezed++;
        if (x + (this.textAlign === "left" ? this.measureText(text).width : 0) > this.canvas.width) window.squeezed++;
        fill.call(this, text, x, y, room);
      };
    });
    const [picture] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("s")]);
    const path = join(data, "view.png");
    await picture.saveAs(path);
    assert.equal(await page.evaluate(() => window.squeezed), 0);
    assert.deepEqual(problems, []);
    await page.close();
    return readFileSync(path).readUInt32BE(20);
  };
  const weights = "1.5,-2.25,0.5,2,0.25,-1,0.75,3";
  const [short, long] = [await height("compare=a"), await height(`compare=a&t=1.5&w=0.5,2,-1,0.25&g=${weights}&b.g=${weights}&b.d=0`)];
  // Each side needs a line more, of 16 pixels of the page.
  assert.ok(long >= short + 2 * 2 * 16, `${short} and ${long}`);
});

test("keys work after a list was used", async () => {
  const { page, problems } = await open(chrome, url);
  await shown(page);
  const focused = () => page.evaluate(() => document.activeElement?.dataset?.control ?? "");
  await control(page, "samples").focus();
  const before = await control(page, "samples").inputValue();
  await page.keyboard.press("ArrowDown");
  assert.notEqual(await control(page, "samples").inputValue(), before, "arrows are the list's");
  assert.equal(await part(page, "i"), null, "and not the page's");
  assert.equal(await focused(), "samples", "one may go on choosing");
  await page.keyboard.press("q");
  assert.equal(await part(page, "quantiles"), "1");
  // Letters of what a list offers find it there.
  await control(page, "class").focus();
  await page.keyboard.press("c");
  assert.deepEqual([await control(page, "class").inputValue(), await part(page, "compare")], ["2", null]);
  // A choice by the mouse gives all keys back.
  await control(page, "class").dispatchEvent("pointerdown");
  await control(page, "class").selectOption("3");
  assert.equal(await focused(), "");
  await page.keyboard.press("c");
  assert.equal(await part(page, "compare"), "b");
  assert.deepEqual(problems, []);
  await page.close();
});
