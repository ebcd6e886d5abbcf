// What is written on a view: its name, the letters of the patient's sides, a scale, and the colors of a map.

import { INK as LIGHT, SEQUENTIAL_TABLE, SIGNED_TABLE, css } from "../color";
import type { Orientation } from "../geometry";
import type { MapKind } from "../state";
import type { Transform } from "./transform";

type Context = CanvasRenderingContext2D;

const INK = css(LIGHT);
/** Between text and the edge of the canvas, in pixels of the page. */
const MARGIN = 10;
/** Lengths of the scale, in millimeters. */
const LENGTHS = [100, 50, 20, 10, 5, 2, 1, 0.5, 0.1];

const ratio = () => window.devicePixelRatio || 1;

/** Text with a dark rim, readable on any image. */
function write(context: Context, text: string, x: number, y: number, align: CanvasTextAlign, baseline: CanvasTextBaseline, size = 11, weight = 400): void {
  context.font = `${weight} ${size * ratio()}px system-ui, sans-serif`;
  context.textAlign = align;
  context.textBaseline = baseline;
  context.lineWidth = 3 * ratio();
  context.lineJoin = "round";
  context.strokeStyle = "rgb(0 0 0 / 0.65)";
  context.strokeText(text, x, y);
  context.fillStyle = INK;
  context.fillText(text, x, y);
}

/** The name of the view; gives the place where it ends. */
export function paintName(context: Context, name: string): number {
  const margin = MARGIN * ratio();
  write(context, name, margin, margin, "left", "top", 12, 600);
  return margin + context.measureText(name).width;
}

/** The letters of the sides of the patient. That at the top goes below the name where a view is too small for both. */
export function paintLetters(context: Context, { letters: [left, right, top, bottom] }: Orientation, nameEnd: number): void {
  const { width, height } = context.canvas;
  const margin = MARGIN * ratio();
  write(context, left, margin, height / 2, "left", "middle", 13, 600);
  write(context, right, width - margin, height / 2, "right", "middle", 13, 600);
  const beside = nameEnd + margin < width / 2;
  write(context, top, width / 2, beside ? margin : margin + 17 * ratio(), "center", "top", 13, 600);
  write(context, bottom, width / 2, height - margin, "center", "bottom", 13, 600);
}

/** A length of the patient. */
export function paintScale(context: Context, view: Transform): void {
  const { width, height } = context.canvas;
  const length = LENGTHS.find((millimeters) => millimeters * view.scale <= width * 0.25);
  if (!length) return;
  const margin = MARGIN * ratio();
  const y = height - margin;
  for (const [color, thick] of [["rgb(0 0 0 / 0.65)", 4], [INK, 2]] as const) {
    context.fillStyle = color;
    const rim = ((thick - 2) / 2) * ratio();
    context.fillRect(margin - rim, y - ratio() - rim, length * view.scale + 2 * rim, thick * ratio());
  }
  write(context, `${length} mm`, margin, y - 5 * ratio(), "left", "bottom");
}

/** The colors of a map, with what their ends mean. */
export function paintBar(context: Context, map: MapKind, focus: string): void {
  const { width: room, height: floor } = context.canvas;
  const [width, height, margin] = [Math.min(130 * ratio(), room * 0.4), 8 * ratio(), MARGIN * ratio()];
  const [left, top] = [room - margin - width, floor - margin - height];
  const signed = map === "correlation";
  const table = signed ? SIGNED_TABLE : SEQUENTIAL_TABLE;
  const gradient = context.createLinearGradient(left, 0, left + width, 0);
  for (let i = 0; i <= 16; i++) {
    const at = 3 * Math.round((i / 16) * 255);
    gradient.addColorStop(i / 16, `rgb(${table[at]} ${table[at + 1]} ${table[at + 2]})`);
  }
  context.fillStyle = gradient;
  context.fillRect(left, top, width, height);
  const title = { none: "", entropy: "entropy", probability: `probability of ${focus}`, correlation: `correlation, ${focus}` }[map];
  const above = top - 4 * ratio();
  write(context, signed ? "−1" : "0", left, above, "left", "bottom");
  write(context, "1", left + width, above, "right", "bottom");
  write(context, title, left + width, above - 14 * ratio(), "right", "bottom");
}
