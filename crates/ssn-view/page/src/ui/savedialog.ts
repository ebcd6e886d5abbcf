// How a figure is saved: its size, its background, and what stands below.

import { type FigureBackground, type FigureOptions, type FigureScale, SCALES } from "../figure";
import { choice, toggle } from "./controls";
import { el, iconButton } from "./dom";

export interface FigureChoices {
  figure: FigureOptions;
  picture(): Promise<void>;
}

/** The dialog; it changes the choices at once, and the button saves. */
export function saveDialog(choices: FigureChoices): { element: HTMLDialogElement; open(): void } {
  const dialog = el("dialog", { class: "dialog save-dialog", "aria-label": "Save a figure" });
  const set = (change: Partial<FigureOptions>) => {
    choices.figure = { ...choices.figure, ...change };
    sync();
  };
  const scale = choice<FigureScale>("figure-scale", SCALES.map((times) => [times, `${times}×`, `${times} pixels of the picture for each of the page`] as const), (value) => set({ scale: value }), "size");
  const background = choice<FigureBackground>("figure-background", [["white", "white"], ["black", "black"]], (value) => set({ background: value }), "background");
  const legend = toggle("figure-legend", "legend", "Classes, label maps and the scale of the map", (on) => set({ legend: on }));
  const settings = toggle("figure-settings", "case and settings", "The case, and the options with which ssn sample draws the same", (on) => set({ settings: on }));
  function sync(): void {
    scale.set(choices.figure.scale);
    background.set(choices.figure.background);
    legend.set(choices.figure.legend);
    settings.set(choices.figure.settings);
  }
  const save = el("button", { type: "button", class: "main-button", "data-control": "figure-save" }, "Save PNG");
  save.addEventListener("click", () => {
    dialog.close();
    void choices.picture();
  });
  const row = (name: string, ...controls: Node[]) => el("div", { class: "row" }, el("span", { class: "label" }, name), ...controls);
  dialog.append(
    el("header", {}, el("strong", {}, "Save a figure"), iconButton("close", "Close", () => dialog.close())),
    el("div", { class: "body" }, row("size", scale.element), row("on", background.element), row("below", legend.element, settings.element),
      el("div", { class: "row" }, save)),
  );
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  return {
    element: dialog,
    open() {
      sync();
      dialog.showModal();
      save.focus();
    },
  };
}
