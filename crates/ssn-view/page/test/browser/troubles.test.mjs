// What goes wrong is said on the page, in a sentence that says what to do.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { made, writeDistribution } from "./made.mjs";
import { browser, folder, serve, shown } from "./viewer.mjs";

const data = folder();
let [server, chrome, url] = [];
before(async () => {
  for (const name of ["one", "two"]) {
    writeDistribution(join(data, `${name}.ssn.safetensors`), made({ name, classes: ["background", "lesion"], size: [1, 40, 40], rank: 2, seed: 2 }));
  }
  server = serve(data);
  chrome = await browser();
  url = await server.url;
});
after(async () => {
  await chrome?.close();
  await server?.stop();
});

const said = (page) => page.locator('[role="alert"]').innerText({ timeout: 10000 });

test("a wrong token, and none, are told apart from a broken page", async () => {
  const page = await chrome.newPage();
  await page.goto(url.replace(/#.*/, "#token=wrong"));
  assert.match(await said(page), /does not have the right token.*Open the address that `ssn view` prints/s);
  await page.close();
  const other = await chrome.newPage();
  await other.goto(url.replace(/#.*/, ""));
  assert.match(await said(other), /has no token/);
  await other.close();
});

/** Changes the packages on their way to the page. */
async function damage(change, expected) {
  const page = await chrome.newPage();
  await page.route("**/api/cases/*", async (route) => {
    const response = await route.fetch();
    const body = change(Buffer.from(await response.body()));
    await route.fulfill({ status: 200, body, headers: { "Content-Length": String(body.length) } });
  });
  await page.goto(url);
  assert.match(await said(page), expected);
  await page.close();
}

test("damaged packages are refused with a sentence", async () => {
  /** The same package with another header; sections stay where they are. */
  const header = (edit) => (bytes) => {
    const length = bytes.readUInt32LE(8);
    const told = JSON.parse(bytes.subarray(16, 16 + length).toString());
    edit(told);
    let text = Buffer.from(JSON.stringify(told));
    text = Buffer.concat([text, Buffer.alloc((8 - (text.length % 8)) % 8, " ")]);
    const preamble = Buffer.from(bytes.subarray(0, 16));
    preamble.writeUInt32LE(text.length, 8);
    return Buffer.concat([preamble, text, bytes.subarray(16 + length)]);
  };
  await damage((bytes) => bytes.subarray(0, 12), /damaged/);
  await damage((bytes) => { bytes[0] = 0; return bytes; }, /do not start as a package does/);
  await damage((bytes) => { bytes.writeUInt32LE(0x7ffffff8, 8); return bytes; }, /header is longer/);
  await damage((bytes) => { bytes[16] = 0x5d; return bytes; }, /not JSON/);
  await damage((bytes) => bytes.subarray(0, bytes.length - 2000), /is cut off/);
  await damage(header((told) => { told.version = 2; }), /version 2 of the package format/);
  await damage(header((told) => { told.sections.mean.shape[0] = 7; }), /mean has the shape/);
  await damage(header((told) => { told.region.size[1] = 1000; }), /a box is not in the image/);
  await damage(header((told) => { delete told.sections.factor; }), /factor is missing/);
});

test("a server that is gone is said to be gone, and what is open stays", async () => {
  const own = serve(data);
  const page = await chrome.newPage();
  await page.goto(await own.url);
  await shown(page);
  await own.stop();
  await page.keyboard.press("ArrowRight");
  await shown(page);
  assert.equal(await page.locator('[data-control="sample"]').inputValue(), "1");
  await page.keyboard.press("]");
  assert.match(await said(page), /The server does not answer\. Start `ssn view` again/);
  await page.close();
});
