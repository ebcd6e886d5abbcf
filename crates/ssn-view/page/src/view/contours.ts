// Outlines of masks along the edges of their pixels, as they are: nothing is smoothed.

/** Adds the outline of the pixels for which `inside` holds. Points are columns and rows. */
export function outline(rows: number, columns: number, inside: (pixel: number) => boolean): Path2D {
  const path = new Path2D();
  const mask = new Uint8Array(rows * columns);
  for (let i = 0; i < mask.length; i++) mask[i] = inside(i) ? 1 : 0;
  // Runs along the upper edges of rows, and then along the left edges of columns.
  for (let y = 0; y <= rows; y++) {
    let from = -1;
    for (let x = 0; x <= columns; x++) {
      const edge = x < columns && (y > 0 ? mask[(y - 1) * columns + x] : 0) !== (y < rows ? mask[y * columns + x] : 0);
      if (edge && from < 0) from = x;
      if (!edge && from >= 0) {
        path.moveTo(from, y);
        path.lineTo(x, y);
        from = -1;
      }
    }
  }
  for (let x = 0; x <= columns; x++) {
    let from = -1;
    for (let y = 0; y <= rows; y++) {
      const edge = y < rows && (x > 0 ? mask[y * columns + x - 1] : 0) !== (x < columns ? mask[y * columns + x] : 0);
      if (edge && from < 0) from = y;
      if (!edge && from >= 0) {
        path.moveTo(x, from);
        path.lineTo(x, y);
        from = -1;
      }
    }
  }
  return path;
}

/** The outlines of the labels above 0 that a map has. */
export function labelOutlines(labels: Uint8Array, rows: number, columns: number): Map<number, Path2D> {
  const found = new Set<number>();
  for (const label of labels) if (label > 0) found.add(label);
  return new Map([...found].sort((a, b) => a - b).map((label) => [label, outline(rows, columns, (i) => labels[i] === label)]));
}
