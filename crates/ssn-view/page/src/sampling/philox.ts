// Philox4x32-10 (docs/reference/sampling.md, section 1): four random words from a counter of four and a key of two.
//
// JavaScript has no 64-bit product of two words: the upper half is put together from products of 16-bit halves, each of
// which fits a word.

const M0 = 0xd2511f53 | 0;
const M0_LOW = 0x1f53;
const M0_HIGH = 0xd251;
const M1 = 0xcd9e8d57 | 0;
const M1_LOW = 0x8d57;
const M1_HIGH = 0xcd9e;
const WEYL0 = 0x9e3779b9 | 0;
const WEYL1 = 0xbb67ae85 | 0;
const ROUNDS = 10;

/**
 * Writes the four words of a counter to `words` at `at`, `at + step`, `at + 2·step` and `at + 3·step`, as signed numbers
 * with the same bits.
 */
export function philox(
  a: number, b: number, c: number, d: number, k0: number, k1: number,
  words: Int32Array, at: number, step: number,
): void {
  for (let round = 0; round < ROUNDS; round++) {
    const aLow = a & 0xffff;
    const aHigh = a >>> 16;
    const aMiddle = (Math.imul(aHigh, M0_LOW) + (Math.imul(aLow, M0_LOW) >>> 16)) | 0;
    const aCarry = (Math.imul(aLow, M0_HIGH) + (aMiddle & 0xffff)) | 0;
    const aTop = (Math.imul(aHigh, M0_HIGH) + (aMiddle >>> 16) + (aCarry >>> 16)) | 0;
    const cLow = c & 0xffff;
    const cHigh = c >>> 16;
    const cMiddle = (Math.imul(cHigh, M1_LOW) + (Math.imul(cLow, M1_LOW) >>> 16)) | 0;
    const cCarry = (Math.imul(cLow, M1_HIGH) + (cMiddle & 0xffff)) | 0;
    const cTop = (Math.imul(cHigh, M1_HIGH) + (cMiddle >>> 16) + (cCarry >>> 16)) | 0;
    const aBottom = Math.imul(a, M0);
    const cBottom = Math.imul(c, M1);
    a = cTop ^ b ^ k0;
    b = cBottom;
    c = aTop ^ d ^ k1;
    d = aBottom;
    k0 = (k0 + WEYL0) | 0;
    k1 = (k1 + WEYL1) | 0;
  }
  words[at] = a;
  words[at + step] = b;
  words[at + 2 * step] = c;
  words[at + 3 * step] = d;
}
