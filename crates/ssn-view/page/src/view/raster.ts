// Small pictures of a slice, a pixel per voxel, which a pane then enlarges: the image, and what is laid over it.

import { SEQUENTIAL_TABLE, SIGNED_TABLE } from "../color";
import type { Mark } from "../marks";
import type { MapKind } from "../state";

/** A picture of one pixel per voxel. */
export class Raster {
  readonly canvas = document.createElement("canvas");
  private readonly context = this.canvas.getContext("2d")!;
  private pixels: ImageData | null = null;

  /** Pixels of so many rows and columns, all transparent. */
  start(rows: number, columns: number): Uint8ClampedArray {
    if (!this.pixels || this.pixels.width !== columns || this.pixels.height !== rows) {
      this.canvas.width = columns;
      this.canvas.height = rows;
      this.pixels = new ImageData(columns, rows);
    } else {
      this.pixels.data.fill(0);
    }
    return this.pixels.data;
  }

  /** Shows the pixels. */
  finish(): void {
    if (this.pixels) this.context.putImageData(this.pixels, 0, 0);
  }
}

/** Gray values, or three channels of colors. */
export function paintImage(out: Uint8ClampedArray, channels: readonly Uint8ClampedArray[]): void {
  const [red, green, blue] = channels.length === 3 ? channels : [channels[0], channels[0], channels[0]];
  for (let i = 0; i < red.length; i++) {
    out[4 * i] = red[i];
    out[4 * i + 1] = green[i];
    out[4 * i + 2] = blue[i];
    out[4 * i + 3] = 255;
  }
}

/** Lays a color over what is there. */
function over(out: Uint8ClampedArray, at: number, r: number, g: number, b: number, alpha: number): void {
  const below = (out[at + 3] / 255) * (1 - alpha);
  const total = alpha + below;
  if (total === 0) return;
  out[at] = (r * alpha + out[at] * below) / total;
  out[at + 1] = (g * alpha + out[at + 1] * below) / total;
  out[at + 2] = (b * alpha + out[at + 2] * below) / total;
  out[at + 3] = total * 255;
}

/**
 * Lays the areas of a label map of so many columns over what is there, without those of hidden classes. Stripes are weaker,
 * never clear: each voxel is seen.
 */
export function paintLabels(out: Uint8ClampedArray, labels: Uint8Array, columns: number, { color, striped }: Mark, opacity: number, hidden: readonly number[]): void {
  for (let i = 0; i < labels.length; i++) {
    if (labels[i] === 0 || hidden.includes(labels[i])) continue;
    const [r, g, b] = color(labels[i]);
    const weak = striped && (Math.floor(i / columns) + (i % columns)) % 4 < 2;
    over(out, 4 * i, r, g, b, weak ? 0.4 * opacity : opacity);
  }
}

/** Lays a map of numbers in 0 … 1, or −1 … 1, over what is there; what is near 0 stays clear. */
export function paintMap(out: Uint8ClampedArray, values: Float32Array, kind: MapKind, opacity: number): void {
  const signed = kind === "correlation";
  const table = signed ? SIGNED_TABLE : SEQUENTIAL_TABLE;
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    const seen = Math.min(1, 4 * Math.abs(value));
    if (seen < 0.004) continue;
    const at = 3 * Math.round(Math.min(Math.max(signed ? (value + 1) / 2 : value, 0), 1) * 255);
    over(out, 4 * i, table[at], table[at + 1], table[at + 2], opacity * seen);
  }
}
