// Surfaces of label maps: surface nets (Gibson, MICCAI 1998). Each cell between eight voxels that are not all inside or all
// outside has a vertex, and each pair of neighbors that differ has a face of the four cells around it. Vertices are then
// smoothed so that volumes stay (Taubin, SIGGRAPH 1995), and never leave their cells: no voxel is lost or added by it.

import type { Triple } from "../package";

/**
 * How often vertices move, by which share of the way to the middle of their neighbors, forth and then back, and how far from
 * the middle of its cell one may go, in voxels.
 */
const [TURNS, PACE, FREE] = [12, 0.6, 0.45];

/** Vertices `[p, 3]` along d, h, w, in voxels of the label map, and the quadrilaterals between them, `[f, 4]`, all turned the same way. */
export interface Net {
  readonly vertices: Float32Array;
  readonly faces: Uint32Array;
}

/** How many faces the surfaces of all labels above 0 of a map `[d, h, w]` have. */
export function countFaces(labels: Uint8Array, [d, h, w]: Triple): number {
  let faces = 0;
  const between = (a: number, b: number) => (a === b ? 0 : Number(a > 0) + Number(b > 0));
  for (let z = 0, i = 0; z < d; z++) {
    for (let y = 0; y < h; y++) {
      for (let x = 0; x < w; x++, i++) {
        const label = labels[i];
        faces += between(label, x + 1 < w ? labels[i + 1] : 0) + between(label, y + 1 < h ? labels[i + w] : 0) + between(label, z + 1 < d ? labels[i + h * w] : 0);
        if (label > 0) faces += Number(x === 0) + Number(y === 0) + Number(z === 0);
      }
    }
  }
  return faces;
}

/** The most frequent label of each block of `step`³ voxels; the smallest of several. */
export function coarsen(labels: Uint8Array, [d, h, w]: Triple, step: number): { labels: Uint8Array; size: Triple } {
  const size = [d, h, w].map((n) => Math.ceil(n / step)) as unknown as Triple;
  const out = new Uint8Array(size[0] * size[1] * size[2]);
  const counts = new Uint16Array(256);
  for (let z = 0, i = 0; z < d; z += step) {
    for (let y = 0; y < h; y += step) {
      for (let x = 0; x < w; x += step, i++) {
        counts.fill(0);
        for (let c = z; c < Math.min(z + step, d); c++) {
          for (let b = y; b < Math.min(y + step, h); b++) {
            for (let a = x; a < Math.min(x + step, w); a++) counts[labels[(c * h + b) * w + a]]++;
          }
        }
        let best = 0;
        for (let label = 1; label < 256; label++) if (counts[label] > counts[best]) best = label;
        out[i] = best;
      }
    }
  }
  return { labels: out, size };
}

/** The box of a label, `[start, end)` along d, h, w; null where it is not there. */
function boxOf(labels: Uint8Array, [d, h, w]: Triple, label: number): { start: [number, number, number]; end: [number, number, number] } | null {
  const [start, end] = [[d, h, w], [0, 0, 0]] as [[number, number, number], [number, number, number]];
  for (let z = 0, i = 0; z < d; z++) {
    for (let y = 0; y < h; y++) {
      for (let x = 0; x < w; x++, i++) {
        if (labels[i] !== label) continue;
        if (z < start[0]) start[0] = z;
        if (z >= end[0]) end[0] = z + 1;
        if (y < start[1]) start[1] = y;
        if (y >= end[1]) end[1] = y + 1;
        if (x < start[2]) start[2] = x;
        if (x >= end[2]) end[2] = x + 1;
      }
    }
  }
  return end[0] > start[0] ? { start, end } : null;
}

/** The surface of a label of a map `[d, h, w]`, in pieces. */
export function* surfaceNet(labels: Uint8Array, size: Triple, label: number): Generator<void, Net> {
  const box = boxOf(labels, size, label);
  if (!box) return { vertices: new Float32Array(0), faces: new Uint32Array(0) };
  const { start, end } = box;
  // The voxels of the box with a rim of others, and the cells between them.
  const [d, h, w] = [0, 1, 2].map((axis) => end[axis] - start[axis] + 2);
  const inside = new Uint8Array(d * h * w);
  for (let z = 1; z < d - 1; z++) {
    for (let y = 1; y < h - 1; y++) {
      const from = ((z - 1 + start[0]) * size[1] + y - 1 + start[1]) * size[2] + start[2];
      const to = (z * h + y) * w + 1;
      for (let x = 0; x < w - 2; x++) if (labels[from + x] === label) inside[to + x] = 1;
    }
  }
  yield;
  const cells = new Int32Array(inside.length);
  const vertices: number[] = [];
  const faces: number[] = [];
  const [down, deep] = [w, h * w];
  for (let z = 0; z < d - 1; z++) {
    for (let y = 0; y < h - 1; y++) {
      for (let x = 0, i = (z * h + y) * w; x < w - 1; x++, i++) {
        const count = inside[i] + inside[i + 1] + inside[i + down] + inside[i + down + 1]
          + inside[i + deep] + inside[i + deep + 1] + inside[i + deep + down] + inside[i + deep + down + 1];
        if (count === 0 || count === 8) continue;
        cells[i] = vertices.length / 3;
        // The middle of the cell; −1 for the rim, and ½ to the middle.
        vertices.push(z + start[0] - 0.5, y + start[1] - 0.5, x + start[2] - 0.5);
        // The cells before this one are known: faces across the three edges at its first voxel, turned the same way outwards.
        const here = inside[i];
        const quad = (other: number, a: number, b: number) => {
          if (inside[other] === here) return;
          const [first, last] = here ? [a, b] : [b, a];
          faces.push(cells[i], cells[i - first], cells[i - a - b], cells[i - last]);
        };
        quad(i + 1, down, deep);
        quad(i + down, deep, 1);
        quad(i + deep, 1, down);
      }
    }
    yield;
  }
  const net = { vertices: Float32Array.from(vertices), faces: Uint32Array.from(faces) };
  yield* smooth(net);
  return net;
}

function* smooth({ vertices, faces }: Net): Generator<void> {
  const middle = vertices.slice();
  const sums = new Float32Array(vertices.length);
  const counts = new Uint16Array(vertices.length / 3);
  for (let turn = 0; turn < TURNS; turn++) {
    const pace = turn % 2 === 0 ? PACE : -PACE;
    sums.fill(0);
    counts.fill(0);
    for (let i = 0; i < faces.length; i += 4) {
      for (let corner = 0; corner < 4; corner++) {
        const at = faces[i + corner];
        const [next, before] = [faces[i + ((corner + 1) & 3)], faces[i + ((corner + 3) & 3)]];
        for (let axis = 0; axis < 3; axis++) sums[3 * at + axis] += vertices[3 * next + axis] + vertices[3 * before + axis];
        counts[at] += 2;
      }
    }
    for (let i = 0; i < vertices.length; i++) {
      const count = counts[Math.floor(i / 3)];
      if (count === 0) continue;
      const moved = vertices[i] + pace * (sums[i] / count - vertices[i]);
      vertices[i] = Math.min(Math.max(moved, middle[i] - FREE), middle[i] + FREE);
    }
    yield;
  }
}
