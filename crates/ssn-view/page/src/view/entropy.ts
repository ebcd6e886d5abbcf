// How sure samples, or raters, are of a voxel.

/** −Σ p̄ log p̄ to the base of the number of labels, as `ssn-core` has it. */
export function entropy(probabilities: Float32Array, l: number, size: number): Float32Array {
  const out = new Float32Array(size);
  const base = Math.log(l);
  for (let k = 0; k < l; k++) {
    for (let i = 0; i < size; i++) {
      const p = probabilities[k * size + i];
      if (p > 0) out[i] -= (p * Math.log(p)) / base;
    }
  }
  return out.map((value) => Math.min(Math.max(value, 0), 1));
}
