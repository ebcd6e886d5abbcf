// How outlines are stroked: thinner where voxels are small, and with a rim that sets them off from what is below.

import { type Color, css, rim } from "../color";
import type { PaintTarget } from "./annotations";
import type { Transform } from "./transform";

/** Pixels of the page that a voxel has at least where outlines have their whole width. */
const ROOMY_VOXEL = 4;
/** What is left of their width where voxels are smallest. */
const THINNEST = 0.4;

/** The part of their width that outlines have where a voxel takes so many pixels of the page. */
export function lineWeight(voxel: number): number {
  return Math.min(Math.max(voxel / ROOMY_VOXEL, THINNEST), 1);
}

export interface OutlineLook {
  /** In pixels of the page. */
  readonly width: number;
  readonly dash: readonly number[];
  readonly color: Color;
  /** Whether a map of colors is below, on which any color may be lost: the rim is then dense and black or white. */
  readonly onMap: boolean;
}

/** Strokes paths of voxels in the pixels of a target: all rims before all lines, so that no rim hides a line. */
export function strokeOutlines({ context, ratio }: PaintTarget, view: Transform, outlines: readonly { readonly path: Path2D; readonly look: OutlineLook }[]): void {
  const placed = outlines.map(({ path, look }) => {
    const on = new Path2D();
    on.addPath(path, new DOMMatrix([...view.matrix]));
    return { on, look };
  });
  for (const part of ["rim", "line"] as const) {
    for (const { on, look: { width, dash, color, onMap } } of placed) {
      context.lineCap = dash.length > 0 ? "butt" : "square";
      context.setLineDash(dash.map((length) => length * ratio));
      if (part === "rim") {
        context.strokeStyle = onMap ? css(rim(color), 0.9) : dash.length === 0 ? "rgb(0 0 0 / 0.45)" : "rgb(0 0 0 / 0.6)";
        context.lineWidth = (width + (onMap ? 2.5 : Math.min(1.5, width))) * ratio;
      } else {
        context.strokeStyle = css(color);
        context.lineWidth = width * ratio;
      }
      context.stroke(on);
    }
  }
  context.setLineDash([]);
}
