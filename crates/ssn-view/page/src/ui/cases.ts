// The list of cases, with a search.

import type { Listed } from "../source";
import { el, icon } from "./dom";

export class Cases {
  private readonly name = el("span", { class: "case-name" }, " ");
  private readonly search = el("input", { type: "search", placeholder: "search cases", "aria-label": "search cases", "data-control": "search" });
  private readonly list = el("ul", { role: "listbox", "aria-label": "cases" });
  private readonly popover = el("div", { class: "popover cases", hidden: true }, this.search, this.list);
  private readonly button = el("button", { type: "button", class: "case-button", title: "Choose a case ([ and ] go to the one before and after)" }, icon("list"), this.name);
  readonly element = el("div", { class: "case-menu" }, this.button, this.popover);
  private current = "";

  constructor(private readonly cases: readonly Listed[], private readonly choose: (id: string) => void) {
    this.button.disabled = cases.length < 2;
    this.button.addEventListener("click", () => this.toggle(this.popover.hidden));
    this.search.addEventListener("input", () => this.fill());
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.list.querySelector<HTMLElement>("button")?.click();
    });
    document.addEventListener("pointerdown", (event) => {
      if (!this.element.contains(event.target as Node)) this.toggle(false);
    });
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.toggle(false);
    });
  }

  /** Names the case that is open. */
  set(id: string): void {
    this.current = id;
    const place = this.cases.findIndex((one) => one.id === id);
    const count = this.cases.length > 1 ? ` (${place + 1} of ${this.cases.length})` : "";
    this.name.textContent = place < 0 ? " " : this.cases[place].name + count;
  }

  /** Goes to a neighbor. */
  step(by: number): void {
    const place = this.cases.findIndex((one) => one.id === this.current) + by;
    if (this.cases[place]) this.choose(this.cases[place].id);
  }

  private toggle(open: boolean): void {
    if (open === !this.popover.hidden) return;
    this.popover.hidden = !open;
    if (!open) return;
    this.search.value = "";
    this.fill();
    this.search.focus();
    this.list.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "center" });
  }

  private fill(): void {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = this.cases.filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)));
    this.list.replaceChildren(...found.map(({ id, name, size }) => {
      const told = size ? (size[0] > 1 ? [...size].reverse().join(" × ") : `${size[2]} × ${size[1]}`) : "";
      const button = el("button", { type: "button", role: "option", "aria-selected": String(id === this.current) }, el("span", {}, name), el("small", {}, told));
      button.addEventListener("click", () => {
        this.toggle(false);
        this.choose(id);
      });
      return el("li", {}, button);
    }));
    if (found.length === 0) this.list.append(el("li", { class: "note" }, "No case has this in its name."));
  }
}
