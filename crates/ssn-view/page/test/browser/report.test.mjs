// Reports in a real browser: what they start with, what can be enlarged, saved and copied, on small screens, in light and dark.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

import { made, writeDistribution, writeVolume } from "./made.mjs";
import { browser, folder, open, SSN } from "./viewer.mjs";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const CASES = ["case 1", "case 2", "it's | a_case", "case 10", "case 11"];
const CLASSES = ["background", "rim", "core"];
const SIZE = [1, 64, 64];
/** Pixels from the top of the page within which the first picture begins. */
const FIRST_PICTURE = 900;

let [chrome, root] = [];
const reports = {};

/** The labels with the largest mean logits, that of the foreground moved: a rater who marks more or less. */
function rater(d, shift) {
  const labels = new Uint8Array(d.v);
  for (let i = 0; i < d.v; i++) {
    let [best, most] = [0, -Infinity];
    for (let k = 0; k < d.c; k++) {
      const logit = d.mean[k * d.v + i] + (k > 0 ? shift : 0);
      if (logit > most) [best, most] = [k, logit];
    }
    labels[i] = best;
  }
  return labels;
}

/** The name of the file of a case: every byte but letters, digits, `-`, `_` and `.` in hexadecimal. */
const stem = (id) => [...Buffer.from(id)].map((byte) => (/[\w.-]/.test(String.fromCharCode(byte)) ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase()}`)).join("");

function predictions(name, seeds) {
  const path = join(root, name);
  mkdirSync(path);
  writeFileSync(join(path, "predictions.json"), JSON.stringify({
    version: 1, model: { sha256: "5f", name: `made for a test, ${name}` }, seed: 0, dataset: join(root, "set/index.csv"), split: "all",
  }));
  CASES.forEach((id, number) => {
    const d = made({ name: id, classes: CLASSES, size: SIZE, seed: seeds + number });
    writeDistribution(join(path, `${stem(id)}.ssn.safetensors`), d);
  });
  return path;
}

const ssn = (...args) => execFileSync(SSN, [...args, "--quiet"], { cwd: root, stdio: ["ignore", "ignore", "inherit"] });
const address = (name) => pathToFileURL(join(root, reports[name], "report.html")).href;

before(async () => {
  root = folder();
  mkdirSync(join(root, "set"));
  const rows = [["id", "image", "seg_0", "seg_1"]];
  CASES.forEach((id, number) => {
    const d = made({ name: id, classes: CLASSES, size: SIZE, seed: 10 + number });
    const image = Float32Array.from({ length: d.v }, (_, i) => d.mean[d.v + i] + 3 * Math.sin(i / 7));
    const files = [image, rater(d, 0.8), number === 4 ? new Uint8Array(d.v) : rater(d, -1)].map((values, i) => {
      const file = `case${number}_${i}.nii`;
      writeVolume(join(root, "set", file), values, d);
      return file;
    });
    rows.push([id, ...files]);
  });
  writeFileSync(join(root, "set/index.csv"), rows.map((cells) => `${cells.join(",")}\n`).join(""));
  predictions("first set", 10);
  predictions("second", 11);
  predictions("unscored", 12);
  ssn("evaluate", "first set", "--samples", "10");
  ssn("evaluate", "second", "--samples", "10");
  mkdirSync(join(root, "run"));
  writeFileSync(join(root, "run/config.toml"), "");
  const metrics = Array.from({ length: 40 }, (_, i) => `${i},${2 / (i + 1)},0.001`);
  writeFileSync(join(root, "run/metrics.csv"), ["step,loss,learning_rate", ...metrics, ""].join("\n"));
  Object.assign(reports, { one: "first set/report", unscored: "unscored/report", run: "run/report", several: "several" });
  ssn("report", "first set");
  ssn("report", "unscored");
  ssn("report", "run");
  ssn("report", "first set", "second", "unscored", "run", "--out", "several");
  chrome = await browser();
});
after(async () => { await chrome?.close(); });

/** Opens a report; its problems are what the console says and what it asks for. */
async function read(name, options) {
  const opened = await open(chrome, address(name), { width: 1400, height: 900, scheme: "light", ...options });
  // Pictures that a page holds are no requests.
  return { ...opened, troubles: () => opened.problems.filter((problem) => !/^asks for (data|blob):/.test(problem)) };
}

test("every report begins with the result and a picture", async () => {
  for (const name of Object.keys(reports)) {
    const { page, troubles } = await read(name);
    const top = await page.evaluate(() => document.querySelector("figure svg").getBoundingClientRect().top + scrollY);
    assert.ok(top < FIRST_PICTURE, `${name}: the first picture is at ${top} px`);
    if (name !== "run") {
      const pictures = await page.evaluate(() => document.querySelector("figure").querySelectorAll("image").length);
      assert.ok(pictures >= 5, `${name}: ${pictures} pictures of the typical case`);
    }
    assert.deepEqual(troubles(), []);
    await page.close();
  }
});

test("the headline has five scores with their better direction, and the best of several in bold", async () => {
  const one = await read("one");
  const cards = await one.page.locator("dl.headline > div").allTextContents();
  assert.equal(cards.length, 5);
  for (const [name, direction] of [["GED²", "↓"], ["Dice", "↑"], ["Diversity", "→"], ["HM-IoU", "↑"], ["Calibration", "↓"]]) {
    assert.ok(cards.some((card) => card.startsWith(name) && card.includes(direction)), `${name} in ${cards}`);
  }
  await one.page.close();
  const several = await read("several");
  const table = several.page.locator('table[aria-label="The most important scores"]');
  const heads = await table.locator("thead th").allTextContents();
  assert.deepEqual(heads.slice(1, 3), ["GED² ↓", "Dice of the prediction ↑"]);
  const bold = await table.locator("tbody tr").evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.querySelector("strong") !== null)));
  for (const column of [1, 2]) assert.ok(bold.some((row) => row[column]), `one is the best in column ${column}`);
  assert.ok(await several.page.getByText("Not scored yet").isVisible());
  await several.page.close();
});

test("classes and their union have scores of their own", async () => {
  const { page } = await read("one");
  const rows = await page.locator('table[aria-label="Scores of classes and unions of classes"] tbody th').allTextContents();
  assert.deepEqual(rows, ["rim", "core", "all classes"]);
  await page.close();
});

test("rows lead to pictures of their cases, and to the line that opens them in the viewer", async () => {
  const { page, troubles } = await read("one");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const row = page.locator("table.sortable tbody tr", { hasText: "a_case" });
  await row.locator("a").click();
  const heading = page.locator("h3", { hasText: "it's | a_case" });
  const top = await heading.evaluate((element) => element.getBoundingClientRect().top);
  assert.ok(top >= -1 && top < 450, `the picture is shown, not ${top}`);
  await row.locator("button").click();
  const line = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(line, "ssn view 'first set' --case 'it'\\''s | a_case'");
  // The shell takes the line for the words that are meant, and `ssn view` knows the case.
  const words = execFileSync("sh", ["-c", `printf '%s\\n' ${line}`], { encoding: "utf8" }).trim().split("\n");
  assert.deepEqual(words, ["ssn", "view", "first set", "--case", "it's | a_case"]);
  ssn(...words.slice(1), "--export", "exported.html");
  assert.ok(statSync(join(root, "exported.html")).size > 0);
  assert.deepEqual(troubles(), []);
  await page.close();
});

test("all tables and dot plots have their cases in one order", async () => {
  const { page } = await read("one");
  const rows = await page.locator("table.sortable tbody th").allTextContents();
  const ged = await page.evaluate(() => {
    const table = document.querySelector("table.sortable");
    const column = [...table.tHead.rows[0].children].findIndex((head) => head.textContent.startsWith("GED²"));
    return [...table.tBodies[0].rows].map((row) => Number(row.children[column].dataset.value));
  });
  assert.deepEqual(ged, [...ged].sort((a, b) => a - b), "the best case is the first");
  const drawn = await page.evaluate((names) => [...document.querySelectorAll('figure[data-name="sample-dice"] text')].map((text) => text.textContent).filter((text) => names.includes(text)), CASES);
  assert.deepEqual(drawn, rows);
  await page.close();
});

test("tables are copied as CSV, LaTeX and Markdown", async () => {
  const { page, troubles } = await read("several");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const copied = async (form) => {
    await page.getByRole("button", { name: `Copy the table "The most important scores" as ${form}` }).click();
    return page.evaluate(() => navigator.clipboard.readText());
  };
  const csv = (await copied("CSV")).trimEnd().split("\n");
  assert.equal(csv.length, 4);
  assert.ok(csv[0].startsWith("network,GED² ↓,") && /^first set,0\.\d{3} ± 0\.\d{3},/.test(csv[1]), csv.join("\n"));
  const latex = await copied("LaTeX");
  for (const part of ["\\begin{tabular}{lrrrrr}", "\\toprule", "\\bottomrule", "GED$^2$ $\\downarrow$", "\\textbf{", "\\%", "$\\pm$"]) assert.ok(latex.includes(part), `${part} in ${latex}`);
  assert.ok(!/(?<!\\)[%#_](?! needs)/.test(latex), latex);
  const markdown = (await copied("Markdown")).split("\n");
  assert.ok(markdown[1] === "|---|---:|---:|---:|---:|---:|" && markdown.some((line) => line.includes("**")), markdown.join("\n"));
  // Names with signs of the forms, of the report with the table of cases.
  const one = await read("one");
  await one.page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const form = async (name) => {
    await one.page.getByRole("button", { name: `Copy the table "Scores of each case" as ${name}` }).click();
    return one.page.evaluate(() => navigator.clipboard.readText());
  };
  assert.ok((await form("Markdown")).includes("| it's \\| a\\_case |"));
  assert.ok((await form("LaTeX")).includes("it's $|$ a\\_case & "));
  const lines = (await form("CSV")).trimEnd().split("\n");
  assert.ok(lines.length === 6 && !lines[0].includes("viewer"), lines[0]);
  // A name that a spreadsheet would run, and numbers that it may.
  const renamed = async (name) => {
    await one.page.evaluate((name) => { document.querySelector('table[aria-label="Scores of each case"]').tBodies[0].rows[0].children[0].textContent = name; }, name);
    return (await form("CSV")).split("\n")[1];
  };
  for (const name of ["=cmd()", "+1+1", "-2+3", "@x"]) assert.ok((await renamed(name)).startsWith(`'${name},`), name);
  for (const name of ["-0.5", "−1.5 ± 0.25", "case"]) assert.ok((await renamed(name)).startsWith(`${name.replace("−", "-")},`), name);
  assert.deepEqual([...troubles(), ...one.troubles()], []);
  await page.close();
  await one.page.close();
});

test("figures are enlarged by click and by key, and saved as SVG and PNG", async () => {
  const { page, troubles } = await read("one", { scheme: "dark" });
  await page.locator("figure .drawing").first().click();
  const dialog = page.locator("dialog");
  assert.ok(await dialog.isVisible());
  const [large, small] = await page.evaluate(() => ["dialog svg", "figure svg"].map((what) => document.querySelector(what).getBoundingClientRect().width));
  assert.ok(large > small, `${large} is not more than ${small}`);
  await page.keyboard.press("Escape");
  assert.ok(!(await dialog.isVisible()));
  const button = page.locator("figure").first().getByRole("button", { name: "Enlarge" });
  await button.focus();
  await page.keyboard.press("Enter");
  assert.ok(await dialog.isVisible());
  await page.keyboard.press("Escape");
  assert.ok(await button.evaluate((element) => element === document.activeElement), "focus is back");

  const saved = async (form) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.locator("figure").first().getByRole("button", { name: `as ${form}` }).click()]);
    return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
  };
  const svg = await saved("SVG");
  assert.equal(svg.name, "typical-case.svg");
  const figure = readFileSync(join(root, reports.one, "figures/typical-case.svg"), "utf8");
  assert.equal((svg.bytes.toString().match(/<image/g) ?? []).length, (figure.match(/<image/g) ?? []).length);
  assert.ok(svg.bytes.toString().includes('xmlns="http://www.w3.org/2000/svg"'));
  const png = await saved("PNG");
  assert.equal(png.name, "typical-case.png");
  const width = Number(/ width="(\d+)/.exec(figure)[1]);
  assert.equal(png.bytes.readUInt32BE(16), 2 * width, "two pixels for each");
  // White paper, though the page is dark.
  const corner = await page.evaluate(async (data) => {
    const picture = new Image();
    picture.src = `data:image/png;base64,${data}`;
    await picture.decode();
    const context = new OffscreenCanvas(4, 4).getContext("2d");
    context.drawImage(picture, 0, 0);
    return [...context.getImageData(1, 1, 1, 1).data];
  }, png.bytes.toString("base64"));
  assert.deepEqual(corner, [255, 255, 255, 255]);
  assert.deepEqual(troubles(), []);
  await page.close();
});

test("samples are shown with the share of their group", async () => {
  const { page } = await read("one");
  for (const name of ["typical-case", "case%201-pictures"]) {
    const texts = await page.locator(`figure[data-name="${name}"] svg text`).allTextContents();
    const shares = texts.map((text) => /^(\d+) %(, rare)?$/.exec(text)).filter(Boolean);
    assert.ok(shares.length > 0 && shares.length <= 8, texts.join("; "));
    const numbers = shares.map((share) => Number(share[1]));
    assert.ok(Math.abs(numbers.reduce((a, b) => a + b) - 100) <= shares.length, numbers.join(", "));
    assert.deepEqual(numbers, [...numbers].sort((a, b) => b - a), "the largest group first");
    for (const share of shares) assert.equal(share[2] !== undefined, Number(share[1]) <= 5, share[0]);
  }
  assert.ok((await page.locator("svg text").allTextContents()).includes("rater 1, empty"));
  await page.close();
});

test("what is folded opens by its link, and prints", async () => {
  const { page } = await read("several");
  const section = page.locator("details.section", { hasText: "All scores" });
  assert.ok(!(await section.evaluate((details) => details.open)));
  await page.locator("nav a", { hasText: "All scores" }).click();
  assert.ok(await section.evaluate((details) => details.open));
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  assert.equal(await page.locator("details:not([open])").count(), 0);
  await page.close();
});

for (const width of [420, 800, 1400]) {
  for (const scheme of ["light", "dark"]) {
    test(`no serious violation of accessibility and no sideways scrolling at ${width} px, ${scheme}`, async () => {
      for (const name of Object.keys(reports)) {
        const { page, troubles } = await read(name, { width, scheme });
        const wide = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(await wide() <= 0, `${name} is ${await wide()} px too wide`);
        await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
        assert.ok(await wide() <= 0, `${name}, opened, is ${await wide()} px too wide`);
        // Text of figures stays readable: what does not fit scrolls in its box.
        const small = await page.evaluate(() => [...document.querySelectorAll("figure svg")].map((svg) => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width));
        assert.ok(Math.min(...small) > 0.8, `${name}: a figure at ${Math.min(...small)} of its size`);
        // The policy of a report lets no script in: the checker comes by the protocol of the browser.
        const checked = await page.evaluate(`(() => { ${readFileSync(AXE, "utf8")}; return axe.run(document, { resultTypes: ["violations"] }); })()`);
        assert.equal(checked.testEngine.name, "axe-core");
        const serious = checked.violations.filter((found) => ["serious", "critical"].includes(found.impact));
        assert.deepEqual(serious.map((found) => `${found.id}: ${found.nodes[0].html.slice(0, 200)}`), [], name);
        assert.deepEqual(troubles(), []);
        await page.close();
      }
    });
  }
}
