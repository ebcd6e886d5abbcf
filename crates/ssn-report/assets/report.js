// What a page can do beyond showing itself: tables sort and are copied, figures are enlarged and saved, lines are copied.
"use strict";

const make = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
  element.append(...children);
  return element;
};
const button = (text, label, action) => {
  const made = make("button", { type: "button", "aria-label": label }, text);
  made.addEventListener("click", action);
  return made;
};

// Says what happened, to those who cannot see it, too.
const status = make("p", { class: "status", role: "status" });
document.body.append(status);
let clearing;
const say = (text) => {
  status.textContent = text;
  clearTimeout(clearing);
  clearing = setTimeout(() => { status.textContent = ""; }, 3000);
};

const copy = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Where the browser has no clipboard for pages from files, a selection is copied.
    const area = make("textarea", { readonly: "", class: "unseen" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  say("Copied");
};
document.addEventListener("click", (event) => {
  const copied = event.target.closest?.("button[data-copy]");
  if (copied) copy(copied.dataset.copy);
});

const save = (name, blob) => {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  say(`Saved ${name}`);
};

// Tables sort by the column whose heading is clicked: first upwards, then downwards. Cells without a value stay last.
document.querySelectorAll("table.sortable thead button").forEach((heading) => {
  heading.addEventListener("click", () => {
    const th = heading.closest("th");
    const table = heading.closest("table");
    const column = Array.from(th.parentNode.children).indexOf(th);
    const down = th.getAttribute("aria-sort") === "ascending";
    table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
    th.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => row.children[column].dataset.value ?? "";
    const compare = (a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === "" || y === "") return (x === "") - (y === "");
      const [p, q] = [Number(x), Number(y)];
      const order = Number.isNaN(p) || Number.isNaN(q) ? x.localeCompare(y, "en", { numeric: true }) : p - q;
      return down ? -order : order;
    };
    const body = table.tBodies[0];
    body.append(...Array.from(body.rows).sort(compare));
  });
});

// A table as rows of cells, without columns of buttons; names below a heading carry it.
const cells = (table) => {
  const read = (row) => Array.from(row.children).filter((cell) => !cell.classList.contains("action"))
    .map((cell) => ({ text: cell.textContent.trim(), best: cell.querySelector("strong") !== null }));
  const rows = [];
  let group = null;
  for (const row of table.tBodies[0].rows) {
    if (row.classList.contains("group")) group = row.textContent.trim();
    else rows.push({ group, cells: read(row) });
  }
  return { head: read(table.tHead.rows[0]), rows };
};
const named = ({ group, cells: [first, ...rest] }) => [group ? { ...first, text: `${group}: ${first.text}` } : first, ...rest];

const csv = (table) => {
  const { head, rows } = cells(table);
  // Numbers as programs read them; a dash is a value that is not there.
  const plain = (text) => (text === "–" ? "" : text.replaceAll("−", "-"));
  const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  // Text that a spreadsheet would run as a formula; numbers are none.
  const number = /^[-+]?\d*\.?\d+(e[-+]?\d+)?( ± \d*\.?\d+)?( %)?$/i;
  const guarded = (text) => (/^[=+\-@\t\r]/.test(text) && !number.test(text) ? `'${text}` : text);
  return [head, ...rows.map(named)].map((row) => row.map((cell) => quoted(guarded(plain(cell.text)))).join(",")).join("\n") + "\n";
};

const markdown = (table) => {
  const { head, rows } = cells(table);
  const escaped = (text) => text.replace(/[\\|`*_<>[\]]/g, "\\$&").replace(/\s+/g, " ");
  const line = (row) => `| ${row.map((cell) => (cell.best ? `**${escaped(cell.text)}**` : escaped(cell.text))).join(" | ")} |`;
  const rule = `|${head.map((_, column) => (column === 0 ? "---" : "---:")).join("|")}|`;
  return [line(head), rule, ...rows.map((row) => line(named(row)))].join("\n") + "\n";
};

const SIGNS = {
  "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "−": "$-$", "±": "$\\pm$", "×": "$\\times$", "↑": "$\\uparrow$",
  "↓": "$\\downarrow$", "→": "$\\rightarrow$", "≈": "$\\approx$", "²": "$^2$", "–": "--", "…": "\\ldots{}", "·": "$\\cdot$", "<": "$<$", ">": "$>$", "|": "$|$",
};
const latex = (table) => {
  const { head, rows } = cells(table);
  const escaped = (text) => text.replace(/[&%$#_{}\\~^−±×↑↓→≈²–…·<>|]/g, (sign) => SIGNS[sign] ?? `\\${sign}`);
  const line = (row) => `${row.map((cell) => (cell.best ? `\\textbf{${escaped(cell.text)}}` : escaped(cell.text))).join(" & ")} \\\\`;
  const lines = [];
  let group = null;
  for (const row of rows) {
    if (row.group !== group) lines.push("\\midrule", `\\multicolumn{${head.length}}{l}{\\textit{${escaped(row.group)}}} \\\\`);
    group = row.group;
    lines.push(line(row.cells));
  }
  return ["% needs \\usepackage{booktabs}", `\\begin{tabular}{l${"r".repeat(head.length - 1)}}`, "\\toprule", line(head), "\\midrule", ...lines, "\\bottomrule", "\\end{tabular}"].join("\n") + "\n";
};

document.querySelectorAll("div.scroll > table").forEach((table) => {
  const name = table.getAttribute("aria-label");
  const forms = { CSV: csv, LaTeX: latex, Markdown: markdown };
  const tools = Object.entries(forms).map(([form, text]) => button(form, `Copy the table "${name}" as ${form}`, () => copy(text(table))));
  table.parentNode.after(make("p", { class: "tools" }, "Copy as ", ...tools));
});

// The drawing as a file of its own: in the colors of light paper, whatever those of the page are.
const standalone = (svg) => new XMLSerializer().serializeToString(svg);
const png = async (svg) => {
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standalone(svg))}`;
  await picture.decode();
  const [width, height] = ["width", "height"].map((side) => Math.round(2 * Number(svg.getAttribute(side))));
  const canvas = make("canvas", { width, height });
  const context = canvas.getContext("2d");
  context.fillStyle = "#ffffff";
  context.fillRect(0, 0, width, height);
  context.drawImage(picture, 0, 0, width, height);
  return new Promise((done) => { canvas.toBlob(done, "image/png"); });
};

const large = make("dialog", { "aria-label": "Enlarged figure" });
const inside = make("div", { class: "large", tabindex: "0", role: "group", "aria-label": "Figure" });
large.append(button("Close", "Close the enlarged figure", () => large.close()), inside);
large.addEventListener("click", (event) => { if (event.target === large) large.close(); });
large.addEventListener("close", () => inside.replaceChildren());
document.body.append(large);
const enlarge = (svg) => {
  inside.replaceChildren(svg.cloneNode(true));
  large.showModal();
};

document.querySelectorAll("figure").forEach((figure) => {
  const svg = figure.querySelector("svg");
  const { name } = figure.dataset;
  const title = svg.querySelector("title")?.textContent ?? name;
  figure.querySelector(".drawing").addEventListener("click", () => enlarge(svg));
  figure.append(make("p", { class: "tools" },
    button("Enlarge", `Enlarge the figure "${title}"`, () => enlarge(svg)),
    button("SVG", `Save the figure "${title}" as SVG`, () => save(`${name}.svg`, new Blob([standalone(svg)], { type: "image/svg+xml" }))),
    button("PNG", `Save the figure "${title}" as PNG`, async () => save(`${name}.png`, await png(svg)))));
});

// Boxes that scroll can be reached with the keyboard.
const reachable = () => document.querySelectorAll(".drawing, .scroll").forEach((box) => {
  const scrolls = box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1;
  if (scrolls === box.hasAttribute("tabindex")) return;
  const name = box.querySelector("table")?.getAttribute("aria-label") ?? box.querySelector("svg title")?.textContent ?? "Figure";
  const attributes = { tabindex: "0", role: "region", "aria-label": `${name}, scrolls` };
  Object.entries(attributes).forEach(([key, value]) => (scrolls ? box.setAttribute(key, value) : box.removeAttribute(key)));
});
addEventListener("resize", reachable);
document.querySelectorAll("details").forEach((details) => details.addEventListener("toggle", reachable));
reachable();

// A link to something that is closed opens it; on paper everything is open.
const open = (element) => {
  for (let at = element; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
};
const follow = () => {
  let target = null;
  const wanted = location.hash.slice(1);
  try {
    target = document.getElementById(wanted) ?? document.getElementById(decodeURIComponent(wanted));
  } catch {
    // A part of the address that is no text names nothing.
  }
  if (!target) return;
  open(target);
  target.scrollIntoView();
};
document.querySelectorAll('a[href^="#"]').forEach((link) => link.addEventListener("click", () => {
  const target = document.getElementById(link.getAttribute("href").slice(1));
  if (target) open(target);
}));
addEventListener("hashchange", follow);
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
follow();
