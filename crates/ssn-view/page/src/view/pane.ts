// One view of a slice: its canvas, and what is painted on it.

import { type Color, QUANTILES } from "../color";
import { COLUMNS, type Orientation, type Plane, ROWS, strides } from "../geometry";
import { type Mark, predictionMark, raterMark, sampleMark } from "../marks";
import type { Triple } from "../package";
import type { State, Style } from "../state";
import type { Subject } from "../subject";
import { DARK, type PaintTarget, paintBar, paintLetters, paintName, paintScale } from "./annotations";
import { labelOutlines, outline } from "./contours";
import { type OutlineLook, lineWeight, strokeOutlines } from "./lines";
import { LEVELS, atLeast } from "./quantiles";
import { Raster, paintImage, paintLabels, paintMap } from "./raster";
import { type Transform, extent, partOf, place, transform, untransform } from "./transform";

/** What is known about a slice and can be painted. */
export interface Shown {
  readonly plane: Plane;
  readonly labels: Uint8Array;
  /** A map of numbers of this plane. */
  readonly map: Float32Array | null;
  /** Shares of samples that have the class in focus, for quantile contours. */
  readonly shares: Float32Array | null;
}

/** Pixels of the page in which the name of a view has room. */
const NAMED = 150;

export class Pane {
  readonly element = document.createElement("div");
  readonly canvas = document.createElement("canvas");
  private readonly context = this.canvas.getContext("2d")!;
  private readonly image = new Raster();
  private imageOf = "";
  private readonly overlay = new Raster();
  private outlines = new WeakMap<Uint8Array, Map<number, Path2D>>();
  private fixed = new Map<string, Uint8Array>();
  shown: Shown | null = null;
  transform: Transform | null = null;

  constructor(readonly slot: 0 | 1, public axis: 0 | 1 | 2) {
    this.element.className = "pane";
    this.canvas.tabIndex = 0;
    this.element.append(this.canvas);
  }

  orientation(subject: Subject): Orientation {
    return subject.planes[this.axis];
  }

  /** Brings the canvas to the size of its place; true if it changed. */
  fit(): boolean {
    const ratio = window.devicePixelRatio || 1;
    const width = Math.max(1, Math.round(this.element.clientWidth * ratio));
    const height = Math.max(1, Math.round(this.element.clientHeight * ratio));
    if (this.canvas.width === width && this.canvas.height === height) return false;
    this.canvas.width = width;
    this.canvas.height = height;
    return true;
  }

  /** Forgets what belongs to another case. */
  reset(): void {
    this.shown = null;
    this.imageOf = "";
    this.fixed.clear();
  }

  /** The voxel of the image at a point of the page, or null beside what is shown. */
  voxel(subject: Subject, clientX: number, clientY: number, inside: boolean): Triple | null {
    if (!this.shown || !this.transform) return null;
    const box = this.canvas.getBoundingClientRect();
    const ratio = this.canvas.width / Math.max(box.width, 1);
    const { row, column } = untransform(this.transform, (clientX - box.left) * ratio, (clientY - box.top) * ratio);
    const { plane } = this.shown;
    const { rows, columns } = strides(subject.size, plane);
    const [y, x] = [Math.floor(row), Math.floor(column)];
    if (inside && (y < 0 || x < 0 || y >= rows || x >= columns)) return null;
    const voxel: [number, number, number] = [0, 0, 0];
    voxel[plane.axis] = plane.index;
    voxel[ROWS[plane.axis]] = Math.min(Math.max(y, 0), rows - 1);
    voxel[COLUMNS[plane.axis]] = Math.min(Math.max(x, 0), columns - 1);
    const { start } = subject.header.shown;
    return [voxel[0] + start[0], voxel[1] + start[1], voxel[2] + start[2]];
  }

  /** Paints the canvas of the page. */
  paint(subject: Subject, state: State): void {
    const { context, canvas, shown } = this;
    const target: PaintTarget = { context, ratio: window.devicePixelRatio || 1, ...DARK };
    if (shown) this.transform = transform(subject.header, this.orientation(subject), shown.plane, canvas.width, canvas.height, state.zoom, state.center);
    this.draw(target, subject, state, this.transform);
    const map = state.map !== "none" && shown?.map;
    if (map && this.element.dataset.main === "true") paintBar(target, state.map, subject.header.classes[state.focus], subject.header.raters.length);
  }

  /** The part of the view that the image covers, on a canvas of its own with so many pixels for each of the page. */
  picture(subject: Subject, state: State, ratio: number, colors: Omit<PaintTarget, "context" | "ratio">): HTMLCanvasElement {
    const canvas = document.createElement("canvas");
    if (!this.shown) return canvas;
    const { clientWidth, clientHeight } = this.element;
    const { plane } = this.shown;
    const view = transform(subject.header, this.orientation(subject), plane, clientWidth, clientHeight, state.zoom, state.center);
    const { rows, columns } = strides(subject.size, plane);
    const { left, top, width, height } = extent(view, rows, columns, clientWidth, clientHeight, NAMED);
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    this.draw({ context: canvas.getContext("2d")!, ratio, ...colors }, subject, state, partOf(view, left, top, ratio));
    return canvas;
  }

  private draw(target: PaintTarget, subject: Subject, state: State, view: Transform | null): void {
    const { context, background } = target;
    const { shown } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = background;
    context.fillRect(0, 0, context.canvas.width, context.canvas.height);
    if (!shown || !view) return;
    const { rows, columns } = strides(subject.size, shown.plane);
    const orientation = this.orientation(subject);

    context.setTransform(...view.matrix);
    if (state.image && subject.hasImage) {
      this.makeImage(subject, state, shown.plane, rows, columns);
      context.imageSmoothingEnabled = state.smooth;
      context.imageSmoothingQuality = "high";
      context.drawImage(this.image.canvas, 0, 0);
    }
    const map = state.map !== "none" && shown.map ? shown.map : null;
    this.makeOverlay(subject, state, shown, map, rows, columns);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.overlay.canvas, 0, 0);
    context.setTransform(1, 0, 0, 1, 0, 0);

    this.paintContours(target, subject, state, shown, rows, columns, view);
    if (state.crosshair || state.map === "correlation") this.paintCross(target, subject, state, shown.plane, view);
    const { number, count } = subject.slice(shown.plane);
    const name = [...(state.compare ? ["AB"[this.slot]] : []), ...(subject.volume ? [`${orientation.name} ${number} of ${count}`] : [])];
    paintLetters(target, orientation, paintName(target, name.join(" · ")));
    if (subject.volume && subject.header.has_spacing) paintScale(target, view);
  }

  private makeImage(subject: Subject, state: State, plane: Plane, rows: number, columns: number): void {
    const key = [plane.axis, plane.index, state.channel, ...state.window].join(" ");
    if (key === this.imageOf) return;
    const channels = subject.header.color && subject.header.channels.length === 3 ? [0, 1, 2] : [state.channel];
    paintImage(this.image.start(rows, columns), channels.map((channel) => subject.gray(channel, plane, state.window)));
    this.image.finish();
    this.imageOf = key;
  }

  /** A slice of the prediction (−1) or of a rater, cut once. */
  private fixedLabels(subject: Subject, rater: number, plane: Plane): Uint8Array {
    const key = `${rater} ${plane.axis} ${plane.index}`;
    let labels = this.fixed.get(key);
    if (!labels) {
      labels = rater < 0 ? subject.prediction(plane) : subject.rater(rater, plane);
      if (this.fixed.size > 32) this.fixed.clear();
      this.fixed.set(key, labels);
    }
    return labels;
  }

  private makeOverlay(subject: Subject, state: State, shown: Shown, map: Float32Array | null, rows: number, columns: number): void {
    const pixels = this.overlay.start(rows, columns);
    if (map) {
      paintMap(pixels, map, state.map, state.mapOpacity);
    } else {
      const fills = (style: Style) => style === "fill" || style === "both";
      const classes = subject.header.classes.length;
      const fill = (labels: Uint8Array, mark: Mark) => paintLabels(pixels, labels, columns, mark, state.opacity, state.hiddenClasses);
      state.raterStyles.forEach((style, rater) => {
        if (fills(style)) fill(this.fixedLabels(subject, rater, shown.plane), raterMark(rater, classes));
      });
      if (fills(state.predictionStyle)) fill(this.fixedLabels(subject, -1, shown.plane), predictionMark(classes));
      if (fills(state.sampleStyle)) fill(shown.labels, sampleMark(classes));
    }
    this.overlay.finish();
  }

  private paintContours(target: PaintTarget, subject: Subject, state: State, shown: Shown, rows: number, columns: number, view: Transform): void {
    const onMap = state.map !== "none" && shown.map !== null;
    // Under a map, fills become contours: both at once could not be read.
    const drawn = (style: Style) => style === "contour" || style === "both" || (style === "fill" && onMap);
    const classes = subject.header.classes.length;
    const [a, b] = view.matrix;
    const weight = lineWeight(Math.max(Math.abs(a), Math.abs(b)) / target.ratio);
    const outlines: { path: Path2D; look: OutlineLook }[] = [];
    const trace = (path: Path2D, width: number, dash: readonly number[], color: Color) => outlines.push({ path, look: { width: width * weight, dash, color, onMap } });
    const stroke = (labels: Uint8Array, width: number, { dash, color }: Mark) => {
      let paths = this.outlines.get(labels);
      if (!paths) this.outlines.set(labels, paths = labelOutlines(labels, rows, columns));
      for (const [label, path] of paths) if (!state.hiddenClasses.includes(label)) trace(path, width, dash, color(label));
    };
    if (drawn(state.sampleStyle)) stroke(shown.labels, 2, sampleMark(classes));
    if (drawn(state.predictionStyle)) stroke(this.fixedLabels(subject, -1, shown.plane), 1.5, predictionMark(classes));
    state.raterStyles.forEach((style, rater) => {
      if (drawn(style)) stroke(this.fixedLabels(subject, rater, shown.plane), 1.75, raterMark(rater, classes));
    });
    const { shares } = shown;
    if (state.quantiles && shares) {
      for (const [level, width, dash] of LEVELS) trace(outline(rows, columns, (i) => atLeast(shares[i], level)), width, dash, QUANTILES);
    }
    strokeOutlines(target, view, outlines);
  }

  private paintCross({ context, ratio, rim }: PaintTarget, subject: Subject, state: State, plane: Plane, view: Transform): void {
    const { canvas } = context;
    const { start } = subject.header.shown;
    const [rowAxis, columnAxis] = [ROWS[plane.axis], COLUMNS[plane.axis]];
    const { x, y } = place(view, state.cross[rowAxis] - start[rowAxis] + 0.5, state.cross[columnAxis] - start[columnAxis] + 0.5);
    const gap = 9 * ratio;
    context.beginPath();
    for (const [fromX, fromY, toX, toY] of [
      [0, y, x - gap, y], [x + gap, y, canvas.width, y], [x, 0, x, y - gap], [x, y + gap, x, canvas.height],
    ]) {
      context.moveTo(fromX, fromY);
      context.lineTo(toX, toY);
    }
    for (const [color, width] of [[rim, 3], ["rgb(90 180 245)", 1]] as const) {
      context.globalAlpha = width > 1 ? 0.45 : 0.85;
      context.strokeStyle = color;
      context.lineWidth = width * ratio;
      context.stroke();
    }
    context.globalAlpha = 1;
  }
}
