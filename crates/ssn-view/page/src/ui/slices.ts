// The bar below the views of a volume: which plane is the main one, and which of its slices is shown.

import type { Axis } from "../geometry";
import type { State, Store } from "../state";
import type { Subject } from "../subject";
import { choice } from "./controls";
import { el } from "./dom";

const ORDER = ["axial", "coronal", "sagittal"];

export class SliceBar {
  private readonly range = el("input", { type: "range", step: 1, "data-control": "slice" });
  private readonly told = el("output", { class: "slice-number" });
  private readonly planes;
  readonly element: HTMLElement;

  constructor(store: Store, private readonly subject: Subject) {
    const axes = ([0, 1, 2] as const).map((axis) => [String(axis), subject.planes[axis].name] as const).sort(([, a], [, b]) => ORDER.indexOf(a) - ORDER.indexOf(b));
    this.planes = choice<string>("plane", axes, (axis) => store.update({ axis: Number(axis) as Axis }));
    this.range.addEventListener("input", () => {
      const cross: [number, number, number] = [...store.state.cross];
      cross[store.state.axis] = this.range.valueAsNumber;
      store.update({ cross });
    });
    this.element = el("div", { class: "slice-bar", role: "group", "aria-label": "Slices" }, this.planes.element, this.range, this.told);
    this.element.hidden = !subject.volume;
  }

  /** Follows the state. */
  sync({ axis, cross }: State): void {
    if (!this.subject.volume) return;
    const { start, size } = this.subject.header.shown;
    const { number, count } = this.subject.slice(this.subject.plane(axis, cross));
    const [first, last] = [start[axis], start[axis] + size[axis] - 1];
    [this.range.min, this.range.max, this.range.value] = [String(first), String(last), String(cross[axis])];
    const name = this.subject.planes[axis].name;
    this.range.setAttribute("aria-label", `${name} slice`);
    this.range.setAttribute("aria-valuetext", `${number} of ${count}`);
    this.range.style.setProperty("--to", `${(100 * (cross[axis] - first)) / Math.max(last - first, 1)}%`);
    this.planes.set(String(axis));
    this.told.textContent = `${number} of ${count}`;
  }
}
