// Planes through a volume, and how they stand on the screen: the front at the top and the patient's right at the left.

import type { Header, Triple } from "./package";

/** A grid axis: 0 along d, 1 along h, 2 along w. */
export type Axis = 0 | 1 | 2;

/** A slice of the box that is shown: all voxels with one coordinate along an axis. */
export interface Plane {
  readonly axis: Axis;
  readonly index: number;
}

/** The two axes of a plane in the order of its arrays, `[rows, columns]`. */
export const ROWS: readonly Axis[] = [1, 0, 0];
export const COLUMNS: readonly Axis[] = [2, 2, 1];

/** Index of the first voxel of a plane in `[d, h, w]`, and the steps along its rows and columns. */
export function strides(size: Triple, plane: Plane): { start: number; row: number; column: number; rows: number; columns: number } {
  const step = [size[1] * size[2], size[2], 1];
  const [rowAxis, columnAxis] = [ROWS[plane.axis], COLUMNS[plane.axis]];
  return {
    start: plane.index * step[plane.axis], row: step[rowAxis], column: step[columnAxis],
    rows: size[rowAxis], columns: size[columnAxis],
  };
}

/** Copies a plane of a volume that starts at `offset`. */
export function cut<T extends Uint8Array | Uint16Array>(volume: T, offset: number, size: Triple, plane: Plane, out: T): T {
  const { start, row, column, rows, columns } = strides(size, plane);
  for (let y = 0, i = 0; y < rows; y++) {
    for (let x = 0, at = offset + start + y * row; x < columns; x++, i++, at += column) out[i] = volume[at];
  }
  return out;
}

/** How a plane stands on the screen. */
export interface Orientation {
  readonly name: "axial" | "coronal" | "sagittal" | "image";
  /** The grid axes that run to the right and downwards. */
  readonly across: Axis;
  readonly down: Axis;
  /** Whether they run the other way. */
  readonly flipAcross: boolean;
  readonly flipDown: boolean;
  /** Letters at the left, right, top and bottom; empty for pictures. */
  readonly letters: readonly [string, string, string, string];
}

const LETTERS = [["L", "R"], ["P", "A"], ["I", "S"]];

/** The world axis (right, front, up) that each grid axis runs along most, and whether towards it. */
export function worldAxes(header: Header): { world: number; positive: boolean }[] {
  // Columns of the affine are the axes i (along w), j (along h), k (along d).
  const direction = [2, 1, 0].map((column) => [0, 1, 2].map((row) => header.affine[row][column]));
  const taken = new Set<number>();
  const result: { world: number; positive: boolean }[] = [];
  const pairs = [0, 1, 2].flatMap((axis) => {
    const length = Math.hypot(...direction[axis]) || 1;
    return [0, 1, 2].map((world) => ({ axis, world, size: Math.abs(direction[axis][world]) / length }));
  });
  for (const { axis, world } of pairs.sort((a, b) => b.size - a.size)) {
    if (result[axis] || taken.has(world)) continue;
    taken.add(world);
    result[axis] = { world, positive: direction[axis][world] >= 0 };
  }
  return result;
}

/** How the planes across each grid axis stand. A picture stands as it is. */
export function orientations(header: Header): Orientation[] {
  if (header.size[0] === 1) {
    const picture: Orientation = {
      name: "image", across: 2, down: 1, flipAcross: false, flipDown: false, letters: ["", "", "", ""],
    };
    return [picture, picture, picture];
  }
  const axes = worldAxes(header);
  const gridAxis = (world: number) => axes.findIndex((axis) => axis.world === world) as Axis;
  return axes.map(({ world }) => {
    // Across: from the patient's right, or, seen from the side, from the front. Down: from the front, or from above.
    const across = gridAxis(world === 0 ? 1 : 0);
    const down = gridAxis(world === 2 ? 1 : 2);
    const names = ["sagittal", "coronal", "axial"] as const;
    const ends = (axis: Axis) => LETTERS[axes[axis].world];
    return {
      name: names[world], across, down,
      flipAcross: axes[across].positive, flipDown: axes[down].positive,
      letters: [ends(across)[1], ends(across)[0], ends(down)[1], ends(down)[0]],
    };
  });
}

/** Millimeters (right, front, up) of a voxel of the image. */
export function millimeters(header: Header, [z, y, x]: Triple): Triple {
  const row = (a: readonly number[]) => a[0] * x + a[1] * y + a[2] * z + a[3];
  return [row(header.affine[0]), row(header.affine[1]), row(header.affine[2])];
}
