// Opens a report of `ssn report` in headless Chromium and fails on anything that a reader would stumble over: messages on
// the console, requests beyond the file itself, pictures that do not load, text wider than the page, tables that do not
// sort. With a second argument, it leaves pictures of the page there, light and dark, and as PDF.
//
// Needs Node 20 or newer and Chromium (CHROMIUM names it if it is not `chromium`); no packages.
//
//   node tools/report_browser_test.mjs predictions/report/report.html [pictures]

import { spawn } from "node:child_process";
import { mkdtempSync, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const LARGEST = 15e6;
const WIDTH = 1280;
const [file, pictures] = process.argv.slice(2);
if (!file) {
  console.error("usage: node tools/report_browser_test.mjs REPORT.html [PICTURES]");
  process.exit(2);
}
const problems = [];
const check = (holds, problem) => { if (!holds) problems.push(problem); };

// Chrome's protocol over two pipes (descriptors 3 and 4): messages end with a zero byte.
const profile = mkdtempSync(join(tmpdir(), "report-browser-"));
const browser = spawn(
  process.env.CHROMIUM ?? "chromium",
  ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--remote-debugging-pipe", `--user-data-dir=${profile}`, "about:blank"],
  { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] },
);
browser.on("error", (error) => { console.error(`cannot start Chromium: ${error.message}`); process.exit(69); });
const [, , , input, output] = browser.stdio;
const waiting = new Map();
const listeners = [];
let [number, rest] = [0, ""];
output.on("data", (data) => {
  const parts = (rest + data).split("\0");
  rest = parts.pop();
  for (const part of parts) {
    const message = JSON.parse(part);
    if (message.id !== undefined) {
      const [done, failed] = waiting.get(message.id);
      message.error ? failed(new Error(message.error.message)) : done(message.result);
    } else {
      listeners.forEach((listener) => listener(message));
    }
  }
});
let session;
const send = (method, params = {}) => new Promise((done, failed) => {
  const id = ++number;
  waiting.set(id, [done, failed]);
  input.write(`${JSON.stringify({ id, method, params, sessionId: session })}\0`);
});
const evaluate = async (expression) => {
  const { result, exceptionDetails } = await send("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true });
  if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
  return result.value;
};

try {
  const { targetInfos } = await send("Target.getTargets");
  const page = targetInfos.find((target) => target.type === "page");
  ({ sessionId: session } = await send("Target.attachToTarget", { targetId: page.targetId, flatten: true }));
  for (const domain of ["Page", "Runtime", "Log", "Network"]) await send(`${domain}.enable`);
  const url = pathToFileURL(resolve(file)).href;
  const loaded = new Promise((done) => listeners.push(({ method, params }) => {
    if (method === "Page.loadEventFired") done();
    if (method === "Runtime.consoleAPICalled") problems.push(`console: ${params.type} ${JSON.stringify(params.args)}`);
    if (method === "Runtime.exceptionThrown") problems.push(`exception: ${params.exceptionDetails.text}`);
    if (method === "Log.entryAdded") problems.push(`log: ${params.entry.level} ${params.entry.text}`);
    if (method === "Network.requestWillBeSent" && !/^(data|about):/.test(params.request.url) && params.request.url !== url) {
      problems.push(`it asks for ${params.request.url.slice(0, 100)}`);
    }
  }));
  await send("Emulation.setDeviceMetricsOverride", { width: WIDTH, height: 900, deviceScaleFactor: 1, mobile: false });
  await send("Page.navigate", { url });
  await loaded;

  check(statSync(file).size < LARGEST, `it is ${statSync(file).size} bytes`);
  check(await evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the window");
  const broken = await evaluate(`Promise.all([...document.querySelectorAll("image")].map((image) => {
    const probe = new Image();
    probe.src = image.getAttribute("href");
    return probe.decode().then(() => 0, () => 1);
  })).then((all) => all.reduce((a, b) => a + b, 0))`);
  check(broken === 0, `${broken} pictures do not load`);
  // Every column of every table, upwards and downwards.
  const unsorted = await evaluate(`(() => {
    const wrong = [];
    for (const table of document.querySelectorAll("table.sortable")) {
      table.querySelectorAll("thead button").forEach((button) => {
        const column = [...table.tHead.rows[0].children].indexOf(button.closest("th"));
        for (const sign of [1, -1]) {
          button.click();
          const keys = [...table.tBodies[0].rows].map((row) => row.children[column].dataset.value);
          const given = keys.filter((key) => key !== "");
          const numbers = given.every((key) => !Number.isNaN(Number(key)));
          const order = (a, b) => numbers ? a - b : a.localeCompare(b, "en", { numeric: true });
          const ordered = given.every((key, i) => i === 0 || sign * order(given[i - 1], key) <= 0);
          if (!ordered || keys.slice(given.length).some((key) => key !== "")) {
            wrong.push(button.textContent);
          }
        }
      });
      table.querySelector("thead button")?.click();
    }
    return wrong;
  })()`);
  check(unsorted.length === 0, `these columns do not sort: ${unsorted.join(", ")}`);
  const counts = await evaluate(`[...["table.sortable", "figure", "image"]].map((what) => document.querySelectorAll(what).length)`);
  check(counts.every((count) => count > 0), `tables that sort, figures and pictures: ${counts}`);
  console.log(`${counts[0]} tables that sort, ${counts[1]} figures, ${counts[2]} pictures`);

  if (pictures) {
    mkdirSync(pictures, { recursive: true });
    const height = await evaluate("document.documentElement.scrollHeight");
    for (const scheme of ["light", "dark"]) {
      await send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
      for (let [top, part] = [0, 0]; top < height; top += 1800, part += 1) {
        const clip = { x: 0, y: top, width: WIDTH, height: Math.min(1800, height - top), scale: 1 };
        const { data } = await send("Page.captureScreenshot", { clip, captureBeyondViewport: true });
        writeFileSync(join(pictures, `${scheme}-${part}.png`), Buffer.from(data, "base64"));
      }
    }
    const { data } = await send("Page.printToPDF", { preferCSSPageSize: true });
    writeFileSync(join(pictures, "print.pdf"), Buffer.from(data, "base64"));
  }
} catch (error) {
  problems.push(error.message);
} finally {
  browser.kill();
  await new Promise((done) => browser.on("exit", done));
  rmSync(profile, { recursive: true, force: true });
}
problems.forEach((problem) => console.error(problem));
process.exit(problems.length === 0 ? 0 : 1);
