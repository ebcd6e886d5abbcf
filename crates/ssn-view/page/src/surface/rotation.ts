// Rotations of what is seen in 3D, as rows of a matrix: to the right of the screen, up, and towards the reader.

export type Rotation = readonly (readonly number[])[];

export function apply(rotation: Rotation, [x, y, z]: readonly number[]): [number, number, number] {
  const row = ([a, b, c]: readonly number[]) => a * x + b * y + c * z;
  return [row(rotation[0]), row(rotation[1]), row(rotation[2])];
}

/** The patient from the front: their right at the left, the head up. Points are right, front, up. */
const FRONT: Rotation = [[-1, 0, 0], [0, 0, 1], [0, 1, 0]];

/** Turns what is seen by so many radians, to the right and downwards. */
export function turned(rotation: Rotation, right: number, down: number): Rotation {
  const [ca, sa, cb, sb] = [Math.cos(right), Math.sin(right), Math.cos(down), Math.sin(down)];
  // About the axis that goes up, and then about the one that goes to the right.
  const turn = [[ca, 0, sa], [sa * sb, cb, -ca * sb], [-sa * cb, sb, ca * cb]];
  const product = turn.map((row) => [0, 1, 2].map((column) => row.reduce((sum, value, i) => sum + value * rotation[i][column], 0)));
  return orthonormal(product);
}

/** Takes away what rounding adds up to. */
function orthonormal([first, second]: readonly number[][]): Rotation {
  const unit = (row: number[]) => row.map((value) => value / Math.hypot(...row));
  const a = unit(first);
  const along = a.reduce((sum, value, i) => sum + value * second[i], 0);
  const b = unit(second.map((value, i) => value - along * a[i]));
  return [a, b, [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]];
}

/** How surfaces are seen at first: from the front, a little from the left and from above. */
export const START = turned(FRONT, -0.5, 0.35);
