//! The measured figures of one case: volumes, and distances.

use crate::error::Result;
use crate::figures::histogram::{Volumes, volume_figure};
use crate::figures::matrix::distance_figure;
use ssn_core::metrics::{ClassGroup, PairwiseDistances, foreground_distance};
use ssn_core::{BitPlanes, CoreError};

use super::choose::chain;
use super::material::Subject;

/// A voxel in cubic millimeters, a thousand of which make a milliliter.
const CUBIC_MILLIMETRES: f64 = 1000.0;

/// A case as planes of bits, and the distances between its maps.
pub(super) struct Measured {
    raters: Vec<BitPlanes>,
    samples: Vec<BitPlanes>,
    prediction: BitPlanes,
    /// Between samples and raters; without raters, the first sample stands in for them.
    pub(super) distances: PairwiseDistances,
}

impl Measured {
    /// Measures a case.
    pub(super) fn of(subject: &Subject) -> Result<Self, CoreError> {
        let raters: Vec<BitPlanes> = subject.raters.iter().map(BitPlanes::new).collect();
        let samples: Vec<BitPlanes> = subject.samples.iter().map(BitPlanes::new).collect();
        let others = if raters.is_empty() { &samples[..1] } else { &raters };
        let distances = PairwiseDistances::new(&samples, others)?;
        Ok(Self { raters, samples, prediction: BitPlanes::new(&subject.prediction), distances })
    }

    /// A sample that differs from the prediction more than most do, but is no extreme: the one whose distance has a
    /// quarter of the samples above it.
    pub(super) fn lively(&self) -> Result<usize, CoreError> {
        let mut order = vec![];
        for (number, sample) in self.samples.iter().enumerate() {
            order.push((foreground_distance(&self.prediction, sample)?, number));
        }
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(order[order.len() * 3 / 4].1)
    }

    /// Histograms of the volume of every foreground class.
    pub(super) fn volumes(&self, subject: &Subject) -> String {
        let about = subject.file.description();
        let (unit, scale) = match about.size[0] {
            1 => ("pixels", 1.0),
            _ => ("ml", about.geometry.spacing.iter().product::<f64>() / CUBIC_MILLIMETRES),
        };
        let groups = ClassGroup::each(about.classes.len());
        let classes: Vec<Volumes> = about.classes[1..]
            .iter()
            .zip(&groups)
            .map(|(name, group)| {
                let volume = |planes: &BitPlanes| group.volume(planes) as f64 * scale;
                Volumes {
                    name: name.clone(),
                    samples: self.samples.iter().map(volume).collect(),
                    raters: self.raters.iter().map(volume).collect(),
                    prediction: volume(&self.prediction),
                }
            })
            .collect();
        volume_figure(&format!("Volumes, {}", about.case), unit, &classes)
    }

    /// The heat map of distances, raters first; samples in an order in which neighbors are alike.
    pub(super) fn matrix(&self, id: &str) -> String {
        let (distances, raters, order) = (&self.distances, self.raters.len(), chain(&self.distances));
        let of_rater = |rater: usize| {
            let to_samples = order.iter().map(|&sample| distances.sample_to_raters(sample)[rater]);
            distances.rater_to_raters(rater).iter().copied().chain(to_samples).collect::<Vec<f64>>()
        };
        let of_sample = |&sample: &usize| {
            let to_raters = distances.sample_to_raters(sample)[..raters].iter().copied();
            let row = distances.sample_to_samples(sample);
            to_raters.chain(order.iter().map(|&other| row[other])).collect::<Vec<f64>>()
        };
        let rows: Vec<Vec<f64>> = (0..raters).map(of_rater).chain(order.iter().map(of_sample)).collect();
        distance_figure(&format!("Distances, {id}"), raters, &rows)
    }
}
