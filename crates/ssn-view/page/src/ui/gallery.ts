// Groups of samples that are alike, each by its most typical one and with its share of all, the largest first and rare ones marked.
// Until they are found, the first samples stand in their place; each is shown as soon as its slice is drawn.

import type { Engine } from "../engine";
import { COLUMNS, type Plane, ROWS, strides } from "../geometry";
import { sampleMark } from "../marks";
import type { Settings } from "../messages";
import type { State } from "../state";
import type { Subject } from "../subject";
import { Raster, paintImage, paintLabels } from "../view/raster";
import { RARE, type SampleGroup } from "../worker/clusters";
import { el } from "./dom";

export const GALLERY = 8;
const SIDE = 132;
/** How long settings rest before slices are asked for, in milliseconds. */
const REST = 120;

export class Gallery {
  private readonly list = el("div", { class: "thumbs" });
  private readonly state = el("span", { class: "note" });
  readonly element = el("section", { class: "gallery", "aria-label": "Groups of samples" }, el("header", {}, el("strong", {}, "Groups of samples"), this.state), this.list);
  private samples: readonly number[];
  /** The share of each sample's group; none until groups were found, under these settings or others. */
  private shares: readonly number[] = [];
  /** Samples that are known to have no voxel of any class. */
  private empty: ReadonlySet<number> = new Set();
  private shown = "";
  private timer = 0;
  private readonly tiles: { button: HTMLButtonElement; canvas: HTMLCanvasElement; caption: HTMLElement }[];

  constructor(private readonly engine: Engine, private readonly subject: Subject, private readonly choose: (sample: number) => void) {
    this.tiles = Array.from({ length: GALLERY }, (_, place) => {
      const canvas = el("canvas", { width: SIDE, height: SIDE });
      const caption = el("span", { class: "thumb-name" });
      const button = el("button", { type: "button", class: "thumb", disabled: true }, canvas, el("span", { class: "thumb-empty" }, "empty"), caption);
      button.addEventListener("click", () => this.choose(this.samples[place]));
      return { button, canvas, caption };
    });
    this.list.append(...this.tiles.map(({ button }) => button));
    const count = subject.header.kind === "sampled" ? Math.min(subject.stored, GALLERY) : GALLERY;
    this.samples = Array.from({ length: count }, (_, sample) => sample);
  }

  /** Shows groups of samples. */
  show(groups: readonly SampleGroup[], empty: ReadonlySet<number>, told: string): void {
    this.samples = groups.map(({ sample }) => sample);
    this.shares = groups.map(({ share }) => share);
    this.empty = empty;
    this.state.textContent = told;
  }

  /** Keeps the samples that are there while groups are being found. */
  finding(empty: ReadonlySet<number>, drawn = ""): void {
    this.empty = empty;
    this.state.textContent = `${this.shares.length > 0 ? "as found for the settings before" : "the first ones for now"}; groups are being found${drawn}`;
  }

  /** Follows the slice and the settings. */
  sync(state: State, plane: Plane): void {
    this.element.hidden = !state.gallery;
    if (!state.gallery) return;
    const settings = state.settings[state.active];
    this.tiles.forEach(({ button, caption }, place) => {
      const sample = this.samples[place];
      button.disabled = sample === undefined;
      const share = this.shares[place];
      const told = share === undefined ? "" : `${Math.round(100 * share)} %${share <= RARE ? ", rare" : ""}`;
      const name = [told, `sample ${sample}`].filter(Boolean).join(", ");
      const empty = this.empty.has(sample);
      // Found groups may be fewer than there is room for.
      button.hidden = sample === undefined && this.shares.length > 0;
      caption.textContent = sample === undefined ? "" : [told, `sample ${sample}`].filter(Boolean).join("\n");
      button.dataset.empty = String(empty);
      button.setAttribute("aria-label", sample === undefined ? "a sample to come" : empty ? `${name}, empty` : name);
      button.setAttribute("aria-pressed", String(sample === settings.sample));
    });
    const key = [this.samples.join(" "), plane.axis, plane.index, settings.seed, settings.temperature, ...settings.classScales, "|",
      ...settings.modeWeights, settings.diagonalNoise, state.channel, ...state.window, state.image, "|", ...state.hiddenClasses].join(" ");
    if (key === this.shown) return;
    this.shown = key;
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.ask(state, settings, plane), REST);
  }

  /** Nothing more is asked for. */
  stop(): void {
    window.clearTimeout(this.timer);
    this.engine.cancel("gallery");
  }

  private ask(state: State, settings: Settings, plane: Plane): void {
    const { samples } = this;
    const maps: Uint8Array[] = [];
    let painted = "";
    this.engine.ask("gallery", { kind: "slices", plane, settings, samples }, ({ place, labels }) => {
      maps[place] = labels;
      const box = this.around(maps, plane);
      // All show the same part of the slice: those before are painted anew where it grew.
      const from = String(box) === painted ? place : 0;
      for (let i = from; i <= place; i++) this.paint(this.tiles[i].canvas, state, plane, maps[i], box);
      painted = String(box);
    });
  }

  /** The part of the slice around all that is marked, with a margin: [top, bottom, left, right]. */
  private around(maps: readonly Uint8Array[], plane: Plane): [number, number, number, number] {
    const { rows, columns } = strides(this.subject.size, plane);
    let [top, bottom, left, right] = [rows, 0, columns, 0];
    for (const map of maps) {
      for (let i = 0; i < map.length; i++) {
        if (map[i] === 0) continue;
        const [y, x] = [Math.floor(i / columns), i % columns];
        [top, bottom, left, right] = [Math.min(top, y), Math.max(bottom, y + 1), Math.min(left, x), Math.max(right, x + 1)];
      }
    }
    if (bottom <= top) return [0, rows, 0, columns];
    const margin = Math.max(6, 0.25 * Math.max(bottom - top, right - left));
    return [Math.max(0, top - margin), Math.min(rows, bottom + margin), Math.max(0, left - margin), Math.min(columns, right + margin)];
  }

  private paint(canvas: HTMLCanvasElement, state: State, plane: Plane, labels: Uint8Array, [top, bottom, left, right]: [number, number, number, number]): void {
    const { subject } = this;
    const { rows, columns } = strides(subject.size, plane);
    const context = canvas.getContext("2d")!;
    const { across, flipAcross, flipDown, down } = subject.planes[plane.axis];
    const { spacing } = subject.header;
    const [rowStep, columnStep] = [spacing[ROWS[plane.axis]], spacing[COLUMNS[plane.axis]]];
    const upright = across === COLUMNS[plane.axis];
    const [height, width] = [(bottom - top) * rowStep, (right - left) * columnStep];
    const scale = SIDE / Math.max(height, width);
    const x = scale * spacing[across] * (flipAcross ? -1 : 1);
    const y = scale * spacing[down] * (flipDown ? -1 : 1);
    const [middleRow, middleColumn] = [(top + bottom) / 2, (left + right) / 2];
    const [middleAcross, middleDown] = upright ? [middleColumn, middleRow] : [middleRow, middleColumn];
    const [e, f] = [SIDE / 2 - x * middleAcross, SIDE / 2 - y * middleDown];
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = "#0b0d10";
    context.fillRect(0, 0, SIDE, SIDE);
    if (upright) context.setTransform(x, 0, 0, y, e, f);
    else context.setTransform(0, y, x, 0, e, f);
    const raster = new Raster();
    if (state.image && subject.hasImage) {
      const channels = subject.header.color && subject.header.channels.length === 3 ? [0, 1, 2] : [state.channel];
      paintImage(raster.start(rows, columns), channels.map((channel) => subject.gray(channel, plane, state.window)));
      raster.finish();
      context.drawImage(raster.canvas, 0, 0);
    }
    paintLabels(raster.start(rows, columns), labels, columns, sampleMark(subject.header.classes.length), 0.55, state.hiddenClasses);
    raster.finish();
    context.imageSmoothingEnabled = false;
    context.drawImage(raster.canvas, 0, 0);
  }
}
