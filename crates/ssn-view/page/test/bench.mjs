// Times of the sampler outside a browser: `node test/bench.mjs` after `node build.mjs --library`.

import { NormalDrawer, fieldAt, fieldOfRange } from "../build/library.mjs";
import { distribution, steering } from "./unit/support.mjs";

function time(what, work) {
  const times = [];
  for (let i = 0; i < 12; i++) {
    const start = performance.now();
    work(i);
    times.push(performance.now() - start);
  }
  times.sort((a, b) => a - b);
  console.log(`${what.padEnd(48)} ${times[6].toFixed(2).padStart(8)} ms`);
}

for (const [name, d, positions] of [
  ["128 × 128, 2 classes, rank 10", distribution({ c: 2, r: 10, n: 128 * 128 }), null],
  ["240 × 240, 4 classes, rank 10", distribution({ c: 4, r: 10, n: 240 * 240 }), null],
  ["155 × 240 across, 4 classes, rank 10", distribution({ c: 4, r: 10, n: 155 * 240 * 16 }), (i) => i * 16 + 3],
]) {
  const list = positions && Uint32Array.from({ length: d.n / 16 }, (_, i) => positions(i));
  const gather = () => (list ? fieldAt(d, list) : fieldOfRange(d, 0, d.n));
  const draws = new NormalDrawer(d, gather());
  const labels = new Uint8Array(d.n);
  const weights = (i) => [i, ...Array(9).fill(1)];
  time(`${name}: gather`, gather);
  time(`${name}: another sample`, (i) => draws.labels(1n, i, steering(d), labels));
  time(`${name}: a mode`, (i) => draws.labels(1n, 0, steering(d, { modeWeights: weights(i + 2) }), labels));
  time(`${name}: temperature`, (i) => draws.labels(1n, 0, steering(d, { temperature: i / 3 }), labels));
}
