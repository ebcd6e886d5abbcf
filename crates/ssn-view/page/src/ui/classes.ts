// The classes that label maps show: each on or off, or one alone.

import { classColor, css } from "../color";
import type { Parts } from "./controls";
import { dot } from "./controls";
import { el } from "./dom";

/** The classes that are hidden when one is switched on or off. */
export function switched(hidden: readonly number[], label: number): number[] {
  return hidden.includes(label) ? hidden.filter((other) => other !== label) : [...hidden, label].sort((a, b) => a - b);
}

/** The classes that are hidden when one is shown alone; none where it was alone already. */
export function alone(hidden: readonly number[], label: number, classes: number): number[] {
  const others = Array.from({ length: classes - 1 }, (_, i) => i + 1).filter((other) => other !== label);
  return others.every((other) => hidden.includes(other)) && !hidden.includes(label) ? [] : others;
}

/** The class that is alone, or none. */
export function soloClass(hidden: readonly number[], classes: number): number | null {
  const shown = Array.from({ length: classes - 1 }, (_, i) => i + 1).filter((label) => !hidden.includes(label));
  return shown.length === 1 ? shown[0] : null;
}

/** A row of switches; nothing where there is a single class, which its overlays switch. */
export function classSwitches({ store, subject: { header }, follow }: Parts): HTMLElement | null {
  const count = header.classes.length;
  if (count === 2) return null;
  const rows = header.classes.slice(1).map((name, i) => {
    const label = i + 1;
    const box = el("input", { type: "checkbox", "data-control": `show-class-${label}` });
    box.addEventListener("change", () => store.update({ hiddenClasses: switched(store.state.hiddenClasses, label) }));
    const only = el("button", { type: "button", class: "only", title: `Show ${name} alone; again, all classes`, "aria-label": `only ${name}`, "data-control": `solo-class-${label}` }, "only");
    only.addEventListener("click", () => store.update({ hiddenClasses: alone(store.state.hiddenClasses, label, count) }));
    follow(({ hiddenClasses }) => {
      box.checked = !hiddenClasses.includes(label);
      only.setAttribute("aria-pressed", String(soloClass(hiddenClasses, count) === label));
    });
    return el("div", { class: "class-switch" }, el("label", { class: "toggle", title: `Show ${name} in all label maps` }, box, dot(css(classColor(label))), el("span", {}, name)), only);
  });
  return el("div", { class: "classes", role: "group", "aria-label": "classes that are shown" }, ...rows);
}
