// How label maps over one image are told apart. With one class, each has a color of its own, and raters beyond the number of
// colors have dashes too; with several classes, colors are those of classes, and only dashes differ.

import { type Color, PREDICTION, RATERS, classColor } from "./color";

export interface Mark {
  color(label: number): Color;
  /** The color of the mark by itself, whatever the class; null where it has none of its own. */
  readonly own: Color | null;
  /** Lengths of dashes and gaps of its outlines, in pixels of the page. */
  readonly dash: readonly number[];
  /** Whether areas are striped, since another has the same color. */
  readonly striped: boolean;
}

/** Outlines without and with dashes; those of the prediction are not among them. */
const DASHES: readonly (readonly number[])[] = [[], [9, 3, 2, 3], [2, 3], [14, 4], [9, 3, 2, 3, 2, 3], [2, 6], [8, 3], [14, 3, 5, 3]];

function mark(color: Color | null, dash: readonly number[], striped = false): Mark {
  return { color: color ? () => color : classColor, own: color, dash, striped };
}

/** The sample: always in the colors of classes, with whole lines. */
export function sampleMark(classes: number): Mark {
  return classes === 2 ? mark(classColor(1), []) : mark(null, []);
}

export function predictionMark(classes: number): Mark {
  return mark(classes === 2 ? PREDICTION : null, [5, 4]);
}

/** A rater, by its place in the list. */
export function raterMark(rater: number, classes: number): Mark {
  // Whole lines are the sample's where there are no colors to tell it from raters.
  if (classes > 2) return mark(null, DASHES[1 + (rater % (DASHES.length - 1))]);
  const round = Math.floor(rater / RATERS.length);
  return mark(RATERS[rater % RATERS.length], DASHES[round % DASHES.length], round > 0);
}
