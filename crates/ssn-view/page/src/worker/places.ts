// Where the kept voxels are in the box that is shown, and which of them lie in a slice.

import type { Axis } from "../geometry";
import { type Case, PackageError, type Triple, voxels } from "../package";

export class Places {
  /** `[m]`, ascending: indices of the voxels in the box that is shown which a kept voxel stands for. */
  readonly where: Uint32Array;
  /** `[m]`: which kept voxel that is. On the grid of the image each has one; where it was resampled, none or several. */
  readonly source: Uint32Array;
  readonly size: Triple;
  /** For each axis, entries of `where` in the order of their coordinate along it, and where each coordinate starts. */
  private readonly orders: (Uint32Array | null)[] = [null, null, null];
  private readonly starts: (Uint32Array | null)[] = [null, null, null];

  constructor({ header, distribution }: Case) {
    this.size = header.shown.size;
    const { region, shown, nearest } = header;
    const [, h, w] = region.size;
    const [d2, h2, w2] = this.size;
    if (nearest) {
      const kept = new Int32Array(voxels(region.size)).fill(-1);
      for (let i = 0; i < distribution.n; i++) kept[distribution.indices ? distribution.indices[i] : i] = i;
      const [where, source] = [new Uint32Array(voxels(this.size)), new Uint32Array(voxels(this.size))];
      // Where a row of voxels lies in the region along an axis, or −1.
      const along = (axis: number, at: number) => {
        const place = nearest[axis][shown.start[axis] + at] - region.start[axis];
        return place < region.size[axis] ? place : -1;
      };
      const columns = Array.from({ length: w2 }, (_, x) => along(2, x));
      let m = 0;
      for (let z = 0; z < d2; z++) {
        const slice = along(0, z);
        for (let y = 0; y < h2; y++) {
          const row = along(1, y);
          for (let x = 0; x < w2 && slice >= 0 && row >= 0; x++) {
            const number = columns[x] < 0 ? -1 : kept[(slice * h + row) * w + columns[x]];
            if (number < 0) continue;
            where[m] = (z * h2 + y) * w2 + x;
            source[m++] = number;
          }
        }
      }
      [this.where, this.source] = [where.slice(0, m), source.slice(0, m)];
      return;
    }
    const offset = [0, 1, 2].map((axis) => region.start[axis] - shown.start[axis]);
    this.where = new Uint32Array(distribution.n);
    this.source = this.where.map((_, i) => i);
    for (let i = 0; i < distribution.n; i++) {
      const index = distribution.indices ? distribution.indices[i] : i;
      const x = (index % w) + offset[2];
      const rest = Math.floor(index / w);
      const y = (rest % h) + offset[1];
      const z = Math.floor(rest / h) + offset[0];
      if (x < 0 || y < 0 || z < 0 || x >= w2 || y >= h2 || z >= d2) {
        throw new PackageError("The data of this case are damaged: a voxel of the distribution lies outside what is shown.");
      }
      this.where[i] = (z * h2 + y) * w2 + x;
    }
  }

  private coordinate(axis: Axis, index: number): number {
    const [, h, w] = this.size;
    return axis === 2 ? index % w : axis === 1 ? Math.floor(index / w) % h : Math.floor(index / (h * w));
  }

  /** The entries of `where` in a slice, ascending: a counting sort on first use of an axis. */
  inPlane(axis: Axis, index: number): Uint32Array {
    let [order, starts] = [this.orders[axis], this.starts[axis]];
    if (!order || !starts) {
      starts = new Uint32Array(this.size[axis] + 1);
      for (let i = 0; i < this.where.length; i++) starts[this.coordinate(axis, this.where[i]) + 1]++;
      for (let i = 1; i < starts.length; i++) starts[i] += starts[i - 1];
      const next = starts.slice();
      order = new Uint32Array(this.where.length);
      for (let i = 0; i < this.where.length; i++) order[next[this.coordinate(axis, this.where[i])]++] = i;
      this.orders[axis] = order;
      this.starts[axis] = starts;
    }
    return order.subarray(starts[index], starts[index + 1]);
  }

  /** The kept voxel at an index of what is shown, or −1. */
  find(index: number): number {
    let [low, high] = [0, this.where.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.where[middle] < index) low = middle + 1;
      else high = middle;
    }
    return this.where[low] === index ? this.source[low] : -1;
  }
}
