// What stays when another case is opened: all that was chosen and has a meaning for the other case too. Where one looks
// (cross-hair, zoom, contrast) belongs to a case, and begins anew.

import { type Axis, orientations } from "./geometry";
import type { Settings } from "./messages";
import type { Header } from "./package";
import { LARGEST_SAMPLE } from "./sampling/address";
import { type State, limits, mapsOf, nearestCount } from "./state";

/** A case that is left: what it showed, and what it had shown at first. */
export interface Left {
  readonly header: Header;
  readonly initial: State;
  readonly state: State;
}

/** Classes with a row of logits each. */
const rows = ({ classes, logits }: Header) => classes.slice(classes.length - logits);

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}

/** Settings for another case; `own` are its own, and `usual` those that the case before came with. */
function carrySettings(before: Settings, usual: Settings, from: Header, own: Settings, header: Header, stored: number): Settings {
  const kept = {
    ...own,
    seed: before.seed === usual.seed ? own.seed : before.seed,
    sample: clamp(before.sample, 0, header.kind === "sampled" ? stored - 1 : LARGEST_SAMPLE),
  };
  if (from.kind !== "stochastic" || header.kind !== "stochastic") return kept;
  const bound = limits(header);
  const known = rows(from);
  return {
    ...kept,
    temperature: clamp(before.temperature, 0, bound.temperature),
    classScales: rows(header).map((name, k) => clamp(before.classScales[known.indexOf(name)] ?? own.classScales[k], -bound.class, bound.class)),
    modeWeights: before.modeWeights.length === own.modeWeights.length ? before.modeWeights.map((weight) => clamp(weight, -bound.mode, bound.mode)) : own.modeWeights,
    diagonalNoise: before.diagonalNoise,
  };
}

/** What another case shows; `own` is its state at first, and `stored` the number of its stored samples. */
export function carry({ header: from, initial, state: before }: Left, own: State, header: Header, stored: number): State {
  const settings = (slot: 0 | 1) => carrySettings(before.settings[slot], initial.settings[slot], from, own.settings[slot], header, stored);
  const focus = header.classes.indexOf(from.classes[before.focus]);
  const alike = (from.size[0] > 1) === (header.size[0] > 1);
  const axis = orientations(header).findIndex(({ name }) => name === orientations(from)[before.axis].name);
  return {
    ...own,
    settings: [settings(0), settings(1)],
    compare: before.compare, active: before.active,
    sampleStyle: before.sampleStyle, predictionStyle: before.predictionStyle, opacity: before.opacity, mapOpacity: before.mapOpacity,
    raterStyles: header.raters.map((name, rater) => before.raterStyles[from.raters.indexOf(name)] ?? own.raterStyles[rater]),
    hiddenClasses: header.classes.flatMap((name, label) => (before.hiddenClasses.includes(from.classes.indexOf(name)) ? [label] : [])),
    map: mapsOf(header).includes(before.map) ? before.map : "none",
    focus: focus > 0 ? focus : own.focus,
    // How many samples are usual depends on the work of a case.
    samples: before.samples === initial.samples ? own.samples : nearestCount(header, stored, before.samples),
    quantiles: before.quantiles, gallery: before.gallery, image: before.image, smooth: before.smooth, theme: before.theme,
    ...(alike ? { axis: Math.max(axis, 0) as Axis, layout: before.layout, crosshair: before.crosshair } : {}),
  };
}
