// What the page and its worker say to each other.

import type { SampleGroup } from "./worker/clusters";
import type { Plane } from "./geometry";
import type { Header } from "./package";
import type { Surfaces } from "./surface/mesh";

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
  /** Opens a case, with so many CPU cores to work on it. */
  | { kind: "open"; buffer?: ArrayBuffer; base64?: string; cores: number }
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
  /** The surfaces of the classes in the mean prediction, in a sample, or in the marks of a rater. */
  | { kind: "surface"; settings: Settings; of: "prediction" | "sample" | number }
  /** Volumes of many samples, and which of them are alike. */
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
  /** 1 − the mean IoU of the foreground classes by sample and rater, `[m, k]`. */
  readonly raterDistances: Float64Array;
  /** Groups of samples that are alike, the largest first; empty until all are drawn. */
  readonly groups: readonly SampleGroup[];
}

export interface Replies {
  open: Opened;
  slice: { labels: Uint8Array; milliseconds: number };
  /** One of the samples, by its place among those that were asked for. */
  slices: { place: number; labels: Uint8Array };
  volume: { labels: Uint8Array; counts: number[] };
  summary: Summary;
  correlation: { values: Float32Array; known: boolean };
  survey: Survey;
  surface: Surfaces;
}

/** A message to the worker. */
export interface Ask {
  readonly id: number;
  /** Work on the same channel is given up when other work is asked for on it. */
  readonly channel: string;
  readonly request: Request | { kind: "cancel" };
}

/** Helpers for the worker, each at the other end of a port, for the case of a request `open`. */
export interface HelperPorts {
  readonly opened: number;
  readonly ports: readonly MessagePort[];
}

/** A message to a worker that it is a helper, with a port to the one that it helps. */
export interface BeHelper {
  readonly port: MessagePort;
}

/** A message from the worker that it wants helpers for the case of a request `open`: only the page can start them everywhere. */
export interface WantHelpers {
  readonly opened: number;
  readonly helpers: number;
}

/** A message from the worker; some work is answered several times, with `last` at the end. */
export interface Answer {
  readonly id: number;
  readonly last: boolean;
  readonly reply?: unknown;
  readonly error?: string;
}
