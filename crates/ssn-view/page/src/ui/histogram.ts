// Volumes of many samples as a histogram, with those of raters, of the prediction and of the sample that is shown.

import type { Survey } from "../messages";
import type { State } from "../state";
import type { Subject } from "../subject";
import { classColor, css } from "../color";
import { raterMark } from "../marks";
import { el, svg } from "./dom";

const [WIDTH, HEIGHT, TOP, BOTTOM, SIDE] = [300, 152, 30, 25, 6];
/** Bars are as wide as a finger needs where there is no mouse. */
const BINS = matchMedia("(pointer: coarse)").matches ? 12 : 24;
/** Samples beyond so many times what is usual are counted, not drawn, as in reports. */
const FAR = 2;

export class Histogram {
  private readonly drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "histogram", role: "img" });
  private readonly text = el("p", { class: "note figures" });
  private readonly progress = el("progress", { max: 1, value: 0, "aria-label": "samples drawn" });
  readonly element = el("div", { class: "volumes" }, this.drawing, this.progress, this.text);
  private survey: Survey | null = null;
  private current: number[] | null = null;
  private focus = 1;
  /** Bar and sample of the last click: another click on a bar goes to its next sample. */
  private clicked: { bin: number; turn: number } = { bin: -1, turn: 0 };

  constructor(private readonly subject: Subject, private readonly choose: (sample: number) => void) {
    this.draw();
  }

  sync(state: State): void {
    if (state.focus === this.focus) return;
    this.focus = state.focus;
    this.draw();
  }

  /** Shows other volumes; null while there are none. */
  show(survey: Survey | null): void {
    this.survey = survey;
    this.draw();
  }

  /** The voxels of each label in the sample that is shown. */
  showSample(counts: number[] | null): void {
    this.current = counts;
    this.draw();
  }

  /** Volumes in the unit of the case. */
  private volumes(): number[] {
    const { survey, focus, subject: { header: { classes }, unit: { scale } } } = this;
    if (!survey) return [];
    return Array.from({ length: survey.samples }, (_, sample) => survey.volumes[sample * classes.length + focus] * scale);
  }

  private draw(): void {
    const { subject, focus, survey } = this;
    const { scale, name: unit } = subject.unit;
    const volumes = this.volumes();
    const raters = subject.raterCounts.map((counts) => counts[focus] * scale);
    const prediction = subject.predictionCounts[focus] * scale;
    const current = this.current ? this.current[focus] * scale : null;
    const done = survey ? survey.samples / survey.total : 0;
    this.progress.value = done;
    this.progress.dataset.done = String(done >= 1);

    const sorted = [...volumes].sort((a, b) => a - b);
    const usual = Math.max(sorted[Math.floor(sorted.length * 0.8)] ?? 0, prediction, ...raters);
    const end = usual > 0 ? FAR * usual : Infinity;
    const all = [...volumes, ...raters, prediction, ...(current === null ? [] : [current])].filter((volume) => volume <= end);
    let [low, high] = [Math.min(...all), Math.max(...all)];
    if (low < 0.35 * high) low = 0;
    if (!(high > low)) high = low + Math.max(scale, Math.abs(low) * 0.1);
    const across = (volume: number) => SIDE + ((Math.min(volume, high) - low) / (high - low)) * (WIDTH - 2 * SIDE);
    const floor = HEIGHT - BOTTOM;
    const bins: number[][] = Array.from({ length: BINS }, () => []);
    volumes.forEach((volume, sample) => {
      if (volume <= end) bins[Math.min(Math.floor(((volume - low) / (high - low)) * BINS), BINS - 1)].push(sample);
    });
    const most = Math.max(1, ...bins.map((bin) => bin.length));
    const step = (WIDTH - 2 * SIDE) / BINS;
    const parts: Node[] = [];
    bins.forEach((samples, bin) => {
      if (samples.length === 0) return;
      const height = Math.max(2, ((floor - TOP) * samples.length) / most);
      const middle = low + ((bin + 0.5) / BINS) * (high - low);
      const nearest = [...samples].sort((a, b) => Math.abs(volumes[a] - middle) - Math.abs(volumes[b] - middle));
      const bar = svg("g", { class: "bar", "data-bin": bin, "data-samples": samples.length },
        svg("rect", { x: SIDE + bin * step, y: TOP, width: step, height: floor - TOP, class: "reach" }),
        svg("rect", { x: SIDE + bin * step + 0.5, y: floor - height, width: step - 1, height, rx: 1 }),
        svg("title", {}, `${samples.length} samples around ${figure(middle)} ${unit}; click to see them`));
      bar.addEventListener("click", () => {
        this.clicked = { bin, turn: this.clicked.bin === bin ? this.clicked.turn + 1 : 0 };
        this.choose(nearest[this.clicked.turn % nearest.length]);
      });
      parts.push(bar);
    });
    parts.push(svg("line", { x1: SIDE, x2: WIDTH - SIDE, y1: floor, y2: floor, class: "axis" }));
    for (const [volume, anchor] of [[low, "start"], [high, "end"]] as const) {
      parts.push(svg("text", { x: anchor === "start" ? SIDE : WIDTH - SIDE, y: HEIGHT - 3, "text-anchor": anchor }, figure(volume)));
    }
    parts.push(svg("text", { x: WIDTH / 2, y: HEIGHT - 3, "text-anchor": "middle" }, `${subject.header.classes[focus]}, ${unit}`));
    const mark = (volume: number, top: number, kind: string, title: string) => {
      const line = svg("line", { x1: across(volume), x2: across(volume), y1: top, y2: floor, class: `mark ${kind}` }, svg("title", {}, title));
      parts.push(line);
      return line;
    };
    mark(prediction, 18, "prediction", `mean prediction: ${figure(prediction)} ${unit}`);
    // Neighbors are written at different heights.
    const order = raters.map((_, rater) => rater).sort((a, b) => raters[a] - raters[b]);
    order.forEach((rater, place) => {
      const volume = raters[rater];
      const level = 9 + 9 * (place % 3);
      const line = mark(volume, level, "rater", `${subject.header.raters[rater]}: ${figure(volume)} ${unit}`);
      const { own, dash } = raterMark(rater, subject.header.classes.length);
      line.style.setProperty("--color", own ? css(own) : "var(--text)");
      line.setAttribute("stroke-dasharray", dash.join(" "));
      const text = svg("text", { x: across(volume) + (across(volume) > WIDTH - 16 ? -2 : 2), y: level + 2, class: "rater", "text-anchor": across(volume) > WIDTH - 16 ? "end" : "start" }, shortName(subject.header.raters[rater]));
      parts.push(text);
    });
    if (current !== null) {
      const x = across(current);
      const triangle = svg("path", { d: `M${x} ${floor}l-5 8h10z`, class: "current" }, svg("title", {}, `the sample that is shown: ${figure(current)} ${unit}`));
      parts.push(triangle);
    }
    this.drawing.style.setProperty("--class", css(classColor(focus)));
    this.drawing.replaceChildren(...parts);
    this.text.textContent = this.sentence(volumes, sorted, prediction, current, end, unit);
    this.drawing.setAttribute("aria-label", `volumes of ${subject.header.classes[focus]} in samples, raters and prediction`);
  }

  private sentence(volumes: number[], sorted: number[], prediction: number, current: number | null, end: number, unit: string): string {
    const { survey } = this;
    const parts = [
      current === null ? "this sample …" : `this sample ${figure(current)}`,
      `prediction ${figure(prediction)} ${unit}`,
    ];
    if (survey && sorted.length > 0) {
      const at = (share: number) => figure(sorted[Math.min(Math.floor(share * sorted.length), sorted.length - 1)]);
      const count = survey.samples < survey.total ? `${survey.samples} of ${survey.total} samples` : `${survey.total} samples`;
      parts.push(`${count}: median ${at(0.5)}, 5–95 % ${at(0.05)}–${at(0.95)}`);
    }
    const far = volumes.filter((volume) => volume > end).length;
    if (far > 0) parts.push(`${far} far beyond the axis`);
    return parts.join(" · ");
  }
}

/** What stands beside the line of a rater: the number of `rater 3`, or else the name. */
function shortName(name: string): string {
  return /^rater (\d+)$/.exec(name)?.[1] ?? name;
}

/** A number with three digits that matter. */
export function figure(value: number): string {
  const size = Math.abs(value);
  if (size >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(3)));
}
