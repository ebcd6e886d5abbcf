//! A row with those of its trainings that are scored: their scores as one figure each, and what they cost.
//!
//! A value is what one case, or one rater of one case, contributes. The mean is the mean over the seeds of their means.
//! Its standard error is that over the test set: every value is averaged over the seeds first, so that more seeds make
//! values less noisy but not more numerous. How much seeds differ is told by the
//! standard error over their means, and by the lowest and the highest of them.

use std::collections::BTreeMap;

use serde::Serialize;
use ssn_core::metrics::Summary;
use ssn_eval::registry::{DSC, GED2, ScoreKey, is_of};
use ssn_eval::scores::observations;
use ssn_eval::{Evaluated, Scored};

use super::file::Row;
use super::job::{Drawing, RunRecord};
use super::plan::TrainingJob;
use crate::error::Result;

/// A row with its figures.
pub struct Finished<'a> {
    /// The row.
    pub row: &'a Row,
    /// Those of its seeds that are scored, with all their folds.
    pub seeds: Vec<u64>,
    /// Its figures over all seeds, by name, in the order of tables.
    pub averages: Vec<(String, Average)>,
    /// What its networks cost.
    pub cost: Cost,
    /// Cases that it was scored on.
    pub cases: usize,
    /// Its trainings.
    pub runs: Vec<ScoredRun<'a>>,
}

/// A training with its scores.
pub struct ScoredRun<'a> {
    pub job: &'a TrainingJob,
    pub record: RunRecord,
    pub evaluated: Evaluated,
}

impl<'a> Finished<'a> {
    /// Puts the trainings of a row together: folds of a seed are pooled, seeds are averaged. A seed without some of
    /// its `folds` is left out, since other cases are other scores.
    pub fn new(row: &'a Row, mut runs: Vec<ScoredRun<'a>>, folds: usize) -> Result<Self> {
        let count = |seed: u64| runs.iter().filter(|run| run.job.seed == seed).count();
        let seeds: Vec<u64> = row.seeds.iter().copied().filter(|&seed| count(seed) == folds.max(1)).collect();
        runs.retain(|run| seeds.contains(&run.job.seed));
        let of_seed = |seed: &u64| -> Vec<&Scored> {
            let folds = runs.iter().filter(|run| run.job.seed == *seed);
            folds.flat_map(|run| &run.evaluated.cases).collect()
        };
        let scored: Vec<Vec<&Scored>> = seeds.iter().map(of_seed).collect();
        let averages = averages(&scored)?;
        let cases = scored.first().map_or(0, Vec::len);
        let records: Vec<&RunRecord> = runs.iter().map(|run| &run.record).collect();
        Ok(Self { row, seeds, averages, cost: Cost::of(&records), cases, runs })
    }

    /// A figure by its name.
    pub fn average(&self, name: &str) -> Option<&Average> {
        self.averages.iter().find(|(key, _)| key == name).map(|(_, average)| average)
    }

    /// GED² of all samples, the last of its kind.
    pub fn ged(&self) -> Option<&Average> {
        self.averages.iter().rfind(|(name, _)| is_of(name, GED2)).map(|(_, average)| average)
    }

    /// The masks that are scored.
    pub fn masks(&self) -> impl Iterator<Item = &str> {
        let mask = |name| ScoreKey::parse(name).filter(|key| key.score.key == DSC)?.mask;
        self.averages.iter().filter_map(move |(name, _)| mask(name))
    }

    /// Steps of its trainings.
    pub fn steps(&self) -> Option<u64> {
        self.runs.iter().filter_map(|run| run.record.steps).max()
    }

    /// Raters and samples of its cases, the most there are.
    pub fn counts(&self) -> (usize, usize) {
        let scores = || self.runs.iter().flat_map(|run| &run.evaluated.cases).map(|case| &case.scores);
        (scores().map(|s| s.raters).max().unwrap_or(0), scores().map(|s| s.samples).max().unwrap_or(0))
    }
}

/// What networks of a row cost: the means over its trainings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Numbers that are learned.
    pub parameters: Option<i64>,
    /// Milliseconds of a training step.
    pub step_milliseconds: Option<f64>,
    /// Samples of one image.
    pub samples: Option<u64>,
    /// Seconds from an image to the label maps of these samples.
    pub image_seconds: Option<f64>,
    /// Samples of a second.
    pub samples_per_second: Option<f64>,
}

impl Cost {
    /// What records tell together; nothing where nothing was measured.
    fn of(records: &[&RunRecord]) -> Self {
        let ratio = |seconds: f64, count: f64| (count > 0.0 && seconds > 0.0).then(|| seconds / count);
        let sum = |value: fn(&RunRecord) -> f64| records.iter().map(|record| value(record)).sum::<f64>();
        let drawn: Vec<Drawing> = records.iter().filter_map(|record| record.drawing).collect();
        let drawing = ratio(
            drawn.iter().map(|drawing| drawing.seconds).sum(),
            drawn.iter().map(|drawing| drawing.cases as f64).sum(),
        );
        let measured: Vec<f64> = records.iter().filter_map(|record| record.network_seconds).collect();
        let network = ratio(measured.iter().sum(), measured.len() as f64);
        let samples = drawn.first().map(|drawing| drawing.samples);
        let image_seconds = network.zip(drawing).map(|(network, drawing)| network + drawing);
        Self {
            parameters: records.iter().find_map(|record| record.parameters),
            step_milliseconds: ratio(sum(|r| r.measured_seconds), sum(|r| r.measured_steps as f64))
                .map(|s| 1e3 * s),
            samples,
            image_seconds,
            samples_per_second: samples.zip(image_seconds).map(|(samples, seconds)| samples as f64 / seconds),
        }
    }
}

/// The values of one seed: by case, and by the number of the value within the case.
type Values = BTreeMap<(String, usize), Option<f64>>;

/// One figure of a row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Average {
    /// The mean over seeds of their means; nothing without a value.
    pub mean: Option<f64>,
    /// The standard error over the values, each averaged over the seeds; nothing below two values.
    pub standard_error: Option<f64>,
    /// The standard error over the means of the seeds; nothing below two seeds.
    pub seed_standard_error: Option<f64>,
    /// The lowest mean of a seed.
    pub lowest: Option<f64>,
    /// The highest mean of a seed.
    pub highest: Option<f64>,
    /// Values that at least one seed defines.
    pub values: usize,
}

/// The figures of a row by their names, in the order of tables. `seeds` has the cases of all folds of each seed.
///
/// # Errors
/// When a value is not finite.
fn averages(seeds: &[Vec<&Scored>]) -> Result<Vec<(String, Average)>> {
    let mut keys: Vec<String> = vec![];
    let mut pooled: BTreeMap<String, Vec<Values>> = BTreeMap::new();
    for (number, cases) in seeds.iter().enumerate() {
        for case in cases {
            for found in observations(&case.scores) {
                if !keys.contains(&found.key) {
                    keys.push(found.key.clone());
                }
                let of_key = pooled.entry(found.key).or_insert_with(|| vec![Values::new(); seeds.len()]);
                let values = found.values.into_iter().enumerate();
                of_key[number].extend(values.map(|(place, value)| ((case.id.clone(), place), value)));
            }
        }
    }
    let one =
        |key: String| average(pooled.get(&key).map_or(&[], Vec::as_slice)).map(|average| (key, average));
    keys.into_iter().map(one).collect()
}

/// One figure out of the values of all seeds. A value that a seed does not define is averaged over the others.
fn average(seeds: &[Values]) -> Result<Average> {
    let mut means = vec![];
    let mut sums: BTreeMap<&(String, usize), (f64, f64)> = BTreeMap::new();
    for values in seeds {
        let all: Vec<Option<f64>> = values.values().copied().collect();
        means.extend(Summary::of(&all)?.mean);
        for (place, value) in values {
            if let Some(value) = value {
                let (sum, count) = sums.entry(place).or_default();
                (*sum, *count) = (*sum + value, *count + 1.0);
            }
        }
    }
    // Values of the raters of a case are not independent.
    let mut cases: BTreeMap<&str, Vec<Option<f64>>> = BTreeMap::new();
    for ((case, _), (sum, count)) in &sums {
        cases.entry(case).or_default().push(Some(sum / count));
    }
    let over_values = Summary::of_cases(&cases.values().map(Vec::as_slice).collect::<Vec<_>>())?;
    let over_seeds = Summary::of(&means.iter().copied().map(Some).collect::<Vec<_>>())?;
    Ok(Average {
        mean: over_seeds.mean,
        standard_error: over_values.standard_error,
        seed_standard_error: over_seeds.standard_error,
        lowest: means.iter().copied().reduce(f64::min),
        highest: means.iter().copied().reduce(f64::max),
        values: over_values.count,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the cases a, b, …, one each.
    fn seed(values: &[Option<f64>]) -> Values {
        let name = |place: usize| char::from(b'a' + place as u8).to_string();
        values.iter().enumerate().map(|(place, value)| ((name(place), 0), *value)).collect()
    }

    #[test]
    fn one_seed_is_summed_up_as_ever() {
        // Mean 3; deviations -2, 0, 2; variance 4; 4 / 3 under the root.
        let found = average(&[seed(&[Some(1.0), Some(3.0), None, Some(5.0)])]).unwrap();
        assert_eq!((found.mean, found.values), (Some(3.0), 3));
        assert!((found.standard_error.unwrap() - (4.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!((found.lowest, found.highest), (Some(3.0), Some(3.0)));
        assert_eq!(found.seed_standard_error, None);
    }

    #[test]
    fn values_are_averaged_over_seeds_before_their_spread_is_taken() {
        // The seeds have the means 2 and 4. The cases have the averages 2 and 4: deviations of 1, variance 2, 2 / 2
        // under the root. Four values of their own would give √(20/3 / 4).
        let found = average(&[seed(&[Some(0.0), Some(4.0)]), seed(&[Some(4.0), Some(4.0)])]).unwrap();
        assert_eq!(
            found,
            Average {
                mean: Some(3.0),
                standard_error: Some(1.0),
                seed_standard_error: Some(1.0),
                lowest: Some(2.0),
                highest: Some(4.0),
                values: 2
            }
        );
    }

    #[test]
    fn what_one_seed_does_not_define_is_taken_from_the_other() {
        // Means 1 and (5 + 3) / 2 = 4; values (1 + 5) / 2 = 3 and 3.
        let found = average(&[seed(&[Some(1.0), None]), seed(&[Some(5.0), Some(3.0)])]).unwrap();
        assert_eq!((found.mean, found.standard_error, found.values), (Some(2.5), Some(0.0), 2));
        let none = average(&[seed(&[None]), seed(&[None])]).unwrap();
        assert_eq!((none.mean, none.standard_error, none.values), (None, None, 0));
        assert!(average(&[seed(&[Some(f64::NAN)])]).is_err());
    }

    #[test]
    fn costs_are_ratios_of_sums() {
        let drawing = Some(Drawing { cases: 2, samples: 10, seconds: 0.5 });
        let first = RunRecord {
            measured_steps: 10,
            measured_seconds: 1.0,
            network_seconds: Some(0.25),
            parameters: Some(7),
            drawing,
            ..RunRecord::default()
        };
        let second = RunRecord { measured_steps: 30, measured_seconds: 1.0, ..RunRecord::default() };
        let cost = Cost::of(&[&first, &second]);
        assert_eq!((cost.parameters, cost.step_milliseconds), (Some(7), Some(50.0)));
        // A quarter of a second for the network, another quarter for ten samples.
        assert_eq!((cost.image_seconds, cost.samples_per_second), (Some(0.5), Some(20.0)));
        assert_eq!(Cost::of(&[&RunRecord::default()]), Cost::default());
    }
}
