// The kinds of controls that the panel is made of. Each is made once, and follows the state by `set`.

import type { State, Store } from "../state";
import type { Subject } from "../subject";
import { el } from "./dom";
import type { Motion } from "./motion";

/** What groups of controls are made of. */
export interface Parts {
  readonly store: Store;
  readonly subject: Subject;
  readonly motion: Motion;
  /** Calls something whenever the state changed. */
  follow(sync: (state: State) => void): void;
}

export interface SliderOptions {
  readonly name: string;
  readonly label: Node | string;
  readonly title?: string;
  readonly low: number;
  readonly high: number;
  readonly step: number;
  /** What a double click brings back, and where the mark is. */
  readonly usual: number;
  readonly change: (value: number) => void;
  readonly after?: Node;
}

export interface Slider {
  readonly element: HTMLElement;
  set(value: number): void;
  enable(on: boolean, why: string): void;
}

/** A slider with its number beside it. */
export function slider({ name, label, title, low, high, step, usual, change, after }: SliderOptions): Slider {
  const digits = Math.max(0, Math.ceil(-Math.log10(step)));
  const range = el("input", { type: "range", min: low, max: high, step, "data-control": name, "aria-label": title ?? name });
  const number = el("input", { type: "number", min: low, max: high, step, class: "number", "aria-label": `${title ?? name}, as a number` });
  const bounded = (value: number) => Math.min(Math.max(value, low), high);
  range.addEventListener("input", () => change(range.valueAsNumber));
  number.addEventListener("change", () => {
    if (Number.isFinite(number.valueAsNumber)) change(bounded(number.valueAsNumber));
    else number.value = String(range.valueAsNumber);
  });
  const reset = () => change(usual);
  range.addEventListener("dblclick", reset);
  const caption = el("span", { class: "label", title }, label);
  caption.addEventListener("dblclick", reset);
  const element = el("div", { class: after ? "slider with-button" : "slider", title }, caption, range, number, after ?? null);
  return {
    element,
    set(value) {
      range.value = String(value);
      const share = (x: number) => `${(100 * (x - low)) / (high - low || 1)}%`;
      const [from, to] = value < usual ? [value, usual] : [usual, value];
      range.style.setProperty("--from", share(from));
      range.style.setProperty("--to", share(to));
      if (document.activeElement !== number) number.value = value.toFixed(digits);
      element.dataset.changed = String(value !== usual);
    },
    enable(on, why) {
      range.disabled = number.disabled = !on;
      element.title = on ? title ?? "" : why;
    },
  };
}

/** A choice out of a few, side by side. */
export function choice<T extends string>(name: string, options: readonly (readonly [T, string, string?])[], change: (value: T) => void): {
  element: HTMLElement;
  set(value: T): void;
  enable(on: boolean, why?: string): void;
} {
  const buttons = options.map(([value, text, title]) =>
    el("button", { type: "button", title, "data-control": `${name}-${value}`, onclick: () => change(value) }, text));
  const element = el("div", { class: "choice", role: "group", "aria-label": name }, ...buttons);
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
export function select(name: string, options: readonly (readonly [string, string])[], change: (value: string) => void): {
  element: HTMLSelectElement;
  set(value: string): void;
} {
  const element = el("select", { "data-control": name, "aria-label": name }, ...options.map(([value, text]) => el("option", { value }, text)));
  element.addEventListener("change", () => change(element.value));
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
  const summary = el("summary", {}, el("span", {}, name), el("span", { class: "tools" }, ...tools));
  for (const tool of tools) tool.addEventListener("click", (event) => event.preventDefault());
  return el("details", { class: "group", open, "data-group": name }, summary, el("div", { class: "body" }, ...children));
}

/** A small text that explains. */
export function note(text: string): HTMLElement {
  return el("p", { class: "note" }, text);
}

/** The colour of something, as a dot; set by script, since the page has no styles in its markup. */
export function dot(colour: string, hollow = false): HTMLElement {
  const element = el("span", { class: hollow ? "dot hollow" : "dot" });
  element.style.setProperty("--colour", colour);
  return element;
}
