//! What a case contributes to each figure, means over cases with their standard errors, and both as tables.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use ssn_core::metrics::{Summary, bootstrap_interval};
use ssn_data::text::csv_text;
use ssn_io::Result;

use crate::case_scores::{CaseScores, CaseValues, observations};
use crate::evaluation::verdict::verdict;
use crate::means::mean;
use crate::predictions::{ModelId, PredictionKind, PredictionRule};
use crate::registry::{DSC, GLOSSARY, ONE_EMPTY, ScoreDef, ScoreKey, Unit, is_of};
use crate::reliability::Reliability;
use crate::score_config::ScoreConfig;
use crate::unique;

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
pub struct EvaluationSettings {
    /// The model.
    pub model: ModelId,
    /// How it describes its uncertainty.
    pub kind: PredictionKind,
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
    pub settings: EvaluationSettings,
    /// Cases that were scored.
    pub cases: usize,
    /// Cases of the part without a prediction.
    pub missing: Vec<String>,
    /// The figures, in the order of the table.
    pub figures: Vec<ScoreMean>,
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
        let name = |(place, mask): (usize, &String)| {
            let name = if place < classes { (place + 1).to_string() } else { mask.clone() };
            (name, Self::of(case.scores.of_mask(DSC, mask)))
        };
        CaseOverlaps {
            case: case.id.clone(),
            metrics: case.scores.masks.iter().enumerate().map(name).collect(),
        }
    }
}

/// One figure over all cases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScoreMean {
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
    pub fn new(settings: EvaluationSettings, cases: &[Scored], missing: Vec<String>) -> Result<Self> {
        // Each figure with the values of each case.
        let mut pooled: Vec<(CaseValues, Vec<Vec<Option<f64>>>)> = vec![];
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
            |(CaseValues { key, title, group, unit, one_empty, .. }, cases): (_, Vec<Vec<_>>)| -> Result<ScoreMean> {
                let of_cases: Vec<&[Option<f64>]> = cases.iter().map(Vec::as_slice).collect();
                let Summary { mean, standard_error, count, skipped } = Summary::of_cases(&of_cases)?;
                let interval = match settings.bootstrap {
                    true => bootstrap_interval(&of_cases, INTERVAL, settings.scores.seed)?,
                    false => None,
                };
                Ok(ScoreMean {
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
        let groups = cases.first().map_or(0, |case| case.scores.masks.len());
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
        let reliability =
            Reliability::pooled(cases.iter().filter_map(|case| case.scores.reliability.as_ref()));
        let cases = cases.len();
        Ok(Self { settings, cases, missing, figures, verdict, reliability, foreground_mean, metric_per_case })
    }

    /// Returns a figure by its name in files.
    pub fn figure(&self, name: &str) -> Option<&ScoreMean> {
        self.figures.iter().find(|figure| figure.key == name)
    }

    /// Returns the last figure of a score: GED² of all samples, Dice of all classes together.
    pub fn last(&self, key: &str) -> Option<&ScoreMean> {
        self.figures.iter().rfind(|figure| figure.is(key))
    }

    /// Returns the figure of a score of a mask.
    pub fn of_mask(&self, key: &str, mask: &str) -> Option<&ScoreMean> {
        self.figures.iter().find(|figure| figure.is(key) && figure.group.as_deref() == Some(mask))
    }
}

impl ScoreMean {
    /// Returns the score that it is of; nothing in a file of another version whose score is unknown.
    pub fn score(&self) -> Option<&'static ScoreDef> {
        ScoreKey::parse(&self.key).map(|key| key.score)
    }

    /// Returns `true` if it is of the score with this key, at any number of samples and of any mask.
    pub fn is(&self, key: &str) -> bool {
        is_of(&self.key, key)
    }
}

impl fmt::Display for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = &self.settings;
        let of_all = match self.missing.len() {
            0 => String::new(),
            missing => format!(" of {}", self.cases + missing),
        };
        let samples = match (settings.kind, settings.scores.categorical) {
            (PredictionKind::Stochastic | PredictionKind::Sampled, _) => {
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
            (PredictionKind::Deterministic, false) => "its prediction as the only sample".to_owned(),
            (PredictionKind::Deterministic, true) => {
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
        let words = GLOSSARY.iter().filter(|(word, _)| {
            let explains = |figure: &ScoreMean| figure.score().is_some_and(|score| score.term == *word);
            self.figures.iter().any(|figure| explains(figure) || *word == ONE_EMPTY && figure.one_empty > 0)
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
fn one_empty(figure: &ScoreMean) -> String {
    match figure.one_empty {
        0 => String::new(),
        pairs => format!("   {pairs} with one empty"),
    }
}

fn row(f: &mut fmt::Formatter<'_>, figure: &ScoreMean) -> fmt::Result {
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
        let cells = keys.iter().map(|key| cell(row, key, CaseValues::mean));
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
            let value = |found: &CaseValues| found.values.get(place).copied().flatten();
            let cells = keys.iter().map(|key| cell(row, key, value));
            table.push([case.id.clone(), name.clone()].into_iter().chain(cells).collect());
        }
    }
    csv_text(&table)
}

/// The figures of all cases that `wanted` takes, in the order of tables.
fn keys(rows: &[Vec<CaseValues>], wanted: impl Fn(&CaseValues) -> bool) -> Vec<String> {
    unique(rows.iter().flatten().filter(|found| wanted(found)).map(|found| found.key.clone()))
}

/// A figure of a case as text, empty where there is none.
fn cell(row: &[CaseValues], key: &str, value: impl Fn(&CaseValues) -> Option<f64>) -> String {
    let value = row.iter().find(|found| found.key == key).and_then(value);
    value.map_or(String::new(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case_scores::ScoreValues;
    use crate::score_config::ALL_CLASSES;
    use ssn_args::{GedDistance, Group};

    fn settings(groups: Vec<Group>) -> EvaluationSettings {
        EvaluationSettings {
            model: ModelId { sha256: String::new(), name: "run".to_owned() },
            kind: PredictionKind::Stochastic,
            dataset: "set".to_owned(),
            split: "test".to_owned(),
            scores: ScoreConfig { groups, ..ScoreConfig::default() },
            bootstrap: false,
            labels_only: false,
        }
    }

    /// Returns a case with two raters and the values of some scores.
    fn case(id: &str, masks: &[&str], values: &[(&str, &[Option<f64>])]) -> Scored {
        let value = |(key, each): &(&str, &[Option<f64>])| ScoreValues {
            key: (*key).to_owned(),
            each: each.to_vec(),
            one_empty: 1,
        };
        let scores = CaseScores {
            samples: 4,
            raters: 2,
            distance: GedDistance::Iou,
            in_voxels: false,
            masks: masks.iter().map(|mask| (*mask).to_owned()).collect(),
            values: values.iter().map(value).collect(),
            reliability: None,
        };
        Scored { id: id.to_owned(), rater_names: vec!["alice".to_owned(), "bob".to_owned()], scores }
    }

    #[test]
    fn undefined_values_are_counted_and_left_out() {
        let cases = [
            case("a", &["core"], &[("assd core", &[Some(1.0), Some(3.0)])]),
            case("b", &["core"], &[("assd core", &[None, Some(5.0)])]),
            case("c", &["core"], &[("assd core", &[None, None])]),
        ];
        let found = Evaluation::new(settings(vec![]), &cases, vec!["d".to_owned()]).unwrap();
        let figure = found.figure("assd core").unwrap();
        assert_eq!(figure.mean, Some(3.0), "over pairs of case and rater, not over cases");
        assert_eq!((figure.values, figure.undefined, figure.cases, figure.one_empty), (3, 3, 2, 3));
        assert_eq!((found.cases, found.missing), (3, vec!["d".to_owned()]));
    }

    #[test]
    fn cases_without_a_score_have_an_empty_cell() {
        let cases = [
            case("a", &["core"], &[("brier", &[Some(0.5)]), ("assd core", &[Some(1.0), None])]),
            case("b", &["core"], &[("volume core", &[Some(2.0)]), ("assd core", &[Some(4.0), Some(6.0)])]),
        ];
        assert_eq!(
            cases_csv(&cases),
            "id,samples,raters,brier,assd core,volume core\na,4,2,0.5,1,\nb,4,2,,5,2\n"
        );
        assert_eq!(
            raters_csv(&cases),
            "id,rater,assd core\na,alice,1\na,bob,\nb,alice,4\nb,bob,6\n",
            "scores of the whole case are none of a rater"
        );
    }

    #[test]
    fn the_mean_of_nnu_net_is_over_classes_alone() {
        let masks = ["core", "rim", ALL_CLASSES];
        let dice: Vec<(String, &[Option<f64>])> = masks
            .iter()
            .zip([&[Some(1.0), Some(0.0)][..], &[Some(0.8), None], &[Some(0.1), Some(0.1)]])
            .map(|(mask, dice)| (format!("{DSC} {mask}"), dice))
            .collect();
        let values: Vec<_> = dice.iter().map(|(key, dice)| (key.as_str(), *dice)).collect();
        let of = |groups| Evaluation::new(settings(groups), &[case("a", &masks, &values)], vec![]).unwrap();
        let classes = of(vec![]);
        assert_eq!(
            classes.metric_per_case[0].metrics.keys().collect::<Vec<_>>(),
            ["1", "2", ALL_CLASSES],
            "classes have their numbers"
        );
        assert!((classes.foreground_mean.dice.unwrap() - 0.65).abs() < 1e-12);
        // IoU is DSC / (2 − DSC) of each rater.
        assert!((classes.foreground_mean.iou.unwrap() - (0.5 + 0.8 / 1.2) / 2.0).abs() < 1e-12);
        let group = |name: &str| Group { name: name.to_owned(), classes: vec![1] };
        let groups = of(masks.map(group).to_vec());
        assert_eq!(
            groups.metric_per_case[0].metrics.keys().collect::<Vec<_>>(),
            [ALL_CLASSES, "core", "rim"]
        );
        assert!((groups.foreground_mean.dice.unwrap() - 1.4 / 3.0).abs() < 1e-12, "over all groups");
    }
}
