// The seed of a case's noise (docs/reference/sampling.md, section 6).

import { address } from "./address";
import { philox } from "./philox";

const CASE_SAMPLES = 0x63617365;
const DERIVE_TAG = 0xfffffffe | 0;

/** Made of the seed that the user named and the name of the case, so that cases do not share noise. */
export function caseSeed(seed: bigint, name: string): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(name)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  const [key, index] = [address(seed, 0), address(hash, 0)];
  const words = new Int32Array(4);
  philox(CASE_SAMPLES, DERIVE_TAG, index.seedLow, index.seedHigh, key.seedLow, key.seedHigh, words, 0, 1);
  return BigInt(words[0] >>> 0) | BigInt(words[1] >>> 0) << 32n;
}
