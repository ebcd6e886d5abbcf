// The kinds of controls that the panel is made of. Each is made once, and follows the state by `set`.

import { INK, css } from "../color";
import type { Mark } from "../marks";
import { decimalsOf, rounded } from "../rounding";
import type { State, Store } from "../state";
import type { Subject } from "../subject";
import { el, svg } from "./dom";
import type { Motion } from "./motion";

/** What groups of controls are made of. */
export interface Parts {
  readonly store: Store;
  readonly subject: Subject;
  readonly motion: Motion;
  /** Calls something whenever the state changed. */
  follow(sync: (state: State) => void): void;
}

/** Where a slider ends, and how finely it moves. */
export interface Scale {
  readonly low: number;
  readonly high: number;
  readonly step: number;
  /** What a double click brings back, and where the mark is. */
  readonly usual: number;
}

export interface SliderOptions {
  readonly name: string;
  readonly label: Node | string;
  readonly title?: string;
  readonly scale: Scale;
  /** Whether the number is stated elsewhere: it is rounded to that, and shown with all its decimals. */
  readonly stated?: boolean;
  readonly change: (value: number) => void;
  readonly after?: Node;
}

export interface Slider {
  readonly element: HTMLElement;
  set(value: number): void;
  /** Gives it another scale; `set` has to follow. */
  rescale(scale: Scale): void;
  enable(on: boolean, why: string): void;
}

/** A number with the decimals of a step; all that it has, where it is stated; three digits, where steps are tiny. */
function written(value: number, step: number, stated: boolean): string {
  const decimals = Math.max(0, Math.ceil(-Math.log10(step)));
  if (decimals > 4) return String(Number(value.toPrecision(3)));
  return value.toFixed(stated ? Math.max(decimals, decimalsOf(value)) : decimals);
}

/** A slider with its number beside it. */
export function slider({ name, label, title, scale, stated = false, change, after }: SliderOptions): Slider {
  let { low, high, step, usual } = scale;
  let now = usual;
  const range = el("input", { type: "range", "data-control": name, "aria-label": title ?? name });
  const number = el("input", { type: "number", class: "number", "aria-label": `${title ?? name}, as a number` });
  const bounded = (value: number) => Math.min(Math.max(value, low), high);
  range.addEventListener("input", () => change(range.valueAsNumber));
  number.addEventListener("change", () => {
    const entered = number.valueAsNumber;
    if (Number.isFinite(entered)) change(bounded(stated ? rounded(entered) : entered));
    else number.value = written(now, step, stated);
  });
  const reset = () => change(usual);
  range.addEventListener("dblclick", reset);
  const caption = el("span", { class: "label", title }, label);
  caption.addEventListener("dblclick", reset);
  const element = el("div", { class: after ? "slider with-button" : "slider", title }, caption, range, number, after ?? null);
  const rescale = (to: Scale) => {
    ({ low, high, step, usual } = to);
    for (const input of [range, number]) [input.min, input.max, input.step] = [String(low), String(high), String(step)];
  };
  rescale(scale);
  return {
    element,
    rescale,
    set(value) {
      now = value;
      range.value = String(value);
      const share = (x: number) => `${(100 * (x - low)) / (high - low || 1)}%`;
      const [from, to] = value < usual ? [value, usual] : [usual, value];
      range.style.setProperty("--from", share(from));
      range.style.setProperty("--to", share(to));
      if (document.activeElement !== number) number.value = written(value, step, stated);
      element.dataset.changed = String(value !== usual);
    },
    enable(on, why) {
      range.disabled = number.disabled = !on;
      element.title = on ? title ?? "" : why;
    },
  };
}

/** A choice out of a few, side by side; `heard` is what screen readers call it. */
export function choice<T extends string>(name: string, options: readonly (readonly [T, string, string?])[], change: (value: T) => void, heard = name): {
  element: HTMLElement;
  set(value: T): void;
  enable(on: boolean, why?: string): void;
} {
  const buttons = options.map(([value, text, title]) =>
    el("button", { type: "button", title, "data-control": `${name}-${value}`, onclick: () => change(value) }, text));
  const element = el("div", { class: "choice", role: "group", "aria-label": heard }, ...buttons);
  return {
    element,
    set(value) {
      buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(options[i][0] === value)));
    },
    enable(on, why = "") {
      buttons.forEach((button) => { button.disabled = !on; });
      element.title = on ? "" : why;
    },
  };
}

/** A choice out of a list. */
export function select(name: string, options: readonly (readonly [string, string])[], change: (value: string) => void, heard = name): {
  element: HTMLSelectElement;
  set(value: string): void;
} {
  const element = el("select", { "data-control": name, "aria-label": heard }, ...options.map(([value, text]) => el("option", { value }, text)));
  // Chosen by the mouse, it is done with, and keys are the page's again; by the keyboard, one may go on choosing.
  let pointed = false;
  element.addEventListener("pointerdown", () => { pointed = true; });
  element.addEventListener("keydown", () => { pointed = false; });
  element.addEventListener("change", () => {
    change(element.value);
    if (pointed) element.blur();
  });
  return {
    element,
    set(value) {
      // An address may ask for what the list does not offer.
      if (![...element.options].some((option) => option.value === value)) element.append(el("option", { value }, value));
      element.value = value;
    },
  };
}

/** Something that is on or off. */
export function toggle(name: string, text: string, title: string, change: (on: boolean) => void): {
  element: HTMLElement;
  set(on: boolean): void;
  enable(on: boolean, why: string): void;
} {
  const box = el("input", { type: "checkbox", "data-control": name });
  box.addEventListener("change", () => change(box.checked));
  const element = el("label", { class: "toggle", title }, box, el("span", {}, text));
  return {
    element,
    set(on) { box.checked = on; },
    enable(on, why) {
      box.disabled = !on;
      element.title = on ? title : why;
    },
  };
}

/** A part of the panel that can be folded. */
export function group(name: string, open: boolean, tools: Node[], ...children: (Node | null)[]): HTMLDetailsElement {
  // Buttons stand beside the summary, not in it: it is a button itself.
  return el("details", { class: "group", open, "data-group": name },
    el("summary", {}, name), tools.length > 0 && el("div", { class: "tools" }, ...tools), el("div", { class: "body" }, ...children));
}

/** A small text that explains. */
export function note(text: string): HTMLElement {
  return el("p", { class: "note" }, text);
}

/** How the outlines of a label map look: a line on the dark of the views. */
export function lineSample(mark: Mark): SVGSVGElement {
  const line = svg("line", { x1: 2, x2: 24, y1: 6, y2: 6, stroke: css(mark.own ?? INK), "stroke-dasharray": mark.dash.join(" ") });
  return svg("svg", { viewBox: "0 0 26 12", class: "line-sample", "aria-hidden": "true" }, line);
}

/** The color of something, as a dot; set by script, since the page has no styles in its markup. */
export function dot(color: string, hollow = false): HTMLElement {
  const element = el("span", { class: hollow ? "dot hollow" : "dot" });
  element.style.setProperty("--color", color);
  return element;
}
