// Surfaces of label maps: they are closed, enclose their voxels, and stand where the patient is.

import assert from "node:assert/strict";
import { test } from "node:test";

import { START, apply, coarsen, countFaces, sampleAt, surfaceNet, surfaces, turned } from "../../build/library.mjs";

/** The result of work in pieces. */
function whole(pieces) {
  for (;;) {
    const { value, done } = pieces.next();
    if (done) return value;
  }
}

const size = [9, 10, 11];
const map = (label) => Uint8Array.from({ length: size[0] * size[1] * size[2] }, (_, i) => label(Math.floor(i / 110), Math.floor(i / 11) % 10, i % 11));
const box = map((z, y, x) => Number(z >= 2 && z < 6 && y >= 3 && y < 8 && x >= 0 && x < 7));
const nested = map((z, y, x) => {
  const away = Math.hypot(z - 4, y - 5, x - 5);
  return away < 2 ? 2 : away < 3.6 ? 1 : 0;
});

/** The edges of a net, each with how often faces run along it one way less how often the other way. */
function edges({ faces }) {
  const found = new Map();
  for (let i = 0; i < faces.length; i += 4) {
    for (let corner = 0; corner < 4; corner++) {
      const [a, b] = [faces[i + corner], faces[i + ((corner + 1) % 4)]];
      const key = `${Math.min(a, b)} ${Math.max(a, b)}`;
      found.set(key, (found.get(key) ?? 0) + (a < b ? 1 : -1));
    }
  }
  return found;
}

/** The volume that a closed net encloses. */
function volume({ vertices, faces }) {
  let sum = 0;
  const at = (n) => Array.from(vertices.subarray(3 * n, 3 * n + 3));
  for (let i = 0; i < faces.length; i += 4) {
    for (const [a, b, c] of [[0, 1, 2], [0, 2, 3]]) {
      const [p, q, r] = [a, b, c].map((corner) => at(faces[i + corner]));
      sum += (p[0] * (q[1] * r[2] - q[2] * r[1]) - p[1] * (q[0] * r[2] - q[2] * r[0]) + p[2] * (q[0] * r[1] - q[1] * r[0])) / 6;
    }
  }
  return Math.abs(sum);
}

test("a surface is closed, turned one way, and has a vertex in each cell at the border", () => {
  const net = whole(surfaceNet(box, size, 1));
  assert.equal(net.faces.length / 4, 2 * (4 * 5 + 5 * 7 + 4 * 7));
  const found = edges(net);
  assert.ok([...found.values()].every((sum) => sum === 0), "each edge is run along both ways");
  assert.equal(net.vertices.length / 3 - found.size + net.faces.length / 4, 2, "it is one closed body");
  // Vertices stay in their cells, whose middles are half a voxel from voxels.
  for (const value of net.vertices) assert.ok(Math.abs(value - Math.floor(value) - 0.5) <= 0.45 + 1e-6, String(value));
  assert.ok(Math.abs(volume(net) - 4 * 5 * 7) < 0.05 * 4 * 5 * 7, String(volume(net)));
  const ball = map((z, y, x) => Number(Math.hypot(z - 4, y - 5, x - 5) < 3.6));
  const count = ball.reduce((sum, label) => sum + label, 0);
  assert.ok(Math.abs(volume(whole(surfaceNet(ball, size, 1))) - count) < 0.05 * count);
});

test("a single voxel is there, and a label that is missing has no surface", () => {
  const one = whole(surfaceNet(map((z, y, x) => Number(z === 8 && y === 0 && x === 10)), size, 1));
  assert.equal(one.faces.length / 4, 6);
  assert.ok(volume(one) > 0.03, String(volume(one)));
  const middle = [0, 1, 2].map((axis) => one.vertices.filter((_, i) => i % 3 === axis).reduce((sum, value) => sum + value / 8, 0));
  middle.forEach((value, axis) => assert.ok(Math.abs(value - [8, 0, 10][axis]) < 1e-5, `${middle}`));
  assert.equal(whole(surfaceNet(box, size, 3)).faces.length, 0);
});

test("faces are counted before they are made", () => {
  for (const labels of [box, nested]) {
    const made = [1, 2].reduce((sum, label) => sum + whole(surfaceNet(labels, size, label)).faces.length / 4, 0);
    assert.equal(countFaces(labels, size), made);
  }
});

test("blocks have the most frequent label", () => {
  const { labels, size: blocks } = coarsen(nested, size, 2);
  assert.deepEqual(blocks, [5, 5, 6]);
  for (let z = 0, i = 0; z < 5; z++) {
    for (let y = 0; y < 5; y++) {
      for (let x = 0; x < 6; x++, i++) {
        const counts = [0, 0, 0];
        nested.forEach((label, at) => {
          const [c, b, a] = [Math.floor(at / 110), Math.floor(at / 11) % 10, at % 11];
          if (c >> 1 === z && b >> 1 === y && a >> 1 === x) counts[label]++;
        });
        assert.equal(counts[labels[i]], Math.max(...counts));
      }
    }
  }
});

test("surfaces stand in millimeters of the patient, and get coarser where they have too many faces", () => {
  // d to the left in steps of 3 mm, h up in steps of 2 mm, w to the front.
  const header = { classes: ["background", "a", "b"], shown: { start: [0, 0, 0], size }, affine: [[0, 0, -3, 7], [1, 0, 0, 8], [0, 2, 0, 9]] };
  const { step, meshes, counts } = whole(surfaces(header, nested));
  assert.deepEqual([step, meshes.map(({ label }) => label)], [1, [1, 2]]);
  assert.deepEqual(counts, [0, 1, 2].map((label) => nested.filter((one) => one === label).length));
  const { positions, normals, triangles } = meshes[0];
  const ends = (axis) => {
    const along = positions.filter((_, i) => i % 3 === axis);
    return [Math.min(...along), Math.max(...along)];
  };
  // Voxels of a: d from 1 to 7, h from 2 to 8, w from 2 to 8; what is shown has its middle at (4, 4.5, 5).
  for (const [axis, low, high] of [[0, -3 * 3.5, 3 * 3.5], [1, -3.5, 3.5], [2, 2 * -3, 2 * 4]]) {
    const [from, to] = ends(axis);
    const free = 0.45 * [3, 1, 2][axis] + 1e-4;
    assert.ok(Math.abs(from - low) <= free && Math.abs(to - high) <= free, `${axis}: ${from} ${to}`);
  }
  for (let i = 0; i < normals.length; i += 3) assert.ok(Math.abs(Math.hypot(normals[i], normals[i + 1], normals[i + 2]) - 1) < 1e-5);
  assert.ok(triangles.every((vertex) => vertex < positions.length / 3));
  const coarse = whole(surfaces(header, nested, 200));
  assert.ok(coarse.step > 1 && coarse.meshes.length > 0);
  assert.ok(coarse.meshes.reduce((sum, mesh) => sum + mesh.triangles.length / 6, 0) <= 200);
  assert.deepEqual(coarse.counts, counts, "volumes are those of voxels");
});

test("turning keeps lengths and angles, and the patient's right is at the left at first", () => {
  let rotation = START;
  assert.ok(apply(START, [1, 0, 0])[0] < -0.5 && apply(START, [0, 0, 1])[1] > 0.5 && apply(START, [0, 1, 0])[2] > 0.5);
  for (let i = 0; i < 5000; i++) rotation = turned(rotation, 0.37, -0.21);
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  rotation.forEach((a, i) => rotation.forEach((b, j) => assert.ok(Math.abs(dot(a, b) - Number(i === j)) < 1e-12)));
  // To the right: what is in front goes to the right; downwards: down.
  const front = [0, 1, 2].map((column) => START[2][column]);
  assert.ok(apply(turned(START, 0.1, 0), front)[0] > 0 && apply(turned(START, 0, 0.1), front)[1] < 0);
});

test("samples are found by their place in the order of volumes", () => {
  const volumes = Float64Array.from([5, 1, 9, 3, 7].flatMap((volume) => [100 - volume, volume]));
  assert.deepEqual([0, 0.1, 0.5, 0.9, 1].map((share) => sampleAt({ samples: 5, volumes }, 2, 1, share)), [1, 1, 0, 2, 2]);
});
