// Standard normal numbers by address (docs/reference/sampling.md, section 2): Philox words through the Box–Muller
// transform in binary32. Every operation is rounded by `Math.fround`, or by being stored to a Float32Array.

import type { Address } from "./address";
import { philox } from "./philox";

const f = Math.fround;

/** The stream of the rank noise. The noise of the diagonal uses the class as its stream. */
export const RANK_STREAM = 0xffffffff | 0;

const LANES = 16;
const TILE = 64;
/** From so many wanted numbers of a tile on, the whole tile is made at once. */
const WHOLE_TILE = 17;

const SQRT_HALF = 0x3f3504f3;
const words = new Int32Array(TILE);
const tile = new Float32Array(TILE);
// Bits of numbers, and numbers of bits.
const reals = new Float32Array(TILE);
const bits = new Int32Array(reals.buffer);

function number(word: number): number {
  bits[0] = word | 0;
  return reals[0];
}

const LN_2 = number(0x3f317218);
const [LN0, LN1, LN2, LN3, LN4, LN5, LN6, LN7] =
  [0xbefffffa, 0x3eaaab73, 0xbe800362, 0x3e4c6d34, 0xbe297db6, 0x3e186771, 0xbe13b9ce, 0x3db7ea59].map(number);
const [SIN0, SIN1, SIN2, SIN3] = [0x3f490fdb, 0xbda55ddd, 0x3b232f63, 0xb816cddc].map(number);
const [COS0, COS1, COS2] = [0xbe9de9d1, 0x3c81d8b4, 0xb9a75576].map(number);
const TWO_TO_MINUS_31 = 2 ** -31;

/** √(−2 ln u) of a number whose bits minus those of √½ are given. */
function radius(shifted: number, mantissa: number): number {
  const s = f(mantissa - 1);
  let q = LN7;
  q = f(f(q * s) + LN6);
  q = f(f(q * s) + LN5);
  q = f(f(q * s) + LN4);
  q = f(f(q * s) + LN3);
  q = f(f(q * s) + LN2);
  q = f(f(q * s) + LN1);
  q = f(f(q * s) + LN0);
  const logarithm = f(s + f(f(s * s) * q));
  const n = f(f((31 - (shifted >> 23)) * LN_2) - logarithm);
  return f(Math.sqrt(f(n + n)));
}

/** Makes the two normal numbers of radius r and the angle's word; writes them to `out` at two places. */
function turn(r: number, q: number, out: Float32Array, first: number, second: number): void {
  const t = f(f(q << 2) * TWO_TO_MINUS_31);
  const z = f(t * t);
  const c = f(1 + f(z * f(f(f(f(COS2 * z) + COS1) * z) + COS0)));
  const s = f(t * f(f(f(f(f(f(SIN3 * z) + SIN2) * z) + SIN1) * z) + SIN0));
  const quadrant = q >>> 30;
  const odd = (quadrant & 1) === 1;
  const g = odd ? s : c;
  const h = odd ? c : s;
  out[first] = r * (((quadrant + 1) & 2) === 0 ? g : -g);
  out[second] = r * ((quadrant & 2) === 0 ? h : -h);
}

/** The numbers 64·`place` … 64·`place` + 63 of a stream, to `tile`. */
function makeTile(at: Address, stream: number, place: number): void {
  for (let lane = 0; lane < LANES; lane++) {
    philox(place * LANES + lane, stream, at.drawLow, at.drawHigh, at.seedLow, at.seedHigh, words, lane, LANES);
  }
  // Words 0 and 2 of every counter give radii, words 1 and 3 angles.
  for (let pair = 0; pair < TILE; pair += 2 * LANES) {
    for (let i = pair; i < pair + LANES; i++) reals[i] = f(words[i] >>> 1) + 0.5;
    for (let i = pair; i < pair + LANES; i++) {
      const shifted = (bits[i] - SQRT_HALF) | 0;
      bits[i + LANES] = shifted;
      bits[i] = (shifted & 0x7fffff) + SQRT_HALF;
    }
    for (let i = pair; i < pair + LANES; i++) {
      turn(radius(bits[i + LANES], reals[i]), words[i + LANES], tile, i, i + LANES);
    }
  }
}

/** The number with one index of a stream; `tile` and `words` keep nothing of use. */
function single(at: Address, stream: number, index: number): number {
  const counter = (index >>> 6) * LANES + (index & 15);
  philox(counter, stream, at.drawLow, at.drawHigh, at.seedLow, at.seedHigh, words, 0, 1);
  const j = (index >>> 4) & 3;
  reals[0] = f(words[j & 2] >>> 1) + 0.5;
  const shifted = (bits[0] - SQRT_HALF) | 0;
  bits[0] = (shifted & 0x7fffff) + SQRT_HALF;
  turn(radius(shifted, reals[0]), words[(j & 2) + 1], tile, 0, 1);
  return tile[j & 1];
}

/**
 * The numbers of a stream with the first `count` of ascending `indices`, to `out` from `from` on.
 * Neighbors come from the same tile of 64, which is made once.
 */
export function normalsAt(
  at: Address, stream: number, indices: Uint32Array, count: number, out: Float32Array, from: number,
): void {
  let i = 0;
  while (i < count) {
    const place = indices[i] >>> 6;
    let end = i + 1;
    while (end < count && indices[end] >>> 6 === place) end++;
    if (end - i >= WHOLE_TILE) {
      makeTile(at, stream, place);
      for (; i < end; i++) out[from + i] = tile[indices[i] & 63];
    } else {
      for (; i < end; i++) out[from + i] = single(at, stream, indices[i]);
    }
  }
}

/** The first numbers of a stream, as many as `out` holds. */
export function firstNormals(at: Address, stream: number, out: Float32Array): void {
  for (let i = 0; i < out.length; i++) out[i] = single(at, stream, i);
}
