// What the tests of the page share: `ssn view` running, a browser, and `ssn sample` as the judge.
//
// SSN names the program `ssn`, CHROMIUM the browser.

import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { gunzipSync } from "node:zlib";

import { chromium } from "playwright-core";

export const SSN = process.env.SSN ?? "ssn";

const folders = [];
process.on("exit", () => folders.forEach((path) => rmSync(path, { recursive: true, force: true })));

/** A new folder for files of a test; it is gone when the tests are over. */
export function folder() {
  const path = mkdtempSync(join(tmpdir(), "ssn-view-"));
  folders.push(path);
  return path;
}

/** WebGL without a GPU. */
export const SOFTWARE_WEBGL = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"];

/** Starts a headless browser. */
export function browser(graphics = ["--disable-gpu"]) {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-background-networking", ...graphics],
  });
}

/** Starts `ssn view` and gives the address that it prints. */
export function serve(...paths) {
  const child = spawn(SSN, ["view", ...paths, "--no-open", "--json"], { stdio: ["ignore", "pipe", "pipe"] });
  let [out, err] = ["", ""];
  child.stderr.on("data", (data) => { err += data; });
  const url = new Promise((done, failed) => {
    child.on("error", failed);
    child.on("exit", (code) => failed(new Error(`ssn view ended with ${code}: ${err}`)));
    child.stdout.on("data", (data) => {
      out += data;
      // It is printed at once, but may arrive in parts.
      if (out.trimEnd().endsWith("}")) done(JSON.parse(out).url);
    });
  });
  return {
    url,
    stop: () => new Promise((done) => {
      if (child.exitCode !== null) return done();
      child.removeAllListeners("exit");
      child.on("exit", done);
      child.kill("SIGTERM");
    }),
  };
}

/** The browser of a file's tests, and the address of what they look at. */
export let [chrome, url] = [];

/** Lets all tests of a file look at one folder, which `prepare` makes and names. */
export function viewing(prepare, graphics) {
  let server;
  before(async () => {
    server = serve(prepare());
    chrome = await browser(graphics);
    url = await server.url;
  });
  after(async () => {
    await chrome?.close();
    await server?.stop();
  });
}

/** Writes what `ssn view --export` makes. */
export function exportTo(file, ...paths) {
  execFileSync(SSN, ["view", ...paths, "--export", file, "--quiet"], { stdio: ["ignore", "ignore", "inherit"] });
}

/** The labels, size and affine of a NIfTI file of bytes. */
export function readLabels(path) {
  const raw = readFileSync(path);
  const bytes = raw[0] === 0x1f ? gunzipSync(raw) : raw;
  const size = [bytes.readInt16LE(46), bytes.readInt16LE(44), bytes.readInt16LE(42)];
  const start = bytes.readFloatLE(108);
  const affine = Array.from({ length: 12 }, (_, i) => bytes.readFloatLE(280 + 4 * i));
  const quaternion = Array.from({ length: 6 }, (_, i) => bytes.readFloatLE(256 + 4 * i));
  return { type: bytes.readInt16LE(70), size, affine, quaternion, codes: [bytes.readInt16LE(252), bytes.readInt16LE(254)], data: bytes.subarray(start, start + size[0] * size[1] * size[2]) };
}

/** The label map that `ssn sample` draws of a file. */
export function sampled(file, ...args) {
  const out = folder();
  execFileSync(SSN, ["sample", file, "--out", out, "--samples", "1", "--quiet", ...args], { stdio: ["ignore", "ignore", "inherit"] });
  return readLabels(join(out, readdirSync(out).find((name) => name.endsWith(".nii.gz"))));
}

/** Opens the page; what it says on the console, and what it asks for, is watched. */
export async function open(browser, url, { width = 1280, height = 720, scheme = "dark" } = {}) {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: scheme, acceptDownloads: true });
  const problems = [];
  const origin = new URL(url).origin;
  page.on("console", (message) => problems.push(`console ${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("request", (request) => {
    const to = new URL(request.url());
    const own = to.protocol === "file:" ? request.url().split("#")[0] === url.split("#")[0] : to.origin === origin || ["blob:", "data:"].includes(to.protocol);
    if (!own) problems.push(`asks for ${request.url().slice(0, 200)}`);
  });
  await page.goto(url);
  return { page, problems };
}

/** Lets tests hold back answers of the worker, by their channel, and of the server. */
export async function holding(context) {
  await context.addInitScript(() => {
    const channels = new Map();
    const held = { channels: new Set(), paths: false, answers: [] };
    window.held = held;
    window.release = () => {
      held.channels.clear();
      held.paths = false;
      for (const answer of held.answers.splice(0)) answer();
    };
    window.Worker = class extends Worker {
      postMessage(message, transfer) {
        channels.set(message.id, message.channel);
        super.postMessage(message, transfer);
      }

      set onmessage(listener) {
        super.onmessage = (event) => {
          if (held.channels.has(channels.get(event.data.id))) held.answers.push(() => listener(event));
          else listener(event);
        };
      }
    };
    const { fetch } = window;
    // It comes late even where nobody waits for it any more.
    window.fetch = (path, { signal, ...options } = {}) => (held.paths
      ? new Promise((done, failed) => held.answers.push((fails) => (fails ? failed(new Error("gone")) : done(fetch(path, options)))))
      : fetch(path, options));
  });
}

/** Waits until the page shows what its controls say. */
export async function shown(page) {
  await page.evaluate(async () => {
    await window.ssnViewer.ready;
    await window.ssnViewer.settled();
  });
}

/** Goes to another state of the case, as its address would. */
export async function go(page, fragment) {
  await page.evaluate((wanted) => {
    const kept = window.ssnViewer.fragment.slice(1).split("&").filter((part) => /^(token|case)=/.test(part));
    location.hash = [...kept, ...wanted.split("&").filter(Boolean)].join("&");
  }, fragment);
  // The address is followed with the next event.
  await page.evaluate(() => new Promise((done) => setTimeout(done, 50)));
  await shown(page);
}

/** A control of the panel. */
export const control = (page, name) => page.locator(`[data-control="${name}"]`);

/** A part of the address, such as the temperature `t`. */
export const part = (page, name) => page.evaluate((key) => new URLSearchParams(window.ssnViewer.fragment.slice(1)).get(key), name);

/** The pixels of the main view, as a text that changes with them. */
export const pixels = (page) => page.evaluate(() => document.querySelector(".pane canvas").toDataURL());

/** The labels of the shown sample over the whole image. */
export async function labels(page) {
  const { size, data } = await page.evaluate(async () => {
    const found = await window.ssnViewer.labels();
    let text = "";
    for (let i = 0; i < found.data.length; i += 8192) text += String.fromCharCode(...found.data.subarray(i, i + 8192));
    return { size: found.size, data: btoa(text) };
  });
  return { size, data: Buffer.from(data, "base64") };
}

/** How many of two label maps differ. */
export function differences(a, b) {
  if (a.length !== b.length) return Math.max(a.length, b.length);
  let count = 0;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) count++;
  return count;
}

/** The plane of a volume, `[rows, columns]`, across an axis. */
export function plane(volume, [d, h, w], axis, index) {
  const out = [];
  for (let z = 0; z < d; z++) {
    for (let y = 0; y < h; y++) {
      for (let x = 0; x < w; x++) if ([z, y, x][axis] === index) out.push(volume[(z * h + y) * w + x]);
    }
  }
  return Uint8Array.from(out);
}

/** Colors of the classes, as in reports. */
const COLOURS = [[0xe6, 0x9f, 0x00], [0x56, 0xb4, 0xe9], [0xcc, 0x79, 0xa7]];

/** The labels that the pixels of the main view show, where only the sample is painted, opaque: read off the canvas. */
export async function painted(page) {
  return page.evaluate((colors) => {
    const slice = window.ssnViewer.slice();
    const canvas = document.querySelector('.pane[data-active="true"] canvas, .pane canvas');
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
    const [a, b, c, d, e, f] = slice.matrix;
    const found = [];
    let outside = 0;
    for (let row = 0; row < slice.rows; row++) {
      for (let column = 0; column < slice.columns; column++) {
        const x = Math.floor(a * (column + 0.5) + c * (row + 0.5) + e);
        const y = Math.floor(b * (column + 0.5) + d * (row + 0.5) + f);
        if (x < 0 || y < 0 || x >= canvas.width || y >= canvas.height) outside++;
        const at = 4 * (y * canvas.width + x);
        found.push(1 + colors.findIndex((color) => color.every((part, i) => Math.abs(part - data[at + i]) <= 1)));
      }
    }
    return { axis: slice.axis, index: slice.index, labels: found, outside, listed: Array.from(slice.data) };
  }, COLOURS);
}

/** The state in which the canvas shows nothing but the sample. */
export const BARE = "sample=f&prediction=o&opacity=1&image=0&cross=0&layout=single&gallery=0";
