// From voxels of a plane to points of a canvas and back.

import { COLUMNS, type Orientation, type Plane, ROWS } from "../geometry";
import type { Header, Triple } from "../package";

export interface Transform {
  /** As a canvas takes it: x = a·column + c·row + e, y = b·column + d·row + f. */
  readonly matrix: readonly [number, number, number, number, number, number];
  /** Canvas pixels per millimeter. */
  readonly scale: number;
}

/** The transform of a plane of what is shown onto a canvas of so many pixels; `center` is a voxel of the image. */
export function transform(
  header: Header, orientation: Orientation, plane: Plane, width: number, height: number, zoom: number, center: Triple | null,
): Transform {
  const { across, down, flipAcross, flipDown } = orientation;
  const { size, start } = header.shown;
  const [stepAcross, stepDown] = [header.spacing[across], header.spacing[down]];
  const scale = zoom * Math.min(width / (size[across] * stepAcross), height / (size[down] * stepDown));
  const middle = (axis: number) => (center ? center[axis] - start[axis] + 0.5 : size[axis] / 2);
  const x = scale * stepAcross * (flipAcross ? -1 : 1);
  const y = scale * stepDown * (flipDown ? -1 : 1);
  const left = width / 2 - x * middle(across);
  const top = height / 2 - y * middle(down);
  const upright = across === COLUMNS[plane.axis] && down === ROWS[plane.axis];
  return { matrix: upright ? [x, 0, 0, y, left, top] : [0, y, x, 0, left, top], scale };
}

/** The row and column, with fractions, at a point of the canvas. */
export function untransform({ matrix: [a, b, c, d, e, f] }: Transform, x: number, y: number): { row: number; column: number } {
  const determinant = a * d - b * c;
  return { column: (d * (x - e) - c * (y - f)) / determinant, row: (a * (y - f) - b * (x - e)) / determinant };
}

/** The point of the canvas at a row and column. */
export function place({ matrix: [a, b, c, d, e, f] }: Transform, row: number, column: number): { x: number; y: number } {
  return { x: a * column + c * row + e, y: b * column + d * row + f };
}

/** The rectangle of a canvas of so many pixels that the image covers; as far as there is room, with at least so many pixels to each side. */
export function extent(view: Transform, rows: number, columns: number, width: number, height: number, least: number): { left: number; top: number; width: number; height: number } {
  const corners = [place(view, 0, 0), place(view, rows, columns)];
  const within = (values: readonly number[], end: number) => {
    const missing = Math.max(0, least - Math.abs(values[1] - values[0])) / 2;
    const bounded = (value: number) => Math.min(Math.max(Math.round(value), 0), end);
    return [bounded(Math.min(...values) - missing), bounded(Math.max(...values) + missing)];
  };
  const [left, right] = within(corners.map(({ x }) => x), width);
  const [top, bottom] = within(corners.map(({ y }) => y), height);
  return { left, top, width: right - left, height: bottom - top };
}

/** The transform onto a part of the canvas that begins at a point, in so many times the size. */
export function partOf({ matrix: [a, b, c, d, e, f], scale }: Transform, left: number, top: number, times: number): Transform {
  return { matrix: [a * times, b * times, c * times, d * times, (e - left) * times, (f - top) * times], scale: scale * times };
}
