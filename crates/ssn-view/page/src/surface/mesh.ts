// Surfaces of all classes of a label map, ready to be drawn.

import type { Header, Triple } from "../package";
import { coarsen, countFaces, surfaceNet } from "./nets";

/** Faces of all surfaces beyond which the label map is taken at every second voxel, every third, and so on. */
const MOST_FACES = 500_000;

/** The surface of a class. */
export interface Mesh {
  readonly label: number;
  /** `[p, 3]`: millimeters to the patient's right, front and head, from the middle of what is shown. */
  readonly positions: Float32Array;
  /** `[p, 3]`, of unit length. */
  readonly normals: Float32Array;
  /** `[t, 3]`. */
  readonly triangles: Uint32Array;
}

export interface Surfaces {
  /** 1 where every voxel counts, 2 for blocks of 2 × 2 × 2 voxels, and so on. */
  readonly step: number;
  /** By label; classes that are not there are left out. */
  readonly meshes: readonly Mesh[];
  /** Voxels of each label, `[l]`. */
  readonly counts: readonly number[];
}

/** Makes surfaces of labels over what is shown, in pieces. */
export function* surfaces(header: Header, labels: Uint8Array, mostFaces = MOST_FACES): Generator<void, Surfaces> {
  const { shown, classes } = header;
  const found = new Float64Array(256);
  for (let i = 0; i < labels.length; i++) found[labels[i]]++;
  let [step, grid] = [1, { labels, size: shown.size }];
  yield;
  while (countFaces(grid.labels, grid.size) > mostFaces) {
    yield;
    grid = coarsen(labels, shown.size, ++step);
    yield;
  }
  const meshes: Mesh[] = [];
  for (let label = 1; label < classes.length; label++) {
    const { vertices, faces } = yield* surfaceNet(grid.labels, grid.size, label);
    if (faces.length === 0) continue;
    const positions = place(header, vertices, shown.size, step);
    yield;
    meshes.push({ label, positions, normals: normalsOf(positions, faces), triangles: split(faces) });
    yield;
  }
  return { step, meshes, counts: classes.map((_, label) => found[label]) };
}

/** Vertices of blocks of `step` voxels in millimeters. */
function place({ affine }: Header, vertices: Float32Array, [d, h, w]: Triple, step: number): Float32Array {
  const out = new Float32Array(vertices.length);
  const middle = (vertex: number, extent: number) => (vertex + 0.5) * step - extent / 2;
  for (let i = 0; i < vertices.length; i += 3) {
    const [z, y, x] = [middle(vertices[i], d), middle(vertices[i + 1], h), middle(vertices[i + 2], w)];
    for (let row = 0; row < 3; row++) out[i + row] = affine[row][0] * x + affine[row][1] * y + affine[row][2] * z;
  }
  return out;
}

/** The mean directions of the faces at each vertex. Which side is the outside does not matter: both are lit. */
function normalsOf(positions: Float32Array, faces: Uint32Array): Float32Array {
  const normals = new Float32Array(positions.length);
  for (let i = 0; i < faces.length; i += 4) {
    const [p, q, r, s] = [3 * faces[i], 3 * faces[i + 1], 3 * faces[i + 2], 3 * faces[i + 3]];
    for (let axis = 0; axis < 3; axis++) {
      const [next, last] = [(axis + 1) % 3, (axis + 2) % 3];
      // The cross product of the diagonals.
      const part = (positions[r + next] - positions[p + next]) * (positions[s + last] - positions[q + last])
        - (positions[r + last] - positions[p + last]) * (positions[s + next] - positions[q + next]);
      normals[p + axis] += part;
      normals[q + axis] += part;
      normals[r + axis] += part;
      normals[s + axis] += part;
    }
  }
  for (let i = 0; i < normals.length; i += 3) {
    const length = Math.hypot(normals[i], normals[i + 1], normals[i + 2]) || 1;
    for (let axis = 0; axis < 3; axis++) normals[i + axis] /= length;
  }
  return normals;
}

/** Two triangles for each quadrilateral. */
function split(faces: Uint32Array): Uint32Array {
  const triangles = new Uint32Array((faces.length / 4) * 6);
  for (let i = 0, at = 0; i < faces.length; i += 4) {
    for (const corner of [0, 1, 2, 0, 2, 3]) triangles[at++] = faces[i + corner];
  }
  return triangles;
}
