//! What a case contributes to each figure: one value, or one per rater, as the paper pools them.

use serde::{Deserialize, Serialize};

use crate::scores::{CaseScores, GroupScores, SampleScores, SurfaceScores};

/// How a figure is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A score, with three digits.
    Score,
    /// A share, shown in per cent.
    Percent,
    /// Millimeters.
    Millimeters,
    /// Milliliters.
    Milliliters,
    /// Natural logarithms, or counts.
    Number,
}

impl Unit {
    /// A value as tables show it.
    pub fn shown(self, x: f64) -> String {
        match self {
            Self::Score => format!("{x:.3}"),
            Self::Percent => format!("{:.1}", 100.0 * x),
            Self::Millimeters | Self::Milliliters => format!("{x:.2}"),
            Self::Number => format!("{x:.1}"),
        }
    }
}

/// The values of one case for one figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Observations {
    /// The column in `cases.csv` and the name in `summary.json`.
    pub key: String,
    /// The row in tables.
    pub title: String,
    /// The mask that it is about.
    pub group: Option<String>,
    /// How it is shown.
    pub unit: Unit,
    /// One value, or one per rater; none where there is no value.
    pub values: Vec<Option<f64>>,
}

/// All figures of a case, in the order of tables.
pub fn observations(scores: &CaseScores) -> Vec<Observations> {
    let mut all = distribution(scores);
    for group in &scores.groups {
        all.extend(of_group(group));
    }
    all
}

/// Figures of the whole distribution.
fn distribution(scores: &CaseScores) -> Vec<Observations> {
    let one = |key: &str, title: &str, value: Option<f64>| Observations {
        key: key.to_owned(),
        title: title.to_owned(),
        group: None,
        unit: Unit::Score,
        values: vec![value],
    };
    let mut all: Vec<Observations> = scores
        .ged
        .iter()
        .map(|ged| {
            let plural = if ged.samples == 1 { "" } else { "s" };
            let title = format!("GED², {} sample{plural}", ged.samples);
            one(&format!("ged2_{}", ged.samples), &title, Some(ged.squared))
        })
        .collect();
    let m = scores.samples;
    all.extend([
        one("sample_diversity", "diversity of samples", Some(scores.sample_diversity)),
        one("rater_diversity", "diversity of raters", Some(scores.rater_diversity)),
        one("cross_distance", "distance of samples to raters", Some(scores.cross_distance)),
        one("hm_iou", &format!("HM-IoU, {m} sample{}", if m == 1 { "" } else { "s" }), scores.hm_iou),
        one("max_dice", "max-Dice", scores.max_dice),
    ]);
    let Some(voxelwise) = &scores.voxelwise else { return all };
    all.extend([
        one("variance_ncc", "NCC of variances", voxelwise.variance_ncc),
        one("s_ncc", "S-NCC", voxelwise.s_ncc),
        one("ece", "ECE", Some(voxelwise.ece)),
        one("foreground_ece", "ECE of the foreground", Some(voxelwise.foreground_ece)),
        one("brier", "Brier score", Some(voxelwise.brier)),
    ]);
    let per_rater = |key, title, values: &[f64]| Observations {
        unit: Unit::Number,
        values: values.iter().copied().map(Some).collect(),
        ..one(key, title, None)
    };
    all.push(per_rater("log_likelihood", "log-likelihood of raters", &voxelwise.log_likelihoods));
    all.push(per_rater("effective_samples", "effective sample size (ESS)", &voxelwise.effective_samples));
    all
}

/// Figures of one mask.
fn of_group(group: &GroupScores) -> Vec<Observations> {
    let row = |key: &str, title: &str, unit, values| Observations {
        key: format!("{key} {}", group.name),
        title: title.to_owned(),
        group: Some(group.name.clone()),
        unit,
        values,
    };
    let samples = |value: fn(&SampleScores) -> Option<f64>| group.samples.iter().map(value).collect();
    let mut all = vec![
        row("dsc", "DSC %", Unit::Percent, group.dsc.clone()),
        row("dsc_nod", "DSC_nod %", Unit::Percent, group.dsc_nod.clone()),
        row("sample_dsc", "DSC of samples %", Unit::Percent, samples(|s| s.mean)),
        row("sample_dsc_05", "… 5 % quantile", Unit::Percent, samples(|s| s.quantiles[0])),
        row("sample_dsc_50", "… median", Unit::Percent, samples(|s| s.quantiles[1])),
        row("sample_dsc_95", "… 95 % quantile", Unit::Percent, samples(|s| s.quantiles[2])),
        row(
            "better_than_prediction",
            "samples above the prediction %",
            Unit::Percent,
            samples(|s| s.better_than_prediction),
        ),
    ];
    if let Some(surface) = &group.surface {
        let values = |value: fn(&SurfaceScores) -> Option<f64>| surface.iter().map(value).collect();
        all.extend([
            row("hd95", "HD95, mm", Unit::Millimeters, values(|s| s.hd95)),
            row("assd", "ASSD, mm", Unit::Millimeters, values(|s| s.assd)),
            row("nsd", "surface Dice %", Unit::Percent, values(|s| s.nsd)),
        ]);
    }
    let volumes = &group.volumes;
    let raters = volumes.raters.iter().copied().map(Some).collect();
    all.extend([
        row("volume", "volume of the prediction, ml", Unit::Milliliters, vec![Some(volumes.prediction)]),
        row("sample_volume_05", "… of samples, 5 % quantile", Unit::Milliliters, vec![volumes.samples[0]]),
        row("sample_volume_50", "… of samples, median", Unit::Milliliters, vec![volumes.samples[1]]),
        row("sample_volume_95", "… of samples, 95 % quantile", Unit::Milliliters, vec![volumes.samples[2]]),
        row("rater_volume", "… of raters", Unit::Milliliters, raters),
    ]);
    all
}
