// Probabilities of logits (docs/reference/sampling.md, section 4), in binary32.

const f = Math.fround;

const reals = new Float32Array(1);
const bits = new Int32Array(reals.buffer);
function number(word: number): number {
  bits[0] = word | 0;
  return reals[0];
}

const LOG2_E = number(0x3fb8aa3b);
const LN_2_LOW = number(0xb95e8083);
const LN_2_HIGH = 0.693359375;
/** 1.5·2²³: adding and subtracting it rounds to the nearest integer. */
const ROUNDING = 12582912;
const [EXP0, EXP1, EXP2, EXP3, EXP4] = [0x3f000000, 0x3e2aaa48, 0x3d2aaa2f, 0x3c091d9c, 0x3ab6d9fb].map(number);
/** Below this, the exponential is 0. */
const UNDERFLOW = -87;
/** 2⁻ⁿ for n = 0 … 126. */
const POWERS = Float32Array.from({ length: 127 }, (_, n) => 2 ** -n);

/** exp(y) for y ≤ 0. */
export function exponential(y: number): number {
  if (y < UNDERFLOW) return 0;
  const n = f(f(f(y * LOG2_E) + ROUNDING) - ROUNDING);
  const r = f(f(y - f(n * LN_2_HIGH)) - f(n * LN_2_LOW));
  let q = EXP4;
  q = f(f(q * r) + EXP3);
  q = f(f(q * r) + EXP2);
  q = f(f(q * r) + EXP1);
  q = f(f(q * r) + EXP0);
  return f(f(f(1 + r) + f(f(r * r) * q)) * POWERS[-n | 0]);
}

/** Replaces the logits `[c, m]` of m voxels by their probabilities. */
export function softmax(logits: Float32Array, c: number, m: number): void {
  if (c === 1) {
    for (let x = 0; x < m; x++) {
      const eta = logits[x];
      const e = exponential(eta >= 0 ? -eta : eta);
      logits[x] = (eta >= 0 ? 1 : e) / f(1 + e);
    }
    return;
  }
  for (let x = 0; x < m; x++) {
    let top = 0;
    let largest = logits[x];
    for (let k = 1; k < c; k++) {
      const eta = logits[k * m + x];
      if (eta > largest) {
        largest = eta;
        top = k;
      }
    }
    let rest = 0;
    for (let k = 0; k < c; k++) {
      const e = exponential(f(logits[k * m + x] - largest));
      logits[k * m + x] = e;
      if (k !== top) rest = f(rest + e);
    }
    const sum = f(1 + rest);
    for (let k = 0; k < c; k++) logits[k * m + x] = logits[k * m + x] / sum;
  }
}
