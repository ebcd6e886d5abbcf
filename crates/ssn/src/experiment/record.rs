//! What is known of one training beside its files: that it is over, and what it cost. Times are measured once, when
//! the work is done, and kept.

use std::path::Path;

use serde::{Deserialize, Serialize};
use ssn_io::{Limits, read_bytes};
use ssn_train::checkpoint::BestValidation;

use crate::error::{Error, ErrorKind, Result};
use crate::work_folder::{make_folder, write_file};

/// The record of one training.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// Steps of the training, once it is over.
    pub steps: Option<u64>,
    /// The best validation of the training.
    pub best_validation: Option<BestValidation>,
    /// Steps that were measured.
    pub measured_steps: u64,
    /// Seconds that they took.
    pub measured_seconds: f64,
    /// Whether all cases are predicted.
    pub is_predicted: bool,
    /// Whether they are scored, so that their scores need only be read.
    pub is_scored: bool,
    /// Numbers of the network that were learned.
    pub parameters: Option<i64>,
    /// Seconds of the network for one case.
    pub network_seconds: Option<f64>,
    /// How long samples take.
    pub drawing: Option<Drawing>,
}

/// How long it took to draw samples of some cases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Drawing {
    /// The cases.
    pub cases: usize,
    /// Samples of each.
    pub samples: u64,
    /// Seconds for all of them.
    pub seconds: f64,
}

impl Record {
    /// The record in a file; an empty one if there is none that can be read.
    pub fn read(path: &Path) -> Self {
        let bytes = read_bytes(path, &Limits::default()).ok();
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Writes the record.
    pub fn write(&self, path: &Path) -> Result<()> {
        make_folder(path.parent().unwrap_or(Path::new("")))?;
        let text =
            serde_json::to_string_pretty(self).map_err(|error| Error::new(ErrorKind::Internal, error))?;
        write_file(path, (text + "\n").as_bytes())
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
    pub fn of(records: &[Record]) -> Self {
        let ratio = |seconds: f64, count: f64| (count > 0.0 && seconds > 0.0).then(|| seconds / count);
        let sum = |value: fn(&Record) -> f64| records.iter().map(value).sum::<f64>();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_ratios_of_sums() {
        let drawing = Some(Drawing { cases: 2, samples: 10, seconds: 0.5 });
        let first = Record {
            measured_steps: 10,
            measured_seconds: 1.0,
            network_seconds: Some(0.25),
            parameters: Some(7),
            drawing,
            ..Record::default()
        };
        let second = Record { measured_steps: 30, measured_seconds: 1.0, ..Record::default() };
        let cost = Cost::of(&[first, second]);
        assert_eq!((cost.parameters, cost.step_milliseconds), (Some(7), Some(50.0)));
        // A quarter of a second for the network, another quarter for ten samples.
        assert_eq!((cost.image_seconds, cost.samples_per_second), (Some(0.5), Some(20.0)));
        assert_eq!(Cost::of(&[Record::default()]), Cost::default());
    }
}
