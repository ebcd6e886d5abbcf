//! Several networks as one: the mixture of what they say about a case.

use sha2::{Digest, Sha256};
use ssn_core::{LabelMap, Steering};
use ssn_io::hex::hex;
use ssn_io::{Error, Result};

use super::distribution_file::{CaseDescription, DistributionFile, ModelId, PredictionKind};
use super::draw::{SampleSource, summarize};

/// Probabilities below this are stored as this one, so that their logarithm is finite.
const LEAST: f32 = 1e-7;

/// The logarithm of a probability as files of samples store it.
pub(crate) fn stored_logarithm(probability: f32) -> f32 {
    probability.max(LEAST).ln()
}

/// The mixture of the distributions of several networks, each with the same weight, as samples: sample i is sample ⌊i / k⌋ of
/// member i mod k. A deterministic member gives its prediction.
///
/// # Errors
/// No member, and members that differ in image, region or classes.
pub fn mixture(members: &[DistributionFile], samples: usize) -> Result<DistributionFile> {
    let Some(first) = members.first() else {
        return Err(Error::mismatch("an ensemble has at least one network"));
    };
    let same = |one: &CaseDescription| {
        let about = first.description();
        (one.size, one.network_grid, &one.region, &one.classes)
            == (about.size, about.network_grid, &about.region, &about.classes)
    };
    if let Some(other) = members.iter().map(DistributionFile::description).find(|one| !same(one)) {
        return Err(Error::mismatch(format!(
            "{} and {} differ in image, region or classes, so that they cannot be an ensemble",
            first.description().model.name,
            other.model.name
        )));
    }
    let (k, v) = (members.len(), first.description().region.voxels());
    let (mut labels, mut probabilities) = (vec![0u8; samples * v], vec![0f32; first.labels() * v]);
    for (number, member) in members.iter().enumerate() {
        let own = (samples + k - 1 - number) / k;
        for (place, map) in drawn(member, own)?.iter().enumerate() {
            let at = (place * k + number) * v;
            labels[at..at + v].copy_from_slice(map.labels());
        }
        let summary = summarize(member, 0, &Steering::default(), 0..own.max(1) as u64, &[])?;
        let of_member = summary.mean_probabilities()?;
        probabilities.iter_mut().zip(&of_member).for_each(|(sum, p)| *sum += p / k as f32);
    }
    let mean: Vec<f32> = probabilities.into_iter().map(stored_logarithm).collect();
    let models: Vec<&ModelId> = members.iter().map(|member| &member.description().model).collect();
    let description = CaseDescription {
        kind: PredictionKind::Sampled,
        model: ensemble_id(&models),
        ..first.description().clone()
    };
    DistributionFile::sampled(description, mean, labels, first.mask().map(<[u8]>::to_vec))
}

/// The first samples of a member on the region of its file.
fn drawn(member: &DistributionFile, count: usize) -> Result<Vec<LabelMap>> {
    match member.description().kind {
        _ if count == 0 => Ok(vec![]),
        PredictionKind::Deterministic => Ok(vec![member.prediction()?; count]),
        PredictionKind::Stochastic | PredictionKind::Sampled => {
            SampleSource::new(member, 0, &Steering::default())?.labels(0..count as u64)
        }
    }
}

/// How an ensemble is called in files.
pub fn ensemble_id(members: &[&ModelId]) -> ModelId {
    if let [alone] = members {
        return (*alone).clone();
    }
    let mut digest = Sha256::new();
    members.iter().for_each(|member| digest.update(member.sha256.as_bytes()));
    let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    ModelId { sha256: hex(&digest.finalize()), name: format!("ensemble of {}", names.join(" and ")) }
}
