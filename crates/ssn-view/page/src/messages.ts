// What the page and its worker say to each other.

import type { Plane } from "./geometry";
import type { Header } from "./package";

/** All that a sample depends on. */
export interface Settings {
  readonly seed: bigint;
  readonly sample: number;
  readonly temperature: number;
  /** `[c]`. */
  readonly classScales: readonly number[];
  /** `[r]`. */
  readonly modeWeights: readonly number[];
  readonly diagonalNoise: boolean;
}

/** Work that is asked for. Work of a channel replaces what was asked for on it before. */
export type Request =
  | { kind: "open"; buffer?: ArrayBuffer; base64?: string }
  /** The labels of a slice of a sample. */
  | { kind: "slice"; slot: number; plane: Plane; settings: Settings }
  /** The labels of a slice in several samples. */
  | { kind: "slices"; plane: Plane; settings: Settings; samples: readonly number[] }
  /** The labels of all that is shown. */
  | { kind: "volume"; settings: Settings }
  /** What many samples say about a slice together. */
  | { kind: "summary"; slot: number; plane: Plane; settings: Settings; samples: number }
  /** The correlation of the logits of a class with that of a voxel. */
  | { kind: "correlation"; plane: Plane; settings: Settings; logit: number; voxel: number }
  /** Volumes of many samples, and which of them differ. */
  | { kind: "survey"; settings: Settings; samples: number; gallery: number };

export interface Opened {
  readonly header: Header;
  readonly image: Uint8Array | Uint16Array | null;
  readonly raters: Uint8Array;
  readonly prediction: Uint8Array;
  /** Voxels that are kept, and how many samples are stored. */
  readonly kept: number;
  readonly stored: number;
}

/** What `samples` samples say about a slice, by label: `[l, rows, columns]`. */
export interface Summary {
  readonly samples: number;
  readonly total: number;
  /** Means of the probabilities. */
  readonly probabilities: Float32Array;
  /** Shares of the samples that have a label. */
  readonly shares: Float32Array;
}

export interface Survey {
  readonly samples: number;
  readonly total: number;
  /** Voxels by sample and label, `[m, l]`. */
  readonly volumes: Float64Array;
  /** Samples that differ, the most typical one first; empty until all are drawn. */
  readonly diverse: readonly number[];
}

export interface Replies {
  open: Opened;
  slice: { labels: Uint8Array; milliseconds: number };
  slices: { labels: Uint8Array[] };
  volume: { labels: Uint8Array; counts: number[] };
  summary: Summary;
  correlation: { values: Float32Array; known: boolean };
  survey: Survey;
}

/** A message to the worker. */
export interface Ask {
  readonly id: number;
  /** Work on the same channel is given up when other work is asked for on it. */
  readonly channel: string;
  readonly request: Request | { kind: "cancel" };
}

/** A message from the worker; some work is answered several times, with `last` at the end. */
export interface Answer {
  readonly id: number;
  readonly last: boolean;
  readonly reply?: unknown;
  readonly error?: string;
}
