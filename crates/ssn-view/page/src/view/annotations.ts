// What is written on a view: its name, the letters of the patient's sides, a scale, and the colors of a map.

import { INK, SEQUENTIAL_TABLE, SIGNED_TABLE, css } from "../color";
import type { Orientation } from "../geometry";
import type { MapKind } from "../state";
import type { Transform } from "./transform";

/** What views are painted on: the canvas of the page, or one of a figure. */
export interface PaintTarget {
  readonly context: CanvasRenderingContext2D;
  /** Its pixels per pixel of the page. */
  readonly ratio: number;
  /** The color beside the image, of text, and of the rim that sets text off from the image. */
  readonly background: string;
  readonly ink: string;
  readonly rim: string;
}

/** The colors of the views on the screen, and of figures on black. */
export const DARK = { background: "#0b0d10", ink: css(INK), rim: "rgb(0 0 0 / 0.65)" } as const;

/** Between text and the edge of the canvas, in pixels of the page. */
const MARGIN = 10;
/** Lengths of the scale, in millimeters. */
const LENGTHS = [100, 50, 20, 10, 5, 2, 1, 0.5, 0.1];

/** Text with a rim, readable on any image. */
export function write({ context, ratio, ink, rim }: PaintTarget, text: string, x: number, y: number, align: CanvasTextAlign, baseline: CanvasTextBaseline, size = 11, weight = 400): void {
  context.font = `${weight} ${size * ratio}px system-ui, sans-serif`;
  context.textAlign = align;
  context.textBaseline = baseline;
  context.lineWidth = 3 * ratio;
  context.lineJoin = "round";
  context.strokeStyle = rim;
  context.strokeText(text, x, y);
  context.fillStyle = ink;
  context.fillText(text, x, y);
}

/** The name of the view; gives the place where it ends. */
export function paintName(target: PaintTarget, name: string): number {
  const margin = MARGIN * target.ratio;
  write(target, name, margin, margin, "left", "top", 12, 600);
  return margin + target.context.measureText(name).width;
}

/** The letters of the sides of the patient. That at the top goes below the name where a view is too small for both. */
export function paintLetters(target: PaintTarget, { letters: [left, right, top, bottom] }: Orientation, nameEnd: number): void {
  const { context: { canvas: { width, height } }, ratio } = target;
  const margin = MARGIN * ratio;
  write(target, left, margin, height / 2, "left", "middle", 13, 600);
  write(target, right, width - margin, height / 2, "right", "middle", 13, 600);
  const beside = nameEnd + margin < width / 2;
  write(target, top, width / 2, beside ? margin : margin + 17 * ratio, "center", "top", 13, 600);
  write(target, bottom, width / 2, height - margin, "center", "bottom", 13, 600);
}

/** A length of the patient. */
export function paintScale(target: PaintTarget, view: Pick<Transform, "scale">): void {
  const { context, ratio, ink, rim: dark } = target;
  const { width, height } = context.canvas;
  const length = LENGTHS.find((millimeters) => millimeters * view.scale <= width * 0.25);
  if (!length) return;
  const margin = MARGIN * ratio;
  const y = height - margin;
  for (const [color, thick] of [[dark, 4], [ink, 2]] as const) {
    context.fillStyle = color;
    const rim = ((thick - 2) / 2) * ratio;
    context.fillRect(margin - rim, y - ratio - rim, length * view.scale + 2 * rim, thick * ratio);
  }
  write(target, `${length} mm`, margin, y - 5 * ratio, "left", "bottom");
}

/** What a map of a class shows, and what the ends of its colors mean. */
export function mapScale(map: MapKind, focus: string, raters: number): { title: string; low: string; high: string; table: Uint8Array } {
  const signed = map === "correlation";
  return {
    title: {
      none: "", entropy: "entropy", probability: `probability of ${focus}`, correlation: `correlation, ${focus}`,
      agreement: `raters with ${focus}`, disagreement: "entropy of raters",
    }[map],
    low: signed ? "−1" : "0", high: map === "agreement" ? `${raters} of ${raters}` : "1", table: signed ? SIGNED_TABLE : SEQUENTIAL_TABLE,
  };
}

/** The colors of a map from left to right. */
export function paintColors(context: CanvasRenderingContext2D, table: Uint8Array, left: number, top: number, width: number, height: number): void {
  const gradient = context.createLinearGradient(left, 0, left + width, 0);
  for (let i = 0; i <= 16; i++) {
    const at = 3 * Math.round((i / 16) * 255);
    gradient.addColorStop(i / 16, `rgb(${table[at]} ${table[at + 1]} ${table[at + 2]})`);
  }
  context.fillStyle = gradient;
  context.fillRect(left, top, width, height);
}

/** The colors of a map, with what their ends mean. */
export function paintBar(target: PaintTarget, map: MapKind, focus: string, raters: number): void {
  const { context, ratio } = target;
  const { width: room, height: floor } = context.canvas;
  const [width, height, margin] = [Math.min(130 * ratio, room * 0.4), 8 * ratio, MARGIN * ratio];
  const [left, top] = [room - margin - width, floor - margin - height];
  const { title, low, high, table } = mapScale(map, focus, raters);
  paintColors(context, table, left, top, width, height);
  const above = top - 4 * ratio;
  write(target, low, left, above, "left", "bottom");
  write(target, high, left + width, above, "right", "bottom");
  write(target, title, left + width, above - 14 * ratio, "right", "bottom");
}
