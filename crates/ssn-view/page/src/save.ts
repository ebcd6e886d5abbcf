// What is saved beside figures: the sample as a label map, and the settings as options of the command line.

import type { Settings } from "./messages";
import { gzip, niftiFile } from "./nifti";
import { type Triple, voxels } from "./package";
import type { Subject } from "./subject";

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
export function sampleOptions(subject: Subject, settings: Settings): string[] {
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
  return sampleOptions(subject, settings).join(" ");
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
