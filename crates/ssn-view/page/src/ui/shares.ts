// Samples by their place in the order of volumes.

import type { Survey } from "../messages";

/** Shares of the samples that are no larger, for which surfaces are offered. */
export const SHARES: readonly number[] = [0.1, 0.5, 0.9];

/** The sample at a share of the order by the volume of a class, of `l` labels, as the histogram tells quantiles. */
export function sampleAt({ samples, volumes }: Pick<Survey, "samples" | "volumes">, l: number, label: number, share: number): number {
  const order = Array.from({ length: samples }, (_, sample) => sample).sort((a, b) => volumes[a * l + label] - volumes[b * l + label]);
  return order[Math.min(Math.floor(share * samples), samples - 1)];
}
