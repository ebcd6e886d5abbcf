// One view of a slice: its canvas, and what is painted on it.

import { QUANTILES, css } from "../color";
import { COLUMNS, type Orientation, type Plane, ROWS, strides } from "../geometry";
import { type Mark, predictionMark, raterMark, sampleMark } from "../marks";
import type { Triple } from "../package";
import type { State, Style } from "../state";
import type { Subject } from "../subject";
import { paintBar, paintLetters, paintName, paintScale } from "./annotations";
import { labelOutlines, outline } from "./contours";
import { LEVELS, atLeast } from "./quantiles";
import { Raster, paintImage, paintLabels, paintMap } from "./raster";
import { type Transform, place, transform, untransform } from "./transform";

/** What is known about a slice and can be painted. */
export interface Shown {
  readonly plane: Plane;
  readonly labels: Uint8Array;
  /** A map of numbers of this plane. */
  readonly map: Float32Array | null;
  /** Shares of samples that have the class in focus, for quantile contours. */
  readonly shares: Float32Array | null;
}

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
    this.canvas.tabIndex = -1;
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

  paint(subject: Subject, state: State): void {
    const { context, canvas, shown } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.fillStyle = "#0b0d10";
    context.fillRect(0, 0, canvas.width, canvas.height);
    if (!shown) return;
    const { rows, columns } = strides(subject.size, shown.plane);
    const orientation = this.orientation(subject);
    const view = transform(subject.header, orientation, shown.plane, canvas.width, canvas.height, state.zoom, state.center);
    this.transform = view;

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

    this.paintContours(subject, state, shown, rows, columns, view);
    if (state.crosshair || state.map === "correlation") this.paintCross(subject, state, shown.plane, view);
    const number = shown.plane.index + subject.header.shown.start[shown.plane.axis];
    const name = [...(state.compare ? ["AB"[this.slot]] : []), ...(subject.volume ? [`${orientation.name} ${number}`] : [])];
    paintLetters(context, orientation, paintName(context, name.join(" · ")));
    if (subject.volume && subject.header.has_spacing) paintScale(context, view);
    if (map && this.element.dataset.main === "true") paintBar(context, state.map, subject.header.classes[state.focus]);
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
      const fill = (labels: Uint8Array, mark: Mark) => paintLabels(pixels, labels, columns, mark, state.opacity);
      state.raterStyles.forEach((style, rater) => {
        if (fills(style)) fill(this.fixedLabels(subject, rater, shown.plane), raterMark(rater, classes));
      });
      if (fills(state.predictionStyle)) fill(this.fixedLabels(subject, -1, shown.plane), predictionMark(classes));
      if (fills(state.sampleStyle)) fill(shown.labels, sampleMark(classes));
    }
    this.overlay.finish();
  }

  private paintContours(subject: Subject, state: State, shown: Shown, rows: number, columns: number, view: Transform): void {
    // Under a map, fills become contours: both at once could not be read.
    const drawn = (style: Style) => style === "contour" || style === "both" || (style === "fill" && state.map !== "none" && shown.map !== null);
    const classes = subject.header.classes.length;
    const stroke = (labels: Uint8Array, width: number, { dash, color }: Mark) => {
      let paths = this.outlines.get(labels);
      if (!paths) this.outlines.set(labels, paths = labelOutlines(labels, rows, columns));
      for (const [label, path] of paths) this.stroke(path, view, width, dash, css(color(label)));
    };
    if (drawn(state.sampleStyle)) stroke(shown.labels, 2, sampleMark(classes));
    if (drawn(state.predictionStyle)) stroke(this.fixedLabels(subject, -1, shown.plane), 1.5, predictionMark(classes));
    state.raterStyles.forEach((style, rater) => {
      if (drawn(style)) stroke(this.fixedLabels(subject, rater, shown.plane), 1.75, raterMark(rater, classes));
    });
    const { shares } = shown;
    if (!state.quantiles || !shares) return;
    for (const [level, width, dash] of LEVELS) {
      this.stroke(outline(rows, columns, (i) => atLeast(shares[i], level)), view, width, dash, css(QUANTILES));
    }
  }

  /** Strokes a path of voxels in the pixels of the screen, with a dark rim that sets it off from bright images. */
  private stroke(path: Path2D, view: Transform, width: number, dash: readonly number[], color: string): void {
    const { context } = this;
    const ratio = window.devicePixelRatio || 1;
    const placed = new Path2D();
    placed.addPath(path, new DOMMatrix([...view.matrix]));
    context.lineCap = dash.length > 0 ? "butt" : "square";
    context.setLineDash(dash.map((length) => length * ratio));
    context.strokeStyle = dash.length === 0 ? "rgb(0 0 0 / 0.45)" : "rgb(0 0 0 / 0.6)";
    context.lineWidth = (width + 1.5) * ratio;
    context.stroke(placed);
    context.strokeStyle = color;
    context.lineWidth = width * ratio;
    context.stroke(placed);
    context.setLineDash([]);
  }

  private paintCross(subject: Subject, state: State, plane: Plane, view: Transform): void {
    const { context, canvas } = this;
    const ratio = window.devicePixelRatio || 1;
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
    for (const [color, width] of [["rgb(0 0 0 / 0.3)", 3], ["rgb(120 200 255 / 0.8)", 1]] as const) {
      context.strokeStyle = color;
      context.lineWidth = width * ratio;
      context.stroke();
    }
  }
}
