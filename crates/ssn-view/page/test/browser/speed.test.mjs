// Measures how long pages take to open and how fast they answer, and prints it. Nothing depends on the times. LARGE may name a
// folder of predictions whose first case is opened as well.

import assert from "node:assert/strict";
import { loadavg } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { made, writeDistribution } from "./made.mjs";
import { chrome, folder, open, serve, shown, url, viewing } from "./viewer.mjs";

const data = folder();
viewing(() => {
  writeDistribution(join(data, "picture.ssn.safetensors"), made({ name: "picture", classes: ["background", "lesion"], size: [1, 128, 128], rank: 10, seed: 3 }));
  writeDistribution(join(data, "volume.ssn.safetensors"), made({
    name: "volume", classes: ["background", "oedema", "core", "enhancing"], size: [12, 240, 240], rank: 10, seed: 9, spacing: [1, 1, 1],
  }), { half: true });
  return data;
});

const ms = (times) => {
  const sorted = [...times].sort((a, b) => a - b);
  return `${sorted[Math.floor(sorted.length / 2)].toFixed(1)} ms (${sorted[0].toFixed(1)} to ${sorted.at(-1).toFixed(1)})`;
};

for (const [name, what] of [["picture", "128 × 128, 2 classes, rank 10"], ["volume", "a slice of 240 × 240, 4 classes, rank 10"]]) {
  test(`${what}: times`, async () => {
    const { page, problems } = await open(chrome, `${url}&case=${name}&layout=single&gallery=0`);
    await shown(page);
    const { load, transfer, open: opened } = await page.evaluate(() => ({ ...window.ssnViewer.timings }));
    console.log(`${what}: first picture after ${load.toFixed(0)} ms; the case ${opened.toFixed(0)} ms, of which ${transfer.toFixed(0)} ms for its bytes`);
    // Volumes of many samples are drawn in the background; frames are measured beside that, and without it.
    await page.waitForTimeout(4000);
    const moves = {
      temperature: (i) => ["temperature", 0.5 + 0.05 * i], "class scale": (i) => ["class-1", -1 + 0.1 * i], "mode weight": (i) => ["mode-0", -2 + 0.2 * i],
      "another sample": null,
    };
    for (const [control, move] of Object.entries(moves)) {
      const frames = [];
      const sampling = [];
      for (let i = 0; i < 20; i++) {
        const times = await page.evaluate(async ([slider, value]) => {
          if (slider) {
            const range = document.querySelector(`[data-control="${slider}"]`);
            range.value = String(value);
            range.dispatchEvent(new Event("input", { bubbles: true }));
          } else {
            document.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
          }
          await window.ssnViewer.settled();
          return { ...window.ssnViewer.timings };
        }, move ? move(i) : [null, 0]);
        frames.push(times.frame);
        sampling.push(times.sampling);
      }
      console.log(`${what}: ${control}: painted after ${ms(frames)}, of which sampling ${ms(sampling)}`);
    }
    assert.deepEqual(problems, []);
    await page.close();
  });
}

test("the gallery: times", async () => {
  const server = process.env.LARGE && serve(process.env.LARGE);
  const pages = [["240 × 240 × 12, 4 classes, rank 10", `${url}&case=volume`], ...(server ? [[process.env.LARGE, await server.url]] : [])];
  for (const [what, address] of pages) {
    const start = performance.now();
    const { page, problems } = await open(chrome, address);
    await shown(page);
    const opened = performance.now() - start;
    // A tile is painted when it has a color of its own in the middle.
    const tiles = () => page.evaluate(() => [...document.querySelectorAll(".thumb canvas")].filter((canvas) => {
      const copy = new OffscreenCanvas(1, 1).getContext("2d");
      copy.drawImage(canvas, -canvas.width / 2, -canvas.height / 2);
      return copy.getImageData(0, 0, 1, 1).data[3] > 0;
    }).length);
    while (await tiles() < 8) await page.waitForTimeout(10);
    const first = performance.now() - start;
    await page.waitForFunction(() => /groups of alike/.test(document.querySelector(".gallery .note").textContent), null, { timeout: 600000 });
    console.log(`${what}: shown after ${opened.toFixed(0)} ms, eight samples in the gallery after ${first.toFixed(0)} ms, groups after ${(performance.now() - start).toFixed(0)} ms; load ${loadavg()[0].toFixed(1)}`);
    assert.deepEqual(problems, []);
    await page.close();
  }
  await (server && server.stop());
});
