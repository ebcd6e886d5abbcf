// Every control does what it says, the address restores all of it, and what is saved is what is shown.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";

import { made, writeDistribution } from "./made.mjs";
import { BARE, SSN, chrome, control, differences, folder, go, labels, open, painted, part, pixels, readLabels, sampled, shown, url, viewing } from "./viewer.mjs";

const data = folder();
const cases = {
  picture: made({ name: "picture", classes: ["background", "lesion"], size: [1, 128, 128], rank: 10, seed: 3 }),
  volume: made({
    name: "volume", classes: ["background", "oedema", "core", "enhancing"], size: [20, 44, 52], rank: 8, seed: 9, spacing: [2.5, 1, 0.9],
    region: { start: [2, 4, 3], size: [16, 38, 40] },
  }),
};
const file = (name) => join(data, `${name}.ssn.safetensors`);
/** Where pictures of the page go, if anywhere. */
const pictures = process.env.PICTURES;

viewing(() => {
  for (const [name, made] of Object.entries(cases)) writeDistribution(file(name), made);
  if (pictures) mkdirSync(pictures, { recursive: true });
  return data;
});

/** Moves a slider as its number does. */
async function slide(page, name, value) {
  const number = page.locator(`.slider:has([data-control="${name}"]) .number`);
  await number.fill(String(value));
  await number.press("Enter");
  await shown(page);
}
const fragment = (page) => page.evaluate(() => window.ssnViewer.fragment);

test("the sliders and switches steer as the command line's options do", async () => {
  const { page, problems } = await open(chrome, `${url}&case=picture&${BARE}`);
  await shown(page);
  const moves = [
    [() => slide(page, "temperature", 1.7), ["--temperature", "1.7"]],
    [() => slide(page, "class-1", -2.5), ["--temperature", "1.7", "--class-scale", "lesion=-2.5"]],
    [() => slide(page, "mode-0", -1.35), ["--temperature", "1.7", "--class-scale", "lesion=-2.5", "--mode-weight", "0=-1.35"]],
    [() => control(page, "diagonal").uncheck(), ["--temperature", "1.7", "--class-scale", "lesion=-2.5", "--mode-weight", "0=-1.35", "--no-diagonal-noise"]],
    [() => page.keyboard.press("r"), []],
    [() => page.keyboard.press("d"), ["--no-diagonal-noise"]],
    [() => page.keyboard.press("T"), ["--no-diagonal-noise", "--temperature", "1.1"]],
  ];
  let first = 0;
  for (const [move, args] of moves) {
    await move();
    await shown(page);
    const expected = sampled(file("picture"), "--seed", "0", ...args);
    assert.equal(differences((await painted(page)).labels, expected.data), 0, args.join(" "));
    first++;
  }
  assert.equal(first, moves.length);
  await control(page, "seed").fill("18446744073709551615");
  await control(page, "seed").press("Enter");
  await control(page, "sample").fill("123456789012");
  await control(page, "sample").press("Enter");
  await shown(page);
  const expected = sampled(file("picture"), "--seed", "18446744073709551615", "--first", "123456789012", "--no-diagonal-noise", "--temperature", "1.1");
  assert.equal(differences((await painted(page)).labels, expected.data), 0);
  // What is no seed is not taken.
  await control(page, "seed").fill("18446744073709551616");
  await control(page, "seed").press("Enter");
  assert.equal(await control(page, "seed").inputValue(), "18446744073709551615");
  assert.deepEqual(problems, []);
  await page.close();
});

test("play, sweep and arrows move through samples and modes", async () => {
  const { page, problems } = await open(chrome, `${url}&case=picture`);
  await shown(page);
  const sample = async () => Number(await control(page, "sample").inputValue());
  await page.locator(".pane canvas").first().click();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Shift+ArrowRight");
  assert.equal(await sample(), 11);
  await page.keyboard.press("ArrowLeft");
  assert.equal(await sample(), 10);
  await control(page, "speed").selectOption("20");
  await control(page, "play").click();
  await page.waitForFunction(() => Number(document.querySelector('[data-control="sample"]').value) > 13);
  await control(page, "play").click();
  const stopped = await sample();
  await page.waitForTimeout(200);
  assert.equal(await sample(), stopped);
  await slide(page, "mode-0", 0.5);
  await control(page, "sweep-0").click();
  await page.waitForFunction(() => Number(document.querySelector('[data-control="mode-0"]').value) > 1.5);
  await control(page, "sweep-0").click();
  assert.equal(await control(page, "mode-0").inputValue(), "0.5", "the weight comes back");
  assert.deepEqual(problems, []);
  await page.close();
});

test("overlays, maps and contours change what is painted", async () => {
  const { page, problems } = await open(chrome, `${url}&case=volume&x=9,22,22`);
  await shown(page);
  const seen = new Set([await pixels(page)]);
  const changes = async (what, act) => {
    const before = await pixels(page);
    await act();
    await page.waitForFunction((old) => document.querySelector(".pane canvas").toDataURL() !== old, before, { timeout: 20000 });
    seen.add(await pixels(page));
    assert.ok(seen.size > 1, what);
  };
  for (const style of ["fill", "contour", "off"]) await changes(style, () => control(page, `sample-style-${style}`).click());
  for (const style of ["contour", "off", "fill"]) await changes(`prediction ${style}`, () => control(page, `prediction-style-${style}`).click());
  await changes("opacity", () => slide(page, "opacity", 0.9));
  for (const map of ["entropy", "probability", "correlation"]) await changes(map, () => control(page, `map-${map}`).click());
  await changes("class", () => control(page, "class").selectOption("2"));
  await changes("map opacity", () => slide(page, "map-opacity", 0.3));
  await changes("no map", () => control(page, "map-none").click());
  await changes("quantiles", () => control(page, "quantiles").check());
  await changes("cross-hair", () => page.keyboard.press("h"));
  await changes("zoom", () => page.keyboard.press("+"));
  await changes("whole", () => page.keyboard.press("0"));
  assert.deepEqual(problems, []);
  await page.close();
});

test("maps are what the samples say: entropy and probability as the command line writes them", async () => {
  const { page, problems } = await open(chrome, `${url}&case=picture&map=probability&n=20&seed=3`);
  await shown(page);
  await page.waitForFunction(() => document.querySelector(".map-progress").dataset.done === "true" && window.ssnViewer.map() !== null);
  const probability = await page.evaluate(() => Array.from(window.ssnViewer.map()));
  await control(page, "map-entropy").click();
  await page.waitForFunction((first) => { const map = window.ssnViewer.map(); return map !== null && map[5000] !== first; }, probability[5000]);
  const entropy = await page.evaluate(() => Array.from(window.ssnViewer.map()));
  const maps = summaries(file("picture"), "--seed", "3", "--samples", "20");
  const largest = (a, b) => a.reduce((most, x, i) => Math.max(most, Math.abs(x - b[i])), 0);
  assert.ok(largest(probability, maps.probability) < 1e-6, `probability: ${largest(probability, maps.probability)}`);
  assert.ok(largest(entropy, maps.entropy) < 1e-5, `entropy: ${largest(entropy, maps.entropy)}`);
  assert.ok(Math.max(...entropy) > 0.5);
  assert.deepEqual(problems, []);
  await page.close();
});

test("what moves with a voxel is the correlation of its class's logits", async () => {
  const { page, problems } = await open(chrome, `${url}&case=picture&map=correlation&x=0,60,45&g=1,1,0.5,1,1,1,1,-2,1,1`);
  await shown(page);
  await page.waitForFunction(() => window.ssnViewer.map() !== null);
  const found = await page.evaluate(() => Array.from(window.ssnViewer.map()));
  const { v, c, r, factor, diagonal } = cases.picture;
  const weights = [1, 1, 0.5, 1, 1, 1, 1, -2, 1, 1];
  const [chosen, row] = [60 * 128 + 45, 1];
  const covariance = (i, j) => {
    let sum = i === j ? diagonal[row * v + i] : 0;
    for (let q = 0; q < r; q++) sum += weights[q] ** 2 * factor[(q * c + row) * v + i] * factor[(q * c + row) * v + j];
    return sum;
  };
  let largest = 0;
  for (let i = 0; i < v; i++) {
    const expected = covariance(i, chosen) / Math.sqrt(covariance(i, i) * covariance(chosen, chosen));
    // Voxels that no setting moves are left out of the package.
    if (found[i] !== 0) largest = Math.max(largest, Math.abs(found[i] - expected));
  }
  assert.ok(largest < 1e-5, `${largest}`);
  assert.equal(found[chosen], 1);
  assert.ok(found.filter((value) => value !== 0).length > 2000);
  assert.deepEqual(problems, []);
  await page.close();
});

test("volumes are those of the command line, and a click on a bar shows one of its samples", async () => {
  const { page, problems } = await open(chrome, `${url}&case=volume&n=20&seed=3&class=1&gallery=1`);
  await shown(page);
  await page.waitForFunction(() => document.querySelector(".volumes progress").dataset.done === "true", null, { timeout: 60000 });
  const volumes = table(file("volume"), "oedema", "--seed", "3", "--samples", "20");
  const counted = await page.locator(".bar").evaluateAll((bars) => bars.reduce((sum, bar) => sum + Number(bar.dataset.samples), 0));
  assert.equal(counted, 20);
  // Clicks on the last bar go through its samples, which are the largest.
  const last = page.locator(".bar").last();
  const chosen = [];
  for (let i = Number(await last.getAttribute("data-samples")); i > 0; i--) {
    await last.click({ force: true });
    await shown(page);
    chosen.push(Number(await control(page, "sample").inputValue()));
  }
  const largest = volumes.map((_, sample) => sample).sort((a, b) => volumes[b] - volumes[a]).slice(0, chosen.length);
  assert.deepEqual(new Set(chosen), new Set(largest));
  await page.waitForFunction(() => /groups of alike/.test(document.querySelector(".gallery .note").textContent), null, { timeout: 60000 });
  const captions = await page.locator(".thumb:visible .thumb-name").allInnerTexts();
  assert.ok(captions.length > 1 && new Set(captions).size === captions.length, captions.join());
  const shares = captions.map((caption) => Number(/^(\d+) %/.exec(caption)[1]));
  assert.ok(Math.abs(shares.reduce((a, b) => a + b) - 100) <= captions.length / 2, "rounded shares of all samples");
  assert.deepEqual(shares, [...shares].sort((a, b) => b - a));
  await page.locator(".thumb").nth(1).click();
  await shown(page);
  assert.ok(captions[1].endsWith(`sample ${await control(page, "sample").inputValue()}`), captions[1]);
  assert.deepEqual(problems, []);
  await page.close();
});

test("planes are linked by the cross-hair, and wheel, drag and keys move through them", async () => {
  const { page, problems } = await open(chrome, `${url}&case=volume`);
  await shown(page);
  assert.equal(await page.locator(".pane").count(), 3);
  const main = page.locator('.pane[data-main="true"] canvas');
  const box = await main.boundingBox();
  await page.mouse.click(box.x + box.width / 2 + 30, box.y + box.height / 2 - 20);
  await shown(page);
  const [z, y, x] = (await part(page, "x")).split(",").map(Number);
  // The patient's right is at the left and the front at the top: right of the middle is less x, above it is more y.
  assert.ok(x < 26 && y > 22, `${x} ${y}`);
  await page.mouse.move(box.x + 100, box.y + 100);
  await page.mouse.wheel(0, 120);
  await shown(page);
  const after = Number((await part(page, "x")).split(",")[0]);
  assert.equal(Math.abs(after - z), 1);
  await page.mouse.down();
  await page.mouse.move(box.x + 160, box.y + 130, { steps: 4 });
  await page.mouse.up();
  assert.ok(await part(page, "at"), "a drag moves the image");
  await page.keyboard.press("0");
  assert.equal(await part(page, "at"), null);
  await page.keyboard.press("2");
  await shown(page);
  assert.equal((await page.evaluate(() => window.ssnViewer.slice().axis)), 1);
  await page.keyboard.press("v");
  await shown(page);
  assert.equal(await page.locator(".pane").count(), 1);
  assert.deepEqual(problems, []);
  await page.close();
});

test("two settings stand side by side, each with its own sample", async () => {
  const { page, problems } = await open(chrome, `${url}&case=picture&${BARE}`);
  await shown(page);
  await page.keyboard.press("c");
  await shown(page);
  assert.equal(await page.locator(".pane").count(), 2);
  await slide(page, "temperature", 2.5);
  const b = sampled(file("picture"), "--seed", "0", "--temperature", "2.5");
  assert.equal(differences((await labels(page)).data, b.data), 0, "B is steered");
  await page.keyboard.press("a");
  await shown(page);
  const a = sampled(file("picture"), "--seed", "0");
  assert.equal(differences((await labels(page)).data, a.data), 0, "A is not");
  assert.equal(await part(page, "b.t"), "2.5");
  assert.deepEqual(problems, []);
  await page.close();
});

test("the address restores everything", async () => {
  const wanted = "seed=5&i=4&t=1.5&w=1,2,-1,0.5&g=1,0.5,1,1,-2,1,1,3&d=0&compare=b&b.seed=6&b.t=0.5&x=7,20,30&axis=2&layout=single&zoom=2&at=9,20,25"
    + "&sample=c&prediction=f&opacity=0.6&mapopacity=0.5&map=entropy&class=3&n=50&quantiles=1&gallery=0&cross=0&theme=light";
  const { page, problems } = await open(chrome, `${url}&case=volume&${wanted}`);
  await shown(page);
  const found = new URLSearchParams((await fragment(page)).slice(1));
  const expected = new URLSearchParams(wanted);
  for (const [name, value] of expected) assert.equal(found.get(name), value, name);
  for (const name of found.keys()) assert.ok(expected.has(name) || ["token", "case"].includes(name), `${name} was not asked for`);
  // Nonsense leaves what is usual.
  await go(page, "seed=-1&i=x&t=99&w=1&g=,,&x=a&axis=7&map=nothing&class=9&raters=zzz&sample=?");
  assert.equal(await part(page, "t"), "3", "beyond the limit is the limit");
  assert.equal(await part(page, "w"), null);
  assert.deepEqual(problems, []);
  await page.close();
});

test("what is saved is what is shown", async () => {
  const { page, problems } = await open(chrome, `${url}&case=volume&seed=8&i=3&t=1.4`);
  await shown(page);
  const out = folder();
  const [map] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("n")]);
  await map.saveAs(join(out, "map.nii.gz"));
  assert.equal(map.suggestedFilename(), "volume_sample_3.nii.gz");
  const [found, expected] = [readLabels(join(out, "map.nii.gz")), sampled(file("volume"), "--seed", "8", "--first", "3", "--temperature", "1.4")];
  assert.deepEqual([found.type, found.size], [2, expected.size]);
  assert.equal(differences(found.data, expected.data), 0);
  found.affine.forEach((value, i) => assert.ok(Math.abs(value - expected.affine[i]) < 1e-4, `affine ${i}`));
  const [picture] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("s")]);
  await picture.saveAs(join(out, "view.png"));
  const png = readFileSync(join(out, "view.png"));
  assert.equal(png.subarray(1, 4).toString(), "PNG");
  assert.ok(png.readUInt32BE(16) > 800 && png.readUInt32BE(20) > 400);
  assert.deepEqual(problems, []);
  await page.close();
});

test("cases are found by name, and the help tells the keys", async () => {
  const { page, problems } = await open(chrome, url);
  await shown(page);
  await page.locator(".case-button").click();
  await control(page, "search").fill("vol");
  assert.deepEqual(await page.locator(".case-table tbody button").allInnerTexts(), ["volume"]);
  await control(page, "search").press("Enter");
  await page.waitForFunction(() => document.title.startsWith("volume"));
  await shown(page);
  assert.equal(await page.locator(".pane").count(), 3);
  await page.keyboard.press("[");
  await page.waitForFunction(() => document.title.startsWith("picture"));
  await page.keyboard.press("?");
  assert.ok(await page.locator("dialog.help").isVisible());
  await page.keyboard.press("Escape");
  assert.match(await page.locator(".research").innerText(), /not a medical device/);
  assert.deepEqual(problems, []);
  await page.close();
});

test("another case takes over what was chosen, and looks where it looks at first", async () => {
  const { page, problems } = await open(chrome, `${url}&case=picture&seed=5&i=7&t=1.5&w=0.5,2&d=0&compare=b&b.t=0.5&b.seed=5&n=20&map=probability&sample=c&x=0,3,4&zoom=3`);
  await shown(page);
  assert.equal(await part(page, "case"), "picture");
  await page.keyboard.press("]");
  await page.waitForFunction(() => document.title.startsWith("volume"));
  await shown(page);
  const { token, ...found } = Object.fromEntries(new URLSearchParams((await fragment(page)).slice(1)));
  assert.deepEqual(found, {
    // Of the classes both have the background, and the other modes have their own weights.
    case: "volume", seed: "5", i: "7", t: "1.5", w: "0.5,1,1,1", d: "0", compare: "b", "b.seed": "5", "b.t": "0.5", n: "20", map: "probability", sample: "c", prediction: "c",
  });
  const expected = sampled(file("volume"), "--seed", "5", "--temperature", "0.5");
  assert.equal(differences((await labels(page)).data, expected.data), 0, "B is shown under its settings");
  assert.deepEqual(problems, []);
  await page.close();
});

test("nothing is wider than the window, light or dark, small or large", async () => {
  for (const [width, height] of [[1280, 720], [2560, 1440]]) {
    for (const scheme of ["light", "dark"]) {
      for (const name of ["picture", "volume"]) {
        const { page, problems } = await open(chrome, `${url}&case=${name}&map=entropy&quantiles=1`, { width, height, scheme });
        await shown(page);
        const fits = await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth && document.documentElement.scrollHeight <= innerHeight
          && document.querySelector(".panel").scrollWidth <= document.querySelector(".panel").clientWidth);
        assert.ok(fits, `${name} ${width} ${scheme}`);
        if (pictures) {
          await page.waitForTimeout(3000);
          await page.screenshot({ path: join(pictures, `${name}-${width}-${scheme}.png`) });
        }
        assert.deepEqual(problems, []);
        await page.close();
      }
    }
  }
});

function run(path, args) {
  const out = folder();
  execFileSync(SSN, ["sample", path, "--out", out, "--quiet", ...args], { stdio: ["ignore", "ignore", "inherit"] });
  return out;
}

/** Mean probability of class 1 and entropy of many samples, as the command line writes them. */
function summaries(path, ...args) {
  const out = run(path, [...args, "--probabilities", "--entropy"]);
  const read = (end, channel) => {
    const bytes = gunzipSync(readFileSync(join(out, readdirSync(out).find((name) => name.endsWith(end)))));
    assert.equal(bytes.readInt16LE(70), 16, "numbers of single precision");
    const count = bytes.readInt16LE(42) * bytes.readInt16LE(44) * bytes.readInt16LE(46);
    return Array.from({ length: count }, (_, i) => bytes.readFloatLE(bytes.readFloatLE(108) + 4 * (channel * count + i)));
  };
  return { probability: read("_prob_maps.nii.gz", 1), entropy: read("_marginal_entropy.nii.gz", 0) };
}

/** Voxels of a class in every sample, as the command line counts them. */
function table(path, name, ...args) {
  const lines = readFileSync(join(run(path, args), "samples.csv"), "utf8").trim().split("\n").slice(1).map((line) => line.split(","));
  return lines.filter((cells) => cells[3] === name).map((cells) => Number(cells[4]));
}
