// Groups of samples that are alike: k-medoids by partitioning around medoids (Kaufman and Rousseeuw, 1990), as in reports.

/** A group of samples. */
export interface SampleGroup {
  /** Its medoid: the sample with the smallest sum of distances to the others of the group. */
  readonly sample: number;
  /** Its share of all samples. */
  readonly share: number;
}

/** Groups with this share of the samples or less are rare. */
export const RARE = 0.05;
/** With so much of the mean distance to the one most typical sample left, there are groups enough. */
const CLOSE_ENOUGH = 0.5;

/** As many groups as it takes to halve the distances of samples to the nearest medoid, `most` at most, the largest first. `distances` is `[m, m]`. */
export function sampleGroups(distances: Float64Array, samples: number, most: number): SampleGroup[] {
  if (samples === 0) return [];
  let medoids: number[] = [];
  let first = Infinity;
  for (let count = 1; count <= most; count++) {
    const found = kMedoids(distances, samples, count);
    medoids = found.medoids;
    if (count === 1) first = found.cost;
    if (found.cost <= CLOSE_ENOUGH * first || medoids.length < count) break;
  }
  const sizes = medoids.map(() => 0);
  for (let sample = 0; sample < samples; sample++) {
    const row = medoids.map((medoid) => distances[sample * samples + medoid]);
    sizes[row.indexOf(Math.min(...row))]++;
  }
  const groups = medoids.map((sample, place) => ({ sample, share: sizes[place] / samples }));
  return groups.sort((a, b) => b.share - a.share || a.sample - b.sample);
}

/** Medoids are added one by one, each where it lowers the sum of distances most, and then exchanged as long as that lowers it further; of equal choices, the sample with the lowest number is taken. */
function kMedoids(distances: Float64Array, samples: number, count: number): { medoids: number[]; cost: number } {
  const medoids: number[] = [];
  /** What samples have to the nearest medoid but the one at `without`. */
  const nearest = (without: number) => Float64Array.from({ length: samples }, (_, sample) => {
    let least = Infinity;
    medoids.forEach((medoid, place) => { if (place !== without) least = Math.min(least, distances[sample * samples + medoid]); });
    return least;
  });
  /** The sample that lowers the sum of distances most beside those medoids. */
  const best = (others: Float64Array) => {
    let [chosen, least] = [-1, Infinity];
    for (let sample = 0; sample < samples; sample++) {
      if (medoids.includes(sample)) continue;
      let sum = 0;
      for (let other = 0; other < samples; other++) sum += Math.min(others[other], distances[other * samples + sample]);
      if (sum < least) [chosen, least] = [sample, sum];
    }
    return { chosen, sum: least };
  };
  let cost = Infinity;
  while (medoids.length < count) {
    const { chosen, sum } = best(nearest(-1));
    if (chosen < 0 || sum >= cost) break;
    medoids.push(chosen);
    cost = sum;
  }
  // Every exchange lowers the cost, and there are finitely many sets of medoids: the loop ends.
  for (;;) {
    let exchange = { place: -1, chosen: -1, sum: cost };
    medoids.forEach((_, place) => {
      const found = best(nearest(place));
      if (found.sum < exchange.sum) exchange = { place, ...found };
    });
    if (exchange.place < 0) return { medoids, cost };
    medoids[exchange.place] = exchange.chosen;
    cost = exchange.sum;
  }
}
