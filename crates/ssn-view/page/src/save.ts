// What is saved: the views as a picture, and the sample as a label map.

import type { Settings } from "./messages";
import { gzip, niftiFile } from "./nifti";
import { type Triple, voxels } from "./package";
import type { State } from "./state";
import type { Subject } from "./subject";
import type { Stage } from "./view/stage";
import { wrap } from "./wrap";

/** Hands a file to the reader. */
export function download(name: string, blob: Blob): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** A name without what file systems do not take. */
export function fileName(subject: Subject, settings: Settings): string {
  return `${subject.header.name.replace(/[^\w.-]+/g, "_")}_sample_${settings.sample}`;
}

/** The settings as options of `ssn sample`, each with its value: what they change, or nothing. */
function options(subject: Subject, settings: Settings): string[] {
  const { header } = subject;
  const names = header.classes.slice(header.classes.length - header.logits);
  const quoted = (text: string) => (/^[\w.=+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
  const parts = [`--seed ${settings.seed}`, `--first ${settings.sample}`, "--samples 1"];
  if (header.kind === "stochastic") {
    if (settings.temperature !== 1) parts.push(`--temperature ${settings.temperature}`);
    settings.classScales.forEach((scale, k) => { if (scale !== 1) parts.push(`--class-scale ${quoted(`${names[k]}=${scale}`)}`); });
    settings.modeWeights.forEach((weight, q) => { if (weight !== 1) parts.push(`--mode-weight ${q}=${weight}`); });
    if (!settings.diagonalNoise) parts.push("--no-diagonal-noise");
  }
  return parts;
}

/** The settings as `ssn sample` takes them. */
export function asArguments(subject: Subject, settings: Settings): string {
  return options(subject, settings).join(" ");
}

/** Height of a line below the views, and what is left free around text, in pixels of the page. */
const [LINE, MARGIN] = [17, 10];

/** The views as they are, with lines below that say what they show. */
export function picture(stage: Stage, subject: Subject, state: State): Promise<Blob> {
  const ratio = window.devicePixelRatio || 1;
  const box = stage.element.getBoundingClientRect();
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d")!;
  const font = `${12 * ratio}px system-ui, sans-serif`;
  context.font = font;
  const [width, views] = [Math.round(box.width * ratio), Math.round(box.height * ratio)];
  const slots = state.compare ? [0, 1] : [0];
  const told = slots.map((slot) => [...(state.compare ? [`${"AB"[slot]}:`] : []), ...options(subject, state.settings[slot])]);
  const lines = [[`${subject.header.name} ·`, ...told[0]], ...told.slice(1), ["Made by ssn view. Research use only, not a medical device."]]
    .flatMap((pieces) => wrap(pieces, width - 2 * MARGIN * ratio, (text) => context.measureText(text).width));
  // A canvas that gets a size forgets its font.
  canvas.width = width;
  canvas.height = views + Math.round((lines.length * LINE + MARGIN) * ratio);
  context.font = font;
  context.fillStyle = "#0b0d10";
  context.fillRect(0, 0, canvas.width, canvas.height);
  for (const pane of stage.panes) {
    const place = pane.canvas.getBoundingClientRect();
    context.drawImage(pane.canvas, Math.round((place.left - box.left) * ratio), Math.round((place.top - box.top) * ratio));
  }
  context.fillStyle = "#c9ced6";
  context.textBaseline = "middle";
  lines.forEach((line, i) => context.fillText(line, MARGIN * ratio, views + (MARGIN / 2 + LINE * (i + 0.5)) * ratio));
  return new Promise((done, failed) => canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("The picture could not be made."))), "image/png"));
}

/** Labels of what is shown, on the whole image. */
export function onImage(subject: Subject, labels: Uint8Array): Uint8Array {
  const { size, shown } = subject.header;
  const out = new Uint8Array(voxels(size));
  const [d, h, w]: Triple = shown.size;
  const [z0, y0, x0] = shown.start;
  for (let z = 0; z < d; z++) {
    for (let y = 0; y < h; y++) {
      const from = (z * h + y) * w;
      out.set(labels.subarray(from, from + w), ((z + z0) * size[1] + y + y0) * size[2] + x0);
    }
  }
  return out;
}

/** The label map of a sample as `.nii.gz`, by the values that the dataset stores classes by. */
export function labelMap(subject: Subject, labels: Uint8Array): Promise<Blob> {
  const { label_values: values } = subject.header;
  const whole = onImage(subject, labels);
  return gzip(niftiFile(subject.header, values ? whole.map((label) => values[label]) : whole));
}
