// The list of cases with their scores: searched, and sorted by any column. The cases before and after are those of the list.

import type { Listed, ScoreColumn } from "../source";
import { el, icon } from "./dom";

/** A column by which cases are sorted; what has no value comes last. */
interface Column {
  readonly key: string;
  readonly name: string;
  readonly title: string;
  value(listed: Listed): number | string | null;
  shown(listed: Listed): string;
}

function score({ key, name, title, factor, digits }: ScoreColumn): Column {
  const value = ({ scores }: Listed) => scores?.[key] ?? null;
  return { key, name, title, value, shown: (listed) => { const found = value(listed); return found === null ? "–" : (factor * found).toFixed(digits); } };
}

const NAME: Column = { key: "name", name: "case", title: "The name of the case", value: ({ name }) => name, shown: ({ name }) => name };
const SIZE: Column = {
  key: "size", name: "size", title: "Voxels of the image",
  value: ({ size }) => size?.reduce((product, extent) => product * extent, 1) ?? null,
  shown: ({ size }) => (size ? (size[0] > 1 ? [...size].reverse() : [size[2], size[1]]).join(" × ") : ""),
};

/** Cases by a column, with those that have no value at the end whatever the direction. */
export function sortCases(cases: readonly Listed[], value: (listed: Listed) => number | string | null, descending: boolean): Listed[] {
  const order = (a: number | string, b: number | string) =>
    typeof a === "string" || typeof b === "string" ? String(a).localeCompare(String(b), "en", { numeric: true }) : a - b;
  return [...cases].sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    return descending ? order(b, a) : order(a, b);
  });
}

export class Cases {
  private readonly name = el("span", { class: "case-name" }, " ");
  private readonly search = el("input", { type: "search", placeholder: "search cases", "aria-label": "search cases", "data-control": "search" });
  private readonly rows = el("tbody");
  private readonly nothing = el("p", { class: "note", role: "status" });
  private readonly popover: HTMLElement;
  private readonly button = el("button", {
    type: "button", class: "case-button", title: "Choose a case ([ and ] go to the one before and after)", "aria-haspopup": "dialog", "aria-expanded": "false",
  }, icon("list"), this.name);
  readonly element: HTMLElement;
  private readonly columns: readonly Column[];
  private readonly headings: HTMLTableCellElement[];
  /** The cases in the order of the list. */
  private order: readonly Listed[];
  private sorted: { by: Column; descending: boolean } | null = null;
  private current = "";

  constructor(private readonly cases: readonly Listed[], scores: readonly ScoreColumn[], private readonly choose: (id: string) => void) {
    this.order = cases;
    this.columns = [
      NAME,
      ...(cases.some(({ size }) => size !== null) ? [SIZE] : []),
      ...(cases.some((listed) => listed.scores !== null) ? scores.map(score) : []),
    ];
    this.headings = this.columns.map((column) => {
      const sort = el("button", { type: "button", title: `${column.title}. Click to sort`, "data-control": `sort-${column.key}` }, column.name);
      sort.addEventListener("click", () => this.sort(column));
      return el("th", { scope: "col" }, sort);
    });
    const table = el("table", {}, el("thead", {}, el("tr", {}, ...this.headings)), this.rows);
    this.popover = el("div", { class: "popover cases", hidden: true, role: "dialog", "aria-label": "cases" },
      this.search, el("div", { class: "case-table", tabindex: 0, role: "region", "aria-label": "list of cases" }, table), this.nothing);
    this.element = el("div", { class: "case-menu" }, this.button, this.popover);
    this.button.disabled = cases.length < 2;
    this.button.addEventListener("click", () => this.toggle(this.popover.hidden));
    this.search.addEventListener("input", () => this.fill());
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.rows.querySelector<HTMLElement>("button")?.click();
    });
    document.addEventListener("pointerdown", (event) => {
      if (!this.element.contains(event.target as Node)) this.toggle(false);
    });
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || this.popover.hidden) return;
      this.toggle(false);
      this.button.focus();
    });
  }

  /** Names the case that is open. */
  set(id: string): void {
    this.current = id;
    const place = this.order.findIndex((one) => one.id === id);
    const count = this.order.length > 1 ? ` (${place + 1} of ${this.order.length})` : "";
    this.name.textContent = place < 0 ? " " : this.order[place].name + count;
  }

  /** Goes to a neighbor in the list. */
  step(by: number): void {
    const place = this.order.findIndex((one) => one.id === this.current) + by;
    if (this.order[place]) this.choose(this.order[place].id);
  }

  /** Sorts by a column: upward, downward, and then as the cases came. */
  private sort(by: Column): void {
    const { sorted } = this;
    this.sorted = sorted?.by !== by ? { by, descending: false } : sorted.descending ? null : { by, descending: true };
    this.order = this.sorted ? sortCases(this.cases, by.value, this.sorted.descending) : this.cases;
    this.set(this.current);
    this.fill();
  }

  private toggle(open: boolean): void {
    if (open === !this.popover.hidden) return;
    this.popover.hidden = !open;
    this.button.setAttribute("aria-expanded", String(open));
    if (!open) return;
    this.search.value = "";
    this.fill();
    this.search.focus();
    this.rows.querySelector('[aria-current="true"]')?.scrollIntoView({ block: "center" });
  }

  private fill(): void {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = this.order.filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)));
    this.headings.forEach((heading, i) => {
      const { by, descending } = this.sorted ?? {};
      if (this.columns[i] === by) heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else heading.removeAttribute("aria-sort");
    });
    this.rows.replaceChildren(...found.map((listed) => {
      const current = listed.id === this.current;
      const button = el("button", { type: "button", "aria-current": current ? "true" : undefined }, listed.name);
      const row = el("tr", { class: current ? "current-case" : "" }, el("th", { scope: "row" }, button),
        ...this.columns.slice(1).map((column) => el("td", {}, column.shown(listed))));
      // All of a row leads to its case; the button is what the keyboard reaches.
      row.addEventListener("click", () => {
        this.toggle(false);
        this.choose(listed.id);
      });
      return row;
    }));
    this.nothing.textContent = found.length === 0 ? "No case has this in its name." : "";
  }
}
