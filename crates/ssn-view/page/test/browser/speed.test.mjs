// Measures how long pages take to open and how fast they answer, and prints it. Nothing depends on the times.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";

import { made, writeDistribution } from "./made.mjs";
import { chrome, folder, open, shown, url, viewing } from "./viewer.mjs";

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
