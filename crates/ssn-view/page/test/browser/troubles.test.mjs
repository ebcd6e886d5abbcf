// What goes wrong is said on the page, in a sentence that says what to do.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";

import { made, writeDistribution } from "./made.mjs";
import { chrome, folder, open, serve, shown, url, viewing } from "./viewer.mjs";

const data = folder();
viewing(() => {
  for (const name of ["one", "two"]) {
    writeDistribution(join(data, `${name}.ssn.safetensors`), made({ name, classes: ["background", "lesion"], size: [1, 40, 40], rank: 2, seed: 2 }));
  }
  return data;
});

const said = (page) => page.locator('[role="alert"]:visible').innerText({ timeout: 10000 });

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

test("what cannot be saved is said, and the page goes on", async () => {
  const { page, problems } = await open(chrome, url);
  await shown(page);
  await page.evaluate(() => {
    HTMLCanvasElement.prototype.toBlob = (done) => done(null);
    window.CompressionStream = class { constructor() { throw new Error("There is no room left."); } };
  });
  for (const [key, expected] of [["s", /The picture was not saved.*cannot make a picture of \d+ × \d+ pixels/s], ["n", /The label map was not saved.*no room left/s]]) {
    await page.keyboard.press(key);
    assert.match(await said(page), expected);
    await page.getByRole("button", { name: "Close" }).click();
    assert.equal(await page.locator('[role="alert"]').isVisible(), false);
  }
  await page.keyboard.press("ArrowRight");
  await shown(page);
  assert.equal(await page.locator('[data-control="sample"]').inputValue(), "1");
  assert.deepEqual(problems, []);
  await page.close();
});

test("a case that is not here is said to be missing, and its settings go to no other", async () => {
  const { page, problems } = await open(chrome, `${url}&case=three&t=2&i=5`);
  assert.match(await said(page), /This case is not here.*“three”.*none of the 2 cases/s);
  assert.equal(await page.locator(".pane").count(), 0);
  await page.getByRole("button", { name: "Open one" }).click();
  await page.waitForFunction(() => document.title.startsWith("one"));
  await shown(page);
  const parts = async () => Object.fromEntries(new URLSearchParams((await page.evaluate(() => window.ssnViewer.fragment)).slice(1)));
  const { token, ...found } = await parts();
  assert.deepEqual(found, { case: "one" });
  // The same where a case is open: it stays as it is.
  await page.keyboard.press("ArrowRight");
  await page.evaluate(() => { location.hash = `${window.ssnViewer.fragment.replace("case=one", "case=four")}&t=2`; });
  assert.match(await said(page), /“four”/);
  // What the page was about to write of the sample does not come over the address that was given since.
  await page.evaluate(() => new Promise((done) => setTimeout(done, 400)));
  assert.match(await page.evaluate(() => location.hash), /case=four/);
  await page.getByRole("button", { name: "Go on with one" }).click();
  assert.deepEqual(await parts(), { token, case: "one", i: "1" });
  // An address that is put right is followed.
  await page.evaluate(() => { location.hash = window.ssnViewer.fragment.replace("case=one", "case=four"); });
  await said(page);
  await page.evaluate(() => { location.hash = location.hash.replace("case=four&i=1", "case=two&t=2"); });
  await page.waitForFunction(() => document.title.startsWith("two"));
  await shown(page);
  assert.deepEqual(await parts(), { token, case: "two", t: "2" });
  assert.deepEqual(problems, []);
  await page.close();
});
