// Label maps as NIfTI-1 files, in the geometry of the image.

import type { Header } from "./package";

const HEADER = 348;
const START = 352;
const UINT8 = 2;
const LABELS = 1002;
const MILLIMETRES = 2;
const SCANNER = 1;

/** A file of labels `[d, h, w]` over the whole image. */
export function niftiFile(header: Header, labels: Uint8Array): Uint8Array {
  const file = new Uint8Array(START + labels.length);
  const view = new DataView(file.buffer);
  const [d, h, w] = header.size;
  const [dz, dy, dx] = header.spacing;
  const text = (at: number, value: string, room: number) => {
    file.set(new TextEncoder().encode(value).subarray(0, room - 1), at);
  };
  view.setInt32(0, HEADER, true);
  [3, w, h, d, 1, 1, 1, 1].forEach((extent, i) => view.setInt16(40 + 2 * i, extent, true));
  view.setInt16(68, LABELS, true);
  view.setInt16(70, UINT8, true);
  view.setInt16(72, 8, true);
  const { code, quaternion, sign } = rotation(header);
  [sign, dx, dy, dz].forEach((step, i) => view.setFloat32(76 + 4 * i, step, true));
  view.setFloat32(108, START, true);
  view.setFloat32(112, 1, true);
  view.setUint8(123, MILLIMETRES);
  text(148, "sample of a stochastic segmentation network", 80);
  view.setInt16(252, code, true);
  view.setInt16(254, SCANNER, true);
  const offset = header.affine.map((row) => row[3]);
  [...quaternion, ...offset].forEach((value, i) => view.setFloat32(256 + 4 * i, value, true));
  header.affine.forEach((row, i) => row.forEach((value, j) => view.setFloat32(280 + 16 * i + 4 * j, value, true)));
  text(344, "n+1", 4);
  file.set(labels, START);
  return file;
}

/** The rotation of the affine as NIfTI's quaternion; code 0 where the axes are not at right angles. */
function rotation(header: Header): { code: number; quaternion: [number, number, number]; sign: number } {
  const none = { code: 0, quaternion: [0, 0, 0] as [number, number, number], sign: 1 };
  const columns = [0, 1, 2].map((column) => {
    const vector = header.affine.map((row) => row[column]);
    const length = Math.hypot(...vector);
    return vector.map((x) => x / length);
  });
  const dot = (a: number[], b: number[]) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const [a, b, c] = columns;
  if (columns.flat().some((x) => !Number.isFinite(x)) || [dot(a, b), dot(b, c), dot(a, c)].some((x) => Math.abs(x) > 1e-4)) return none;
  const determinant = dot(a, [b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0]]);
  const sign = determinant < 0 ? -1 : 1;
  const third = c.map((x) => sign * x);
  // m[row][column] of a proper rotation.
  const m = [0, 1, 2].map((row) => [a[row], b[row], third[row]]);
  const trace = m[0][0] + m[1][1] + m[2][2];
  let [w, x, y, z] = [0, 0, 0, 0];
  if (trace > 0) {
    const s = 2 * Math.sqrt(trace + 1);
    [w, x, y, z] = [s / 4, (m[2][1] - m[1][2]) / s, (m[0][2] - m[2][0]) / s, (m[1][0] - m[0][1]) / s];
  } else if (m[0][0] >= m[1][1] && m[0][0] >= m[2][2]) {
    const s = 2 * Math.sqrt(1 + m[0][0] - m[1][1] - m[2][2]);
    [w, x, y, z] = [(m[2][1] - m[1][2]) / s, s / 4, (m[0][1] + m[1][0]) / s, (m[0][2] + m[2][0]) / s];
  } else if (m[1][1] >= m[2][2]) {
    const s = 2 * Math.sqrt(1 + m[1][1] - m[0][0] - m[2][2]);
    [w, x, y, z] = [(m[0][2] - m[2][0]) / s, (m[0][1] + m[1][0]) / s, s / 4, (m[1][2] + m[2][1]) / s];
  } else {
    const s = 2 * Math.sqrt(1 + m[2][2] - m[0][0] - m[1][1]);
    [w, x, y, z] = [(m[1][0] - m[0][1]) / s, (m[0][2] + m[2][0]) / s, (m[1][2] + m[2][1]) / s, s / 4];
  }
  const turn = w < 0 ? -1 : 1;
  return { code: SCANNER, quaternion: [turn * x, turn * y, turn * z], sign };
}

/** The same, compressed. */
export async function gzip(bytes: Uint8Array): Promise<Blob> {
  const stream = new Blob([bytes as BlobPart]).stream().pipeThrough(new CompressionStream("gzip"));
  return new Response(stream).blob();
}
