// The open case on the page's side: image, raters and prediction, how planes stand, and where to look first.

import { type Axis, type Orientation, type Plane, cut, orientations, strides } from "./geometry";
import type { Opened } from "./messages";
import { type Header, type Triple, isHeavy, voxels } from "./package";
import { type State, defaultState } from "./state";

/** Shares of the values below black and above white, as in reports. */
const CLIPPED = 0.005;

export class Subject {
  readonly header: Header;
  readonly planes: readonly Orientation[];
  readonly volume: boolean;
  /** Voxels of each label, by rater and of the prediction. */
  readonly raterCounts: readonly number[][];
  readonly predictionCounts: readonly number[];
  readonly stored: number;
  readonly kept: number;
  private readonly windows: (readonly [number, number])[] = [];

  constructor(readonly id: string, private readonly opened: Opened) {
    this.header = opened.header;
    this.planes = orientations(opened.header);
    this.volume = opened.header.size[0] > 1;
    this.stored = opened.stored;
    this.kept = opened.kept;
    const v = voxels(this.size);
    this.raterCounts = this.header.raters.map((_, rater) => this.count(opened.raters.subarray(rater * v, (rater + 1) * v)));
    this.predictionCounts = this.count(opened.prediction);
  }

  /** The size of what is shown; maps and planes are over it. */
  get size(): Triple {
    return this.header.shown.size;
  }

  private count(labels: Uint8Array): number[] {
    const counts = this.header.classes.map(() => 0);
    const found = new Uint32Array(256);
    for (let i = 0; i < labels.length; i++) found[labels[i]]++;
    return counts.map((_, label) => found[label]);
  }

  /** What one voxel is in volumes: a pixel, milliliters, or a voxel where its size is not known. */
  get unit(): { name: string; scale: number } {
    const [z, y, x] = this.header.spacing;
    if (!this.volume) return { name: "pixels", scale: 1 };
    return this.header.has_spacing ? { name: "ml", scale: (z * y * x) / 1000 } : { name: "voxels", scale: 1 };
  }

  /** The plane through a voxel of the image. */
  plane(axis: Axis, cross: Triple): Plane {
    return { axis, index: cross[axis] - this.header.shown.start[axis] };
  }

  /** The place of a plane in the image, counted from 1, and how many there are. */
  slice({ axis, index }: Plane): { number: number; count: number } {
    return { number: index + this.header.shown.start[axis] + 1, count: this.header.size[axis] };
  }

  /** The index of a voxel of the image in what is shown. */
  index([z, y, x]: Triple): number {
    const [z0, y0, x0] = this.header.shown.start;
    return ((z - z0) * this.size[1] + (y - y0)) * this.size[2] + (x - x0);
  }

  /** A slice of the prediction. */
  prediction(plane: Plane): Uint8Array {
    const { rows, columns } = strides(this.size, plane);
    return cut(this.opened.prediction, 0, this.size, plane, new Uint8Array(rows * columns));
  }

  /** A slice of a rater. */
  rater(rater: number, plane: Plane): Uint8Array {
    const { rows, columns } = strides(this.size, plane);
    return cut(this.opened.raters, rater * voxels(this.size), this.size, plane, new Uint8Array(rows * columns));
  }

  /** Shares of the raters that have each label in a slice, `[l, rows, columns]`. */
  raterShares(plane: Plane): Float32Array {
    const { rows, columns } = strides(this.size, plane);
    const { classes, raters } = this.header;
    const shares = new Float32Array(classes.length * rows * columns);
    raters.forEach((_, rater) => {
      this.rater(rater, plane).forEach((label, i) => { shares[label * rows * columns + i]++; });
    });
    return shares.map((count) => count / raters.length);
  }

  get hasImage(): boolean {
    return this.opened.image !== null && this.header.channels.length > 0;
  }

  private get levels(): number {
    return this.opened.image instanceof Uint16Array ? 65535 : 255;
  }

  /** A slice of a channel, as it is stored. */
  private stored16(channel: number, plane: Plane): Uint16Array {
    const { rows, columns } = strides(this.size, plane);
    const out = new Uint16Array(rows * columns);
    const image = this.opened.image;
    if (!image) return out;
    const offset = channel * voxels(this.size);
    if (image instanceof Uint16Array) return cut(image, offset, this.size, plane, out);
    out.set(cut(image, offset, this.size, plane, new Uint8Array(rows * columns)));
    return out;
  }

  /** The gray values 0 … 255 of a slice between black and white. */
  gray(channel: number, plane: Plane, [black, white]: readonly [number, number]): Uint8ClampedArray {
    const stored = this.stored16(channel, plane);
    const { low, high } = this.header.channels[channel];
    const step = (high - low) / this.levels;
    const table = new Uint8ClampedArray(this.levels + 1);
    for (let i = 0; i <= this.levels; i++) table[i] = ((low + i * step - black) / (white - black)) * 255;
    const out = new Uint8ClampedArray(stored.length);
    for (let i = 0; i < stored.length; i++) out[i] = table[stored[i]];
    return out;
  }

  /** The value of a channel at a voxel of the image. */
  value(channel: number, place: Triple): number {
    const { low, high } = this.header.channels[channel];
    return low + this.opened.image![channel * voxels(this.size) + this.index(place)] * ((high - low) / this.levels);
  }

  labelAt(place: Triple): { prediction: number; raters: number[] } {
    const index = this.index(place);
    const v = voxels(this.size);
    return { prediction: this.opened.prediction[index], raters: this.header.raters.map((_, rater) => this.opened.raters[rater * v + index]) };
  }

  /** Values between which nearly all of a channel lie. */
  autoWindow(channel: number): readonly [number, number] {
    if (!this.hasImage) return [0, 1];
    if (this.windows[channel]) return this.windows[channel];
    const { low, high } = this.header.channels[channel];
    if (this.header.color) return (this.windows[channel] = [low, high]);
    const v = voxels(this.size);
    const values = this.opened.image!.subarray(channel * v, (channel + 1) * v);
    const counts = new Uint32Array(this.levels + 1);
    for (let i = 0; i < values.length; i++) counts[values[i]]++;
    // The background of a volume is one value; it says nothing about contrast.
    let inside = v;
    if (this.volume) {
      inside -= counts[0];
      counts[0] = 0;
    }
    const edge = (from: number, step: number) => {
      let seen = 0;
      let level = from;
      while (level >= 0 && level <= this.levels && seen + counts[level] <= CLIPPED * inside) {
        seen += counts[level];
        level += step;
      }
      return low + (level * (high - low)) / this.levels;
    };
    const [black, white] = [edge(0, 1), edge(this.levels, -1)];
    return (this.windows[channel] = black < white ? [this.volume ? Math.min(low, black) : black, white] : [low, high > low ? high : low + 1]);
  }

  /** The voxel to look at first: in the slice with most marks of raters, or else of the prediction, their middle. */
  firstCross(): Triple {
    const v = voxels(this.size);
    const marked = this.raterCounts.some((counts) => counts.slice(1).some((n) => n > 0));
    const maps = marked ? this.opened.raters : this.opened.prediction;
    const [d, h, w] = this.size;
    const counts = new Float64Array(d);
    for (let start = 0, slice = 0; start < maps.length; start += h * w, slice++) {
      for (let i = start; i < start + h * w; i++) if (maps[i] > 0) counts[slice % d]++;
    }
    let z = Math.floor(d / 2);
    let most = 0;
    counts.forEach((n, slice) => { if (n > most) [most, z] = [n, slice]; });
    let [y, x] = [h / 2, w / 2];
    if (most > 0) {
      [y, x] = [0, 0];
      for (let base = 0; base < maps.length; base += v) {
        for (let i = 0; i < h * w; i++) {
          if (maps[base + z * h * w + i] === 0) continue;
          y += Math.floor(i / w) / most;
          x += (i % w) / most;
        }
      }
    }
    const [z0, y0, x0] = this.header.shown.start;
    return [z0 + z, y0 + Math.min(Math.round(y), h - 1), x0 + Math.min(Math.round(x), w - 1)];
  }

  /** What is shown at first. The main plane is the axial one. */
  firstState(): State {
    const { header } = this;
    const heavy = isHeavy(this.kept, header.logits, header.rank);
    const axis = this.planes.findIndex((plane) => plane.name === "axial");
    const state = defaultState(this.id, header, this.firstCross(), heavy);
    const samples = header.kind === "sampled" ? Math.min(state.samples, this.stored) : state.samples;
    return { ...state, axis: Math.max(axis, 0) as Axis, window: this.autoWindow(0), samples };
  }
}
