//! What a case contributes to each figure, means over cases with their standard errors, and both as tables.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use ssn_core::metrics::{Summary, bootstrap_interval};
use ssn_data::text::{counted, csv_text};

use crate::challenges::{ScoreSet, asked};
use crate::error::Result;
use crate::evaluation::verdict::verdict;
use crate::predictions::{Kind, ModelId, PredictionRule};
use crate::scores::{CaseScores, GroupScores, Reliability, SampleScores, ScoreConfig, SurfaceScores, mean};
use crate::unique;

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
    /// Lengths in voxels, of images that do not say how large these are.
    Voxels,
    /// Volumes in voxels.
    VoxelCount,
    /// Natural logarithms, or counts.
    Number,
}

impl Unit {
    /// A value as tables show it.
    pub fn shown(self, x: f64) -> String {
        match self {
            Self::Score => format!("{x:.3}"),
            Self::Percent => format!("{:.1}", 100.0 * x),
            Self::Millimeters | Self::Milliliters | Self::Voxels => format!("{x:.2}"),
            Self::VoxelCount => format!("{x:.0}"),
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
    /// Whether each rater has a value of its own.
    pub per_rater: bool,
    /// One value, or one per rater; none where there is no value.
    pub values: Vec<Option<f64>>,
    /// Pairs behind them of which one mask is empty, so that their distance is undefined or penalized.
    pub one_empty: usize,
}

impl Observations {
    /// The mean over the raters that have a value.
    pub fn mean(&self) -> Option<f64> {
        mean(self.values.iter().copied().flatten())
    }
}

/// All figures of a case, in the order of tables.
pub fn observations(scores: &CaseScores) -> Vec<Observations> {
    let mut all = distribution(scores);
    for group in &scores.groups {
        all.extend(of_group(group, scores.in_voxels, &scores.sets));
    }
    all
}

fn distribution(scores: &CaseScores) -> Vec<Observations> {
    let one = |key: &str, title: &str, value: Option<f64>| Observations {
        key: key.to_owned(),
        title: title.to_owned(),
        group: None,
        unit: Unit::Score,
        per_rater: false,
        values: vec![value],
        one_empty: 0,
    };
    let mut all: Vec<Observations> = scores
        .ged
        .iter()
        .map(|ged| {
            let title = format!("GED²{}, {}", scores.distance.suffix(), counted(ged.samples, "sample"));
            one(&format!("ged2_{}", ged.samples), &title, Some(ged.squared))
        })
        .collect();
    all.extend([
        one("excess_ged2", "excess GED²", scores.excess_ged_squared()),
        one("sample_diversity", "diversity of samples", Some(scores.sample_diversity)),
        one("rater_diversity", "diversity of raters", Some(scores.rater_diversity)),
        one("cross_distance", "distance of samples to raters", Some(scores.cross_distance)),
        one("hm_iou", &format!("HM-IoU, {}", counted(scores.samples, "sample")), scores.hm_iou),
        one("max_dice", "max-Dice", scores.max_dice),
        Observations {
            unit: Unit::Percent,
            ..one("empty_samples", "nearly empty samples %", scores.empty_samples)
        },
    ]);
    let optional = [
        (ScoreSet::Mmis, one("max_dice_of_samples", "max-Dice of samples", scores.max_dice_of_samples)),
        (ScoreSet::Mmis, one("matched_dice", "Dice_match", scores.matched_dice)),
        (ScoreSet::Curvas, one("curvas_ece", "ECE of raters, 50 bins", scores.challenge_ece.whole)),
        (ScoreSet::Pdacvi, one("pdacvi_ece", "ECE around marks, 50 bins", scores.challenge_ece.around_marks)),
    ];
    all.extend(optional.into_iter().filter(|(set, _)| asked(&scores.sets, *set)).map(|(_, row)| row));
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
        per_rater: true,
        values: values.iter().copied().map(Some).collect(),
        ..one(key, title, None)
    };
    all.push(per_rater("log_likelihood", "log-likelihood of raters", &voxelwise.log_likelihoods));
    all.push(per_rater("effective_samples", "effective sample size (ESS)", &voxelwise.effective_samples));
    all
}

fn of_group(group: &GroupScores, in_voxels: bool, sets: &[ScoreSet]) -> Vec<Observations> {
    let row = |key: &str, title: &str, unit, values| Observations {
        key: format!("{key} {}", group.name),
        title: title.to_owned(),
        group: Some(group.name.clone()),
        unit,
        per_rater: true,
        values,
        one_empty: 0,
    };
    let of_case = |key: &str, title: &str, unit, value| Observations {
        per_rater: false,
        ..row(key, title, unit, vec![value])
    };
    let samples = |value: fn(&SampleScores) -> Option<f64>| group.samples.iter().map(value).collect();
    let (percent, volumes) = (Unit::Percent, &group.volumes);
    let [(mm, length), (ml, volume)] = match in_voxels {
        false => [("mm", Unit::Millimeters), ("ml", Unit::Milliliters)],
        true => [("px", Unit::Voxels), ("px", Unit::VoxelCount)],
    };
    let mut all = vec![
        row("dsc", "DSC %", percent, group.dsc.clone()),
        row("dsc_nod", "DSC_nod %", percent, group.dsc_nod.clone()),
        row("sample_dsc", "DSC of samples %", percent, samples(|s| s.mean)),
        row("sample_dsc_05", "… 5 % quantile", percent, samples(|s| s.quantiles[0])),
        row("sample_dsc_50", "… median", percent, samples(|s| s.quantiles[1])),
        row("sample_dsc_95", "… 95 % quantile", percent, samples(|s| s.quantiles[2])),
    ];
    let better = samples(|s| s.better_than_prediction);
    all.push(row("better_than_prediction", "samples above the prediction %", percent, better));
    for (key, of, surface) in [("", "", &group.surface), ("sample_", " of samples", &group.sample_surface)] {
        let Some(surface) = surface else { continue };
        let values = |value: fn(&SurfaceScores) -> Option<f64>| surface.iter().map(value).collect();
        let one_empty = surface.iter().map(|scores| scores.one_empty).sum();
        let distance = |name: &str, title: &str, values| Observations {
            one_empty,
            ..row(&format!("{key}{name}"), &format!("{title}{of}, {mm}"), length, values)
        };
        all.push(distance("hd95", "HD95", values(|s| s.hd95)));
        all.push(distance("assd", "ASSD", values(|s| s.assd)));
        all.push(row(&format!("{key}nsd"), &format!("surface Dice{of} %"), percent, values(|s| s.nsd)));
    }
    if let Some(scores) = &group.challenges {
        let crps = if in_voxels { Unit::Voxels } else { Unit::Milliliters };
        use ScoreSet::{Consensus, Curvas, Mmis, Pdacvi, Qubiq};
        let (crps_title, samples_title) =
            (format!("volume CRPS, {ml}"), format!("volume CRPS of samples, {ml}"));
        let rows = [
            (Curvas, of_case("consensus_dice", "consensus Dice %", percent, scores.consensus_dice)),
            (Curvas, of_case("confidence", "confidence %", percent, scores.confidence)),
            (Qubiq, of_case("soft_dice_qubiq", "soft Dice, QUBIQ %", percent, scores.soft_dice_qubiq)),
            (Pdacvi, of_case("soft_dice_pdacvi", "soft Dice, PDACVI %", percent, scores.soft_dice_pdacvi)),
            (Mmis, of_case("soft_dice_mmis", "soft Dice, MMIS %", percent, scores.soft_dice_mmis)),
            (Curvas, of_case("volume_crps", &crps_title, crps, scores.volume_crps)),
            (Curvas, of_case("sample_volume_crps", &samples_title, crps, scores.sample_volume_crps)),
            (Consensus, of_case("majority_dice", "Dice with the majority %", percent, scores.majority_dice)),
            (Consensus, of_case("staple_dice", "Dice with STAPLE %", percent, scores.staple_dice)),
        ];
        // The CRPS belongs to both challenges.
        let wanted =
            |set, row: &Observations| asked(sets, set) || asked(sets, Pdacvi) && row.key.contains("crps");
        all.extend(rows.into_iter().filter(|(set, row)| wanted(*set, row)).map(|(_, row)| row));
    }
    all.extend([
        of_case("volume", &format!("volume of the prediction, {ml}"), volume, Some(volumes.prediction)),
        of_case("sample_volume_05", "… of samples, 5 % quantile", volume, volumes.samples[0]),
        of_case("sample_volume_50", "… of samples, median", volume, volumes.samples[1]),
        of_case("sample_volume_95", "… of samples, 95 % quantile", volume, volumes.samples[2]),
        row("rater_volume", "… of raters", volume, volumes.raters.iter().copied().map(Some).collect()),
    ]);
    all
}

/// A case with its scores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scored {
    /// The id of the case.
    pub id: String,
    /// What its raters are called.
    #[serde(default)]
    pub rater_names: Vec<String>,
    /// Its scores.
    pub scores: CaseScores,
}

/// What an evaluation is of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The model.
    pub model: ModelId,
    /// How it describes its uncertainty.
    pub kind: Kind,
    /// The dataset.
    pub dataset: String,
    /// The part of the dataset.
    pub split: String,
    /// What was scored.
    pub scores: ScoreConfig,
    /// Whether figures have bootstrap intervals.
    #[serde(default)]
    pub bootstrap: bool,
    /// Whether there is one label map of each case and nothing else.
    #[serde(default)]
    pub labels_only: bool,
}

/// The level of bootstrap intervals.
const INTERVAL: f64 = 0.95;

/// An evaluation: what `summary.json` holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// What it is of.
    pub settings: Settings,
    /// Cases that were scored.
    pub cases: usize,
    /// Cases of the part without a prediction.
    pub missing: Vec<String>,
    /// The figures, in the order of the table.
    pub figures: Vec<Figure>,
    /// What they mean, in words.
    #[serde(default)]
    pub verdict: Vec<String>,
    /// The bins of the calibration errors over all cases; none without probabilities, and in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reliability: Option<Reliability>,
    /// Dice and IoU over all cases and masks, as nnU-Net's `summary.json` has them.
    #[serde(default)]
    pub foreground_mean: Overlaps,
    /// Dice and IoU of each case, as nnU-Net's `summary.json` has them.
    #[serde(default)]
    pub metric_per_case: Vec<CaseOverlaps>,
}

/// Overlaps of prediction and raters, by the names of nnU-Net; means over raters.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Overlaps {
    /// 2 |A ∩ B| / (|A| + |B|).
    pub dice: Option<f64>,
    /// |A ∩ B| / |A ∪ B|.
    #[serde(rename = "IoU")]
    pub iou: Option<f64>,
}

/// The overlaps of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseOverlaps {
    /// The id of the case.
    pub case: String,
    /// By the number of the class, or the name of a mask that is of several.
    pub metrics: BTreeMap<String, Overlaps>,
}

impl Overlaps {
    fn of(dice: &[Option<f64>]) -> Self {
        let dice = || dice.iter().copied().flatten();
        Self { dice: mean(dice()), iou: mean(dice().map(|dice| dice / (2.0 - dice))) }
    }

    fn of_case(case: &Scored, classes: usize) -> CaseOverlaps {
        let name = |(place, group): (usize, &GroupScores)| {
            let name = if place < classes { (place + 1).to_string() } else { group.name.clone() };
            (name, Self::of(&group.dsc))
        };
        CaseOverlaps {
            case: case.id.clone(),
            metrics: case.scores.groups.iter().enumerate().map(name).collect(),
        }
    }
}

/// One figure over all cases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its name in files.
    pub key: String,
    /// Its name in tables.
    pub title: String,
    /// The mask that it is about.
    pub group: Option<String>,
    /// How it is shown.
    pub unit: Unit,
    /// The mean over all values; none without one.
    pub mean: Option<f64>,
    /// Its standard error; none below two values.
    pub standard_error: Option<f64>,
    /// The values: one per case, or one per case and rater.
    pub values: usize,
    /// Those that are undefined and left out.
    pub undefined: usize,
    /// Cases that have a value.
    pub cases: usize,
    /// The 95 % bootstrap interval of the mean over cases, if it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Pairs of which one mask is empty, so that their distance is undefined or penalized.
    #[serde(default)]
    pub one_empty: usize,
}

impl Evaluation {
    /// Pools the values of all cases, figure by figure.
    pub fn new(settings: Settings, cases: &[Scored], missing: Vec<String>) -> Result<Self> {
        // Each figure with the values of each case.
        let mut pooled: Vec<(Observations, Vec<Vec<Option<f64>>>)> = vec![];
        for case in cases {
            for mut found in observations(&case.scores) {
                let values = std::mem::take(&mut found.values);
                match pooled.iter_mut().find(|(figure, _)| figure.key == found.key) {
                    Some((figure, cases)) => {
                        figure.one_empty += found.one_empty;
                        cases.push(values);
                    }
                    None => pooled.push((found, vec![values])),
                }
            }
        }
        let figure =
            |(Observations { key, title, group, unit, one_empty, .. }, cases): (_, Vec<Vec<_>>)| -> Result<Figure> {
                let of_cases: Vec<&[Option<f64>]> = cases.iter().map(Vec::as_slice).collect();
                let Summary { mean, standard_error, count, skipped } = Summary::of_cases(&of_cases)?;
                let interval = match settings.bootstrap {
                    true => bootstrap_interval(&of_cases, INTERVAL, settings.scores.seed)?,
                    false => None,
                };
                Ok(Figure {
                    key,
                    title,
                    group,
                    unit,
                    mean,
                    standard_error,
                    values: count,
                    undefined: skipped,
                    cases: cases.iter().filter(|values| values.iter().any(Option::is_some)).count(),
                    interval,
                    one_empty,
                })
            };
        let figures = pooled.into_iter().map(figure).collect::<Result<_>>()?;
        let mut verdict = verdict(settings.kind, cases);
        if settings.labels_only {
            let missing = "One label map per case has no probabilities: calibration, Brier score, NCC and soft scores need \
                           --samples or --probabilities.";
            verdict.push(missing.to_owned());
        }
        // Without groups of the user, masks are the classes in their order, and then all of them.
        let groups = cases.first().map_or(0, |case| case.scores.groups.len());
        let classes = match settings.scores.groups.is_empty() {
            true if groups > 1 => groups - 1,
            true => groups,
            false => 0,
        };
        let metric_per_case: Vec<_> = cases.iter().map(|case| Overlaps::of_case(case, classes)).collect();
        let of_classes = |case: &CaseOverlaps| {
            case.metrics
                .values()
                .take(if classes == 0 { usize::MAX } else { classes })
                .copied()
                .collect::<Vec<_>>()
        };
        let all: Vec<Overlaps> = metric_per_case.iter().flat_map(of_classes).collect();
        let over = |value: fn(&Overlaps) -> Option<f64>| mean(all.iter().filter_map(value));
        let foreground_mean = Overlaps { dice: over(|one| one.dice), iou: over(|one| one.iou) };
        let voxelwise = cases.iter().filter_map(|case| case.scores.voxelwise.as_ref());
        let reliability = Reliability::pooled(voxelwise.filter_map(|scores| scores.reliability.as_ref()));
        let cases = cases.len();
        Ok(Self { settings, cases, missing, figures, verdict, reliability, foreground_mean, metric_per_case })
    }

    /// A figure by its name in files.
    pub fn figure(&self, key: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.key == key)
    }
}

/// Words in tables that not everybody knows.
const WORDS: [(&str, &str); 11] = [
    ("GED²", "squared generalized energy distance of samples and raters, with 1 − IoU; lower is better"),
    ("HM-IoU", "mean IoU of samples and raters matched in the best way"),
    ("DSC_nod", "DSC where the rater marked something"),
    ("S-NCC", "correlation of the spread of samples with their distance to raters"),
    ("ECE", "expected calibration error, the mean gap of probability and frequency"),
    ("ESS", "samples that count in the log-likelihood; near 1, one sample explains the rater alone"),
    (
        "one empty",
        "pairs of which one mask is empty: their distance is undefined, or with --empty-penalty the diagonal of the image",
    ),
    ("consensus Dice", "Dice with what all raters marked, without the voxels on which they disagree"),
    ("soft Dice", "mean Dice of probabilities and shares of raters above thresholds"),
    ("CRPS", "continuous ranked probability score of volumes; lower is better"),
    ("NCC of variances", "correlation of the variance of samples with that of raters"),
];

impl fmt::Display for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = &self.settings;
        let of_all = match self.missing.len() {
            0 => String::new(),
            missing => format!(" of {}", self.cases + missing),
        };
        let samples = match (settings.kind, settings.scores.categorical) {
            (Kind::Stochastic | Kind::Sampled, _) => {
                let ScoreConfig { samples, temperature, diagonal_noise, .. } = settings.scores;
                let hot =
                    if temperature == 1.0 { String::new() } else { format!(" at temperature {temperature}") };
                let smooth = if diagonal_noise { "" } else { " without the noise of single voxels" };
                let marginal = match settings.scores.prediction {
                    PredictionRule::Mean => "",
                    PredictionRule::Marginal => ", marginal prediction",
                };
                format!("{samples} samples{hot}{smooth}{marginal}")
            }
            (Kind::Deterministic, false) => "its prediction as the only sample".to_owned(),
            (Kind::Deterministic, true) => {
                format!("{} samples of independent voxels", settings.scores.samples)
            }
        };
        writeln!(
            f,
            "{} on {}: {}{of_all} cases, {samples}, seed {}\n",
            settings.model.name, settings.split, self.cases, settings.scores.seed
        )?;
        let interval = if settings.bootstrap { "   95 % interval" } else { "" };
        writeln!(f, "{:<34}{:>10}   {:<10}{:>8}{:>8}{interval}", "", "mean", "± s.e.", "values", "cases")?;
        let mut group = &None;
        for figure in &self.figures {
            if figure.group != *group {
                writeln!(f, "\n{}", figure.group.as_deref().unwrap_or_default())?;
                group = &figure.group;
            }
            row(f, figure)?;
        }
        let words = WORDS.iter().filter(|(word, _)| {
            self.figures
                .iter()
                .any(|figure| figure.title.contains(word) || *word == "one empty" && figure.one_empty > 0)
        });
        writeln!(f)?;
        for (word, meaning) in words {
            writeln!(f, "{word}: {meaning}")?;
        }
        writeln!(f)?;
        for line in &self.verdict {
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}

/// How many distances between surfaces have an empty mask: a network that marks nothing must not profit from that.
fn one_empty(figure: &Figure) -> String {
    match figure.one_empty {
        0 => String::new(),
        pairs => format!("   {pairs} with one empty"),
    }
}

fn row(f: &mut fmt::Formatter<'_>, figure: &Figure) -> fmt::Result {
    let shown =
        |value: Option<f64>, none: &str| value.map_or(none.to_owned(), |value| figure.unit.shown(value));
    let (mean, error) = (shown(figure.mean, "–"), shown(figure.standard_error, ""));
    let error = if error.is_empty() { error } else { format!("± {error}") };
    let interval = figure.interval.map(|ends| ends.map(|end| figure.unit.shown(end)));
    let interval = interval.map_or(String::new(), |[low, high]| format!("   {low} … {high}"));
    let undefined = one_empty(figure);
    let (title, values, cases) = (&figure.title, figure.values, figure.cases);
    writeln!(f, "{title:<34}{mean:>10}   {error:<10}{values:>8}{cases:>8}{interval}{undefined}")
}

/// A row per case: the mean over its raters of every figure, empty where there is none.
pub fn cases_csv(cases: &[Scored]) -> String {
    let rows: Vec<_> = cases.iter().map(|case| observations(&case.scores)).collect();
    let keys = keys(&rows, |_| true);
    let mut table = vec![["id", "samples", "raters"].map(str::to_owned).to_vec()];
    table[0].extend_from_slice(&keys);
    for (case, row) in cases.iter().zip(&rows) {
        let about = [case.id.clone(), case.scores.samples.to_string(), case.scores.raters.to_string()];
        let cells = keys.iter().map(|key| cell(row, key, Observations::mean));
        table.push(about.into_iter().chain(cells).collect());
    }
    csv_text(&table)
}

/// A row per case and rater, with the figures that each rater has by itself.
pub fn raters_csv(cases: &[Scored]) -> String {
    let rows: Vec<_> = cases.iter().map(|case| observations(&case.scores)).collect();
    let keys = keys(&rows, |found| found.per_rater);
    let mut table = vec![["id", "rater"].map(str::to_owned).to_vec()];
    table[0].extend_from_slice(&keys);
    for (case, row) in cases.iter().zip(&rows) {
        for (place, name) in case.rater_names.iter().enumerate() {
            let value = |found: &Observations| found.values.get(place).copied().flatten();
            let cells = keys.iter().map(|key| cell(row, key, value));
            table.push([case.id.clone(), name.clone()].into_iter().chain(cells).collect());
        }
    }
    csv_text(&table)
}

/// The figures of all cases that `wanted` takes, in the order of tables.
fn keys(rows: &[Vec<Observations>], wanted: impl Fn(&Observations) -> bool) -> Vec<String> {
    unique(rows.iter().flatten().filter(|found| wanted(found)).map(|found| found.key.clone()))
}

/// A figure of a case as text, empty where there is none.
fn cell(row: &[Observations], key: &str, value: impl Fn(&Observations) -> Option<f64>) -> String {
    let value = row.iter().find(|found| found.key == key).and_then(value);
    value.map_or(String::new(), |value| value.to_string())
}
