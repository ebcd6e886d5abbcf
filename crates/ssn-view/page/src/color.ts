// Colors that people with any color vision can tell apart (after Okabe and Ito), the same as in reports.

export type Color = readonly [number, number, number];

const CLASSES: readonly Color[] = [
  [0xe6, 0x9f, 0x00], [0x56, 0xb4, 0xe9], [0xcc, 0x79, 0xa7], [0x00, 0x9e, 0x73], [0xf0, 0xe4, 0x42], [0xd5, 0x5e, 0x00], [0x00, 0x72, 0xb2],
];

/** Raters, where there is one class: bright ones first, and never the color of the class. */
export const RATERS: readonly Color[] = [CLASSES[1], CLASSES[3], CLASSES[2], CLASSES[4], CLASSES[6]];

/** Text and lines on the dark of the views. */
export const INK: Color = [0xf2, 0xf4, 0xf7];
export const PREDICTION: Color = [0xff, 0xff, 0xff];
export const QUANTILES: Color = CLASSES[5];

/** The color of a class above 0. */
export function classColor(label: number): Color {
  return CLASSES[(Math.max(label, 1) - 1) % CLASSES.length];
}

export function css([r, g, b]: Color, alpha = 1): string {
  return alpha === 1 ? `rgb(${r} ${g} ${b})` : `rgb(${r} ${g} ${b} / ${alpha})`;
}

/** The relative luminance of a color, 0 to 1 (WCAG 2). */
function luminance(color: Color): number {
  const [r, g, b] = color.map((part) => (part <= 10 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** How far two colors are from each other: 1 to 21 (WCAG 2). */
export function contrast(one: Color, other: Color): number {
  const [a, b] = [luminance(one), luminance(other)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

const [BLACK, WHITE]: readonly [Color, Color] = [[0, 0, 0], [255, 255, 255]];

/** Black or white, whichever is farther from a color: on any background, a line is told by its color or by this rim. */
export function rim(color: Color): Color {
  return contrast(color, BLACK) >= contrast(color, WHITE) ? BLACK : WHITE;
}

/** Colors at even steps from 0 to 1. */
type Scale = readonly Color[];

/** Dark to light with an even rise of lightness (after viridis): readable in gray and with any color vision. */
const SEQUENTIAL: Scale = [
  [68, 1, 84], [71, 39, 119], [62, 73, 137], [48, 103, 141], [37, 130, 142], [30, 157, 136], [53, 183, 120], [109, 206, 88], [180, 221, 43], [253, 231, 36],
];
/** Purple below zero, orange above, as in reports. */
const SIGNED: Scale = [[0x4b, 0x2e, 0x83], [0xa0, 0x90, 0xc0], [0xf7, 0xf7, 0xf7], [0xe8, 0xa8, 0x78], [0xc8, 0x57, 0x00]];

/** 256 colors of a scale, `[256, 3]`. */
function lookup(scale: Scale): Uint8Array {
  const table = new Uint8Array(256 * 3);
  for (let i = 0; i < 256; i++) {
    const place = (i / 255) * (scale.length - 1);
    const from = Math.min(Math.floor(place), scale.length - 2);
    for (let part = 0; part < 3; part++) {
      table[3 * i + part] = Math.round(scale[from][part] + (scale[from + 1][part] - scale[from][part]) * (place - from));
    }
  }
  return table;
}

export const SEQUENTIAL_TABLE = lookup(SEQUENTIAL);
export const SIGNED_TABLE = lookup(SIGNED);
