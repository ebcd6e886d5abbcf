// Makes docs/images/viewer.webp, the moving picture of the README, of docs/demo/viewer.html: samples one after the other, then the first
// mode of variation and the temperature, steered. Needs Chromium, `npm ci` in crates/ssn-view/page, and Python with Pillow.
//
//     CHROMIUM=/usr/bin/chromium node tools/viewer_animation.mjs

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const { chromium } = createRequire(join(root, "crates/ssn-view/page/package.json"))("playwright-core");
const address = pathToFileURL(join(root, "docs/demo/viewer.html")).href;

const CASE = process.env.CASE ?? "synthetic-00003";
const wave = (count, most) => Array.from({ length: count }, (_, k) => most * Math.sin((2 * Math.PI * k) / count));
/** What each picture shows, and for how many milliseconds. */
const frames = [
  ...Array.from({ length: 6 }, (_, i) => [{ i }, 700]),
  ...wave(16, 3).map((weight) => [{ i: 2, g: [weight.toFixed(2), ...Array(9).fill(1)].join() }, 120]),
  ...wave(16, 1).map((offset) => [{ i: 2, t: (1 + offset).toFixed(2) }, 120]),
];

const folder = mkdtempSync(join(tmpdir(), "ssn-animation-"));
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"] });
try {
  const page = await browser.newPage({ viewport: { width: 1100, height: 760 } });
  for (const [number, [state]] of frames.entries()) {
    const parts = new URLSearchParams({ case: CASE, theme: "dark", ...state });
    if (number === 0) await page.goto(`${address}#${parts}`);
    else await page.evaluate((hash) => { location.hash = hash; }, String(parts));
    // Groups of samples are found in the background, a second or two after a change.
    await page.waitForFunction(() => !/are being found|for now/.test(document.body.innerText), null, { timeout: 20000 });
    await page.waitForTimeout(300);
    await page.screenshot({ path: join(folder, `${String(number).padStart(3, "0")}.png`) });
  }
} finally {
  await browser.close();
}
execFileSync(process.env.PYTHON ?? "python3", ["-c", `
import sys, glob
from PIL import Image
folder, out, *times = sys.argv[1:]
pictures = [Image.open(name).convert("RGB") for name in sorted(glob.glob(folder + "/*.png"))]
pictures[0].save(out, save_all=True, append_images=pictures[1:], duration=[int(t) for t in times], loop=0, quality=70, method=6)
`, folder, join(root, "docs/images/viewer.webp"), ...frames.map(([, time]) => String(time))], { stdio: "inherit" });
rmSync(folder, { recursive: true });
