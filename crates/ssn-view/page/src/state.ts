// All that the page shows is a function of the case and of this state, which the address of the page holds.

import type { Axis } from "./geometry";
import type { Settings } from "./messages";
import type { Header, Triple } from "./package";

/** How a label map is drawn. */
export type Style = "off" | "fill" | "contour" | "both";
export const STYLES: readonly Style[] = ["off", "fill", "contour", "both"];

/** A map of numbers under the labels. */
export type MapKind = "none" | "entropy" | "probability" | "correlation" | "agreement" | "disagreement";
const MAPS: readonly MapKind[] = ["none", "entropy", "probability", "correlation", "agreement", "disagreement"];

/** The maps that a case has: raters agree where there are several, and logits are correlated where they are a distribution's. */
export function mapsOf({ kind, raters }: Header): readonly MapKind[] {
  return MAPS.filter((map) => (map === "correlation" ? kind === "stochastic" : map === "agreement" || map === "disagreement" ? raters.length > 1 : true));
}

export type Layout = "single" | "three";
export type Theme = "auto" | "light" | "dark";

export interface State {
  readonly case: string;
  /** Settings A and B; B is shown where two are compared. */
  readonly settings: readonly [Settings, Settings];
  readonly compare: boolean;
  /** Which of the settings the controls change. */
  readonly active: 0 | 1;
  /** The cross-hair, a voxel of the image. */
  readonly cross: Triple;
  readonly axis: Axis;
  readonly layout: Layout;
  readonly zoom: number;
  /** The voxel of the image in the middle of the views; null for the middle of what is shown. */
  readonly center: Triple | null;
  readonly sampleStyle: Style;
  readonly predictionStyle: Style;
  readonly raterStyles: readonly Style[];
  /** Classes that no label map shows, ascending. */
  readonly hiddenClasses: readonly number[];
  readonly opacity: number;
  readonly mapOpacity: number;
  readonly map: MapKind;
  /** The class that maps, contours and volumes are about. */
  readonly focus: number;
  /** Samples behind maps, contours, volumes and gallery. */
  readonly samples: number;
  readonly quantiles: boolean;
  readonly gallery: boolean;
  readonly channel: number;
  /** Values that become black and white. */
  readonly window: readonly [number, number];
  readonly image: boolean;
  readonly smooth: boolean;
  readonly crosshair: boolean;
  readonly theme: Theme;
}

export const SAMPLE_COUNTS: readonly number[] = [20, 50, 100, 200, 500];

/** The numbers of samples that the control offers. */
export function sampleCounts(header: Header, stored: number): readonly number[] {
  return header.kind === "sampled" ? [...SAMPLE_COUNTS.filter((count) => count < stored), stored] : SAMPLE_COUNTS;
}

/** The number of samples nearest to one that was asked for, of those that the control offers. */
export function nearestCount(header: Header, stored: number, wanted: number): number {
  return sampleCounts(header, stored).reduce((best, count) => (Math.abs(count - wanted) < Math.abs(best - wanted) ? count : best));
}

/** Settings that change nothing. */
export function defaultSettings(header: Header): Settings {
  const stochastic = header.kind === "stochastic";
  return {
    seed: BigInt(header.seed), sample: 0, temperature: 1,
    classScales: Array<number>(header.logits).fill(1),
    modeWeights: Array<number>(stochastic ? header.rank : 0).fill(1),
    diagonalNoise: true,
  };
}

/** The limits within which the labels of frozen voxels are sure. */
export function limits(header: Header): { temperature: number; class: number; mode: number } {
  return header.frozen?.limit ?? { temperature: 3, class: 3, mode: 3 };
}

/** What is shown of a case at first. */
export function defaultState(id: string, header: Header, cross: Triple, heavy: boolean): State {
  const settings = defaultSettings(header);
  return {
    case: id, settings: [settings, settings], compare: false, active: 0,
    cross, axis: 0, layout: header.size[0] > 1 ? "three" : "single", zoom: 1, center: null,
    // Of independent voxels, outlines would hide all else.
    sampleStyle: header.kind === "deterministic" ? "fill" : "both", // With several classes, two sets of outlines are too many to begin with.
    predictionStyle: header.classes.length > 2 ? "off" : "contour", raterStyles: header.raters.map(() => "off"), hiddenClasses: [], opacity: 0.35, mapOpacity: 0.75,
    map: "none", focus: 1, samples: heavy ? 50 : 100, quantiles: false, gallery: true,
    channel: 0, window: header.channels.length > 0 ? [header.channels[0].low, header.channels[0].high] : [0, 1],
    image: true, smooth: true, crosshair: header.size[0] > 1, theme: "auto",
  };
}

/** Holds the state, and tells of changes once a frame at most. */
export class Store {
  private listeners: ((state: State, before: State) => void)[] = [];
  private told: State;

  constructor(private current: State) {
    this.told = current;
  }

  get state(): State {
    return this.current;
  }

  /** The settings that the controls change. */
  get settings(): Settings {
    return this.current.settings[this.current.active];
  }

  /** Starts anew, for another case: nobody is told. */
  reset(state: State): void {
    this.current = this.told = state;
  }

  update(patch: Partial<State>): void {
    this.current = { ...this.current, ...patch };
    this.tell();
  }

  /** Changes settings: the active ones, or those of a side. */
  steer(patch: Partial<Settings>, slot: 0 | 1 = this.current.active): void {
    const { settings } = this.current;
    const changed = { ...settings[slot], ...patch };
    this.update({ settings: slot === 0 ? [changed, settings[1]] : [settings[0], changed] });
  }

  listen(listener: (state: State, before: State) => void): void {
    this.listeners.push(listener);
  }

  private tell(): void {
    const [state, before] = [this.current, this.told];
    this.told = state;
    for (const listener of this.listeners) listener(state, before);
  }
}

/** Whether two settings give the same samples, whatever their numbers. */
export function sameSteering(a: Settings, b: Settings): boolean {
  const equal = (x: readonly number[], y: readonly number[]) => x.length === y.length && x.every((value, i) => value === y[i]);
  return a.seed === b.seed && a.temperature === b.temperature && a.diagonalNoise === b.diagonalNoise
    && equal(a.classScales, b.classScales) && equal(a.modeWeights, b.modeWeights);
}

export function sameSettings(a: Settings, b: Settings): boolean {
  return a.sample === b.sample && sameSteering(a, b);
}
