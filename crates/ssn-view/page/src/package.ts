// Reads a package: what the server, or an exported file, holds of one case. Damage is met with a sentence.

import type { Distribution, Kind, Numbers } from "./sampling/distribution";

/** Sizes and places in space, in the order d, h, w. */
export type Triple = readonly [number, number, number];

export interface Box {
  readonly start: Triple;
  readonly size: Triple;
}

export interface Channel {
  readonly name: string;
  readonly low: number;
  readonly high: number;
}

/** What a package says about its case. */
export interface Header {
  readonly version: number;
  readonly name: string;
  readonly kind: Kind;
  readonly model: { readonly name: string; readonly sha256: string };
  readonly classes: readonly string[];
  readonly logits: number;
  readonly rank: number;
  readonly size: Triple;
  readonly spacing: Triple;
  readonly affine: readonly (readonly number[])[];
  /** Whether lengths are in millimeters; otherwise in voxels. */
  readonly has_spacing: boolean;
  /** The values that the dataset stores classes by, where they are not their numbers. */
  readonly label_values?: readonly number[];
  /** The box of the network's grid that the distribution covers. */
  readonly region: Box;
  /** For each voxel of the image the nearest one of the network's grid, along each axis; absent where the grids are the same. */
  readonly nearest?: readonly (readonly number[])[];
  readonly shown: Box;
  readonly frozen?: {
    readonly voxels: number;
    readonly rule: string;
    readonly limit: { readonly temperature: number; readonly class: number; readonly mode: number };
  };
  readonly seed: string;
  readonly channels: readonly Channel[];
  readonly color: boolean;
  readonly raters: readonly string[];
  /** The scores of an evaluation, in the order of its tables. */
  readonly scores?: readonly { readonly title: string; readonly value: string }[];
  readonly modes: readonly { readonly share: number }[];
  readonly sections: Readonly<Record<string, Section>>;
}

interface Section {
  readonly type: string;
  readonly shape: readonly number[];
  readonly offset: number;
  readonly bytes: number;
}

/** A case as the page uses it. Maps are over the box that is shown. */
export interface Case {
  readonly header: Header;
  readonly distribution: Distribution;
  /** `[channels, d, h, w]`. */
  readonly image: Uint8Array | Uint16Array | null;
  /** `[k, d, h, w]`. */
  readonly raters: Uint8Array;
  /** `[d, h, w]`. */
  readonly prediction: Uint8Array;
}

/** A package that cannot be used; the message is for the reader. */
export class PackageError extends Error {}

const MAGIC = "SSNVIEW1";
const PREAMBLE = 16;
const LARGEST_HEADER = 16 << 20;
const BYTES: Readonly<Record<string, number>> = { u8: 1, u16: 2, f16: 2, u32: 4, f32: 4 };

function damaged(why: string): never {
  throw new PackageError(`The data of this case are damaged: ${why}. Load the page again, or make the export anew.`);
}

export function voxels(size: Triple): number {
  return size[0] * size[1] * size[2];
}

/** Work of a sample, in products of noise and factor, from which a case is a large one. */
const HEAVY = 4e6;

/** Whether a sample of `n` voxels is so much work that many of them take long. */
export function isHeavy(n: number, c: number, r: number): boolean {
  return n * c * Math.max(r, 1) > HEAVY;
}

/** Reads a package. Arrays are views of its bytes. */
export function readPackage(buffer: ArrayBuffer): Case {
  const bytes = new Uint8Array(buffer);
  if (bytes.length < PREAMBLE || String.fromCharCode(...bytes.subarray(0, 8)) !== MAGIC) damaged("they do not start as a package does");
  const length = new DataView(buffer).getUint32(8, true);
  if (length > LARGEST_HEADER || length % 8 !== 0 || PREAMBLE + length > bytes.length) damaged("the header is longer than the data");
  const header = readHeader(new TextDecoder().decode(bytes.subarray(PREAMBLE, PREAMBLE + length)));
  const base = PREAMBLE + length;

  const section = (name: string, types: readonly string[], shape: readonly number[]): ArrayBufferView | null => {
    const found = header.sections[name];
    if (!found) return null;
    const count = shape.reduce((product, extent) => product * extent, 1);
    const size = BYTES[found.type];
    if (!types.includes(found.type)) damaged(`${name} has the type ${found.type}`);
    if (found.shape.length !== shape.length || found.shape.some((extent, i) => extent !== shape[i])) {
      damaged(`${name} has the shape [${found.shape.join(", ")}], but [${shape.join(", ")}] is expected`);
    }
    if (found.bytes !== count * size || found.offset % 8 !== 0 || !(found.offset >= 0)) damaged(`the place of ${name} is wrong`);
    if (base + found.offset + found.bytes > bytes.length) damaged(`${name} is cut off`);
    const at = base + found.offset;
    switch (found.type) {
      case "u8": return new Uint8Array(buffer, at, count);
      case "u32": return new Uint32Array(buffer, at, count);
      case "f32": return new Float32Array(buffer, at, count);
      default: return new Uint16Array(buffer, at, count);
    }
  };
  const needed = <T>(name: string, found: T | null): T => found ?? damaged(`${name} is missing`);

  const { logits: c, rank: r, shown, region } = header;
  const kept = header.sections["voxels"];
  const n = kept ? kept.shape[0] : voxels(region.size);
  const indices = section("voxels", ["u32"], [n]) as Uint32Array | null;
  const stored = header.kind === "sampled" ? needed("samples", header.sections["samples"] ?? null).shape[0] : 0;
  const noise = header.kind === "stochastic";
  const number = ["f16", "f32"];
  const distribution: Distribution = {
    kind: header.kind, c, r: noise ? r : 0, n, indices,
    mean: needed("mean", section("mean", number, [c, n])) as Numbers,
    diagonal: noise ? needed("diagonal", section("diagonal", number, [c, n])) as Numbers : null,
    factor: noise && r > 0 ? needed("factor", section("factor", number, [r, c, n])) as Numbers : null,
    samples: stored > 0 ? section("samples", ["u8"], [stored, n]) as Uint8Array : null,
    stored,
  };
  if (indices) checkIndices(indices, voxels(region.size));
  return {
    header,
    distribution,
    image: section("image", ["u8", "u16"], [header.channels.length, ...shown.size]) as Uint8Array | Uint16Array | null,
    raters: section("raters", ["u8"], [header.raters.length, ...shown.size]) as Uint8Array | null ?? new Uint8Array(0),
    prediction: needed("prediction", section("prediction", ["u8"], [...shown.size])) as Uint8Array,
  };
}

function checkIndices(indices: Uint32Array, end: number): void {
  let last = -1;
  for (let i = 0; i < indices.length; i++) {
    if (indices[i] <= last || indices[i] >= end) damaged(`the list of voxels is not in order at ${i}`);
    last = indices[i];
  }
}

function readHeader(text: string): Header {
  let header: Header;
  try {
    header = JSON.parse(text) as Header;
  } catch {
    return damaged("the header is not JSON");
  }
  if (header.version !== 1) {
    throw new PackageError(`This case has version ${header.version} of the package format, and the page reads version 1. Use the page of the same version of ssn.`);
  }
  const whole = (box: Box, size: readonly number[]) => [0, 1, 2].every((axis) =>
    Number.isInteger(box.start[axis]) && Number.isInteger(box.size[axis]) && box.start[axis] >= 0 && box.size[axis] > 0
    && box.start[axis] + box.size[axis] <= size[axis]);
  if (!["stochastic", "deterministic", "sampled"].includes(header.kind)) damaged(`the kind ${header.kind} is unknown`);
  const { nearest } = header;
  if (nearest && ![0, 1, 2].every((axis) => nearest[axis]?.length === header.size[axis] && nearest[axis].every((at) => Number.isInteger(at) && at >= 0))) {
    damaged("the grid of the network does not fit the image");
  }
  if (!whole(header.region, nearest ? [Infinity, Infinity, Infinity] : header.size) || !whole(header.shown, header.size)) {
    damaged("a box is not in the image");
  }
  if (header.label_values && header.label_values.length !== header.classes.length) damaged("classes and their values disagree");
  if (!(header.logits >= 1 && header.classes.length === Math.max(2, header.logits))) damaged("classes and logits disagree");
  if (!/^\d{1,20}$/.test(header.seed)) damaged("the seed is no number");
  return header;
}
