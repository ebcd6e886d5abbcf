// The keys and gestures, in a dialog.

import { el, iconButton } from "./dom";

export const KEYS: readonly (readonly [string, string])[] = [
  ["← →", "sample before, sample after (with Shift: ten)"],
  ["space", "play through samples"],
  ["↑ ↓", "slice before, slice after (Page Up and Down: ten)"],
  ["1 2 3", "axial, coronal, sagittal"],
  ["v", "one view or three"],
  ["z", "surfaces in 3D"],
  ["c", "compare two settings side by side"],
  ["a b", "which of the two the controls change"],
  ["t T", "temperature down, up"],
  ["r", "steer nothing"],
  ["d", "noise of single voxels on or off"],
  ["f", "sample: fill, line, both, off"],
  ["p", "mean prediction on or off"],
  ["x", "raters on or off"],
  ["m", "next map: entropy, probability, moves with, those of raters, none"],
  ["k", "next class for maps and volumes"],
  ["o", "one class alone: the next; all again"],
  ["q", "quantile contours"],
  ["g", "gallery"],
  ["h", "cross-hair"],
  ["i j", "image on or off, next channel"],
  ["+ − 0", "zoom in, out, whole"],
  ["w", "usual contrast"],
  ["[ ]", "case before, case after"],
  ["s S", "save a figure as PNG; choose size and background"],
  ["n", "save the sample as NIfTI label map"],
  ["l", "copy a link to what is shown"],
  ["?", "this help"],
];

const GESTURES: readonly (readonly [string, string])[] = [
  ["click", "choose a voxel; other planes go there"],
  ["drag", "move the image"],
  ["Shift and drag", "move the cross-hair"],
  ["right drag", "contrast: across the width, down the level"],
  ["wheel", "slices of a volume; zoom of a picture"],
  ["Ctrl and wheel", "zoom"],
  ["two fingers", "zoom and move the image"],
  ["Tab to a view", "then arrows move its cross-hair, Page Up and Down its slice"],
  ["double click", "whole image; on a slider its usual value"],
];

export function helpDialog(): HTMLDialogElement {
  type Rows = readonly (readonly [string, string])[];
  const table = (rows: Rows, shown: (text: string) => (Node | string)[]) =>
    el("table", {}, ...rows.map(([name, what]) => el("tr", {}, el("th", { scope: "row" }, ...shown(name)), el("td", {}, what))));
  const keys = (text: string) => text.split(" ").flatMap((key) => [el("kbd", {}, key), " "]);
  const dialog = el("dialog", { class: "help", "aria-label": "Keys" });
  dialog.append(
    el("header", {}, el("strong", {}, "Keys"), iconButton("close", "Close", () => dialog.close())),
    el("div", { class: "help-columns" }, table(KEYS.slice(0, 16), keys), el("div", {}, table(KEYS.slice(16), keys), el("h2", {}, "Mouse, touch and focus"), table(GESTURES, (text) => [text]))),
    el("p", { class: "note" }, "A sample is a function of seed, number and settings: `ssn sample` with the same gives the same label map, voxel for voxel. Research use only, not a medical device."),
  );
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  return dialog;
}
