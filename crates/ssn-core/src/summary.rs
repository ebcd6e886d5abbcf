//! What many samples say together, gathered as they are drawn: no sample is kept.

use std::ops::Range;

use crate::error::{CoreError, Result};
use crate::labels::LabelMap;
use crate::random::TILE;
use crate::sampling::{
    CHUNK, Row, Sampler, count, label_count, split_rows, tile_log_probability, tile_softmax,
};

/// Sums over samples of one distribution, and of the likelihood of some raters' label maps.
///
/// `l` below is the number of labels: the classes, or 2 where a single class is on or off.
#[derive(Debug, Clone)]
pub struct SampleSummary<'a> {
    raters: &'a [LabelMap],
    voxels: usize,
    /// Σ over samples of the softmax, a row of `v` per class.
    probability_sums: Vec<Vec<f64>>,
    /// log p(rater | logits of the sample), one entry of `[n]` per sample.
    log_probabilities: Vec<Vec<f64>>,
}

/// Samples that are swept together.
const BLOCK: usize = 64;

/// What one chunk of voxels contributes.
struct ChunkState<'s> {
    probability_sums: Vec<&'s mut [f64]>,
    /// `[m, n]`.
    log_probabilities: Vec<f64>,
    first_voxel: usize,
    /// Room for the softmax of a tile.
    probabilities: Vec<Row>,
}

impl ChunkState<'_> {
    /// Adds one tile of one sample: its probabilities, and the likelihood of every rater.
    #[inline(always)]
    fn add(&mut self, at: usize, sample: usize, logits: &[Row], raters: &[LabelMap]) {
        let count = TILE.min(self.probability_sums[0].len() - at);
        self.probabilities.copy_from_slice(logits);
        let mut normalizer = [0.0; TILE];
        tile_softmax(&mut self.probabilities, &mut normalizer);
        for (row, probabilities) in self.probability_sums.iter_mut().zip(&self.probabilities) {
            row[at..at + count].iter_mut().zip(probabilities).for_each(|(sum, &p)| *sum += f64::from(p));
        }

        let sums = &mut self.log_probabilities[sample * raters.len()..];
        for (rater, sum) in raters.iter().zip(sums) {
            let mut target = [0; TILE];
            target[..count].copy_from_slice(&rater.labels()[self.first_voxel + at..][..count]);
            let mut log_p = [0.0; TILE];
            tile_log_probability(logits, &normalizer, &target, &mut log_p);
            *sum += sum_of_tile(&log_p, count);
        }
    }
}

/// The sum of the first `count` values in double precision, over eight running sums that vectorize.
#[inline(always)]
fn sum_of_tile(values: &Row, count: usize) -> f64 {
    const RUNNING: usize = 8;
    let mut sums = [0f64; RUNNING];
    for (i, &x) in values.iter().enumerate() {
        sums[i % RUNNING] += if i < count { f64::from(x) } else { 0.0 };
    }
    sums.iter().sum()
}

impl<'a> SampleSummary<'a> {
    /// An empty summary for the samples of `sampler`; `raters` may be empty.
    pub fn new(sampler: &Sampler<'_>, raters: &'a [LabelMap]) -> Result<Self> {
        let distribution = sampler.distribution();
        let (v, labels) = (distribution.voxels(), label_count(distribution));
        for (index, rater) in raters.iter().enumerate() {
            if rater.voxels() != v {
                let (value, expected) = (rater.voxels() as f64, "the distribution's number of voxels");
                return Err(CoreError::OutOfRange { field: "raters.voxels", index, value, expected });
            }
            if rater.classes() > labels {
                let value = rater.classes() as f64;
                let expected = "at most the distribution's number of classes";
                return Err(CoreError::OutOfRange { field: "raters.classes", index, value, expected });
            }
        }
        Ok(Self {
            raters,
            voxels: v,
            probability_sums: vec![vec![0.0; v]; distribution.classes()],
            log_probabilities: vec![],
        })
    }

    /// Adds the samples with these numbers.
    pub fn extend(&mut self, sampler: &Sampler<'_>, samples: Range<u64>) -> Result<()> {
        count(&samples)?;
        for (field, expected, found) in [
            ("sampler.voxels", self.voxels, sampler.distribution().voxels()),
            ("sampler.classes", self.probability_sums.len(), sampler.distribution().classes()),
        ] {
            if found != expected {
                return Err(CoreError::Length { field, expected, found });
            }
        }
        for start in samples.clone().step_by(BLOCK) {
            self.extend_block(sampler, start..samples.end.min(start + BLOCK as u64));
        }
        Ok(())
    }

    /// Adds at most [`BLOCK`] samples, which bounds what the chunks hold meanwhile.
    fn extend_block(&mut self, sampler: &Sampler<'_>, samples: Range<u64>) {
        let m = (samples.end - samples.start) as usize;
        let (classes, raters, n) = (self.probability_sums.len(), self.raters, self.raters.len());
        let mut states: Vec<ChunkState<'_>> = split_rows(&mut self.probability_sums)
            .into_iter()
            .enumerate()
            .map(|(chunk, probability_sums)| ChunkState {
                probability_sums,
                log_probabilities: vec![0.0; m * n],
                first_voxel: chunk * CHUNK,
                probabilities: vec![[0.0; TILE]; classes],
            })
            .collect();
        sampler.sweep(
            samples,
            &mut states,
            #[inline(always)]
            |state, at, sample, logits| state.add(at, sample, logits, raters),
        );

        // Chunks are added in their order, so that sums never depend on the thread count.
        let mut log_probabilities = vec![0.0; m * n];
        for state in states {
            log_probabilities.iter_mut().zip(&state.log_probabilities).for_each(|(sum, x)| *sum += x);
        }
        self.log_probabilities.extend((0..m).map(|i| log_probabilities[i * n..(i + 1) * n].to_vec()));
    }

    /// How many samples have been added.
    pub fn samples(&self) -> usize {
        self.log_probabilities.len()
    }

    /// Mean over the samples of the softmax, p̄, a row per label, `[l, v]`: for a single class, off and on.
    pub fn mean_probabilities(&self) -> Result<Vec<f32>> {
        let m = self.some_samples()? as f64;
        let rows = self.probability_sums.iter().flatten().map(|sum| (sum / m) as f32);
        Ok(match self.probability_sums.as_slice() {
            [on] => on.iter().map(|sum| (1.0 - sum / m) as f32).chain(rows).collect(),
            _ => rows.collect(),
        })
    }

    /// Marginal entropy per voxel, −Σ_c p̄ log_C p̄, in 0 … 1, `[v]`.
    pub fn marginal_entropy(&self) -> Result<Vec<f32>> {
        let m = self.some_samples()? as f64;
        let term = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
        let base = (self.probability_sums.len().max(2) as f64).ln();
        Ok((0..self.voxels)
            .map(|x| {
                let entropy = match self.probability_sums.as_slice() {
                    [row] => term(row[x] / m) + term(1.0 - row[x] / m),
                    rows => rows.iter().map(|row| term(row[x] / m)).sum(),
                };
                (entropy / base).clamp(0.0, 1.0) as f32
            })
            .collect())
    }

    /// log (1/M) Σ_m p(rater | η⁽ᵐ⁾) of each rater, `[n]`, as logsumexp_m log p − log M.
    pub fn log_likelihoods(&self) -> Result<Vec<f64>> {
        let m = self.some_samples()? as f64;
        Ok((0..self.raters.len())
            .map(|rater| {
                let (largest, sum, _) = self.scaled_sums(rater);
                largest + sum.ln() - m.ln()
            })
            .collect())
    }

    /// How many samples carry the likelihood of each rater, `[n]`: (Σ w)² / Σ w² with w = p(rater | η⁽ᵐ⁾).
    /// Near 1 the estimate hangs on a single sample.
    pub fn effective_samples(&self) -> Result<Vec<f64>> {
        self.some_samples()?;
        Ok((0..self.raters.len())
            .map(|rater| {
                let (_, sum, squares) = self.scaled_sums(rater);
                sum * sum / squares
            })
            .collect())
    }

    /// The largest log-probability L of a rater, Σ exp(log p − L), and Σ exp(2 (log p − L)).
    fn scaled_sums(&self, rater: usize) -> (f64, f64, f64) {
        let values = self.log_probabilities.iter().map(|sample| sample[rater]);
        let largest = values.clone().fold(f64::NEG_INFINITY, f64::max);
        let weights = values.map(|x| (x - largest).exp());
        let (sum, squares) = weights.fold((0.0, 0.0), |(sum, squares), w| (sum + w, squares + w * w));
        (largest, sum, squares)
    }

    fn some_samples(&self) -> Result<usize> {
        match self.samples() {
            0 => Err(CoreError::Empty { field: "samples" }),
            m => Ok(m),
        }
    }
}
