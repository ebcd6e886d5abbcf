// Builds the page: one file with style, script and worker in it, dist/viewer.html. The same sources give the same bytes.
//
//   node build.mjs             dist/viewer.html
//   node build.mjs --library   build/library.mjs, what tests use without a browser

import { build } from "esbuild";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const shared = { bundle: true, target: "es2022", charset: "utf8", legalComments: "none", logLevel: "warning" };

/** One script of an entry and all that it imports. */
async function script(entry, plugins = []) {
  const result = await build({ ...shared, entryPoints: [here(entry)], format: "iife", minify: true, write: false, plugins });
  return result.outputFiles[0].text.trim();
}

/** `import code from "worker-code"` gives the text of the worker, which the page starts from a blob. */
function workerCode(code) {
  return {
    name: "worker-code",
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^worker-code$/ }, () => ({ path: "worker-code", namespace: "worker-code" }));
      onLoad({ filter: /.*/, namespace: "worker-code" }, () => ({ contents: code, loader: "text" }));
    },
  };
}

/** Puts `content` in the place of the only `mark`. */
function fill(text, mark, content) {
  const parts = text.split(mark);
  if (parts.length !== 2) throw new Error(`index.html has ${parts.length - 1} marks ${mark}, but needs one`);
  return parts.join(content);
}

if (process.argv.includes("--library")) {
  await build({ ...shared, entryPoints: [here("src/library.ts")], format: "esm", outfile: here("build/library.mjs") });
} else {
  const worker = await script("src/worker/main.ts");
  const style = await build({ ...shared, entryPoints: [here("src/style.css")], minify: true, write: false });
  let html = readFileSync(here("index.html"), "utf8");
  html = fill(html, "/*STYLE*/", style.outputFiles[0].text.trim());
  html = fill(html, "/*SCRIPT*/", (await script("src/main.ts", [workerCode(worker)])));
  mkdirSync(here("dist"), { recursive: true });
  writeFileSync(here("dist/viewer.html"), html);
  console.log(`dist/viewer.html: ${(Buffer.byteLength(html) / 1024).toFixed(1)} kB`);
}
