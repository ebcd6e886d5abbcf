//! The five scores at the top of a report.

use crate::material::{CaseSurvey, PredictionSet};
use crate::page::HeadlineCard;
use crate::scores::ReadEvaluation;
use crate::table::{Cell, Row, Table};
use ssn_eval::evaluation::ScoreMean;
use ssn_eval::predictions::PredictionKind;
use ssn_eval::registry::Unit;
use ssn_eval::registry::{
    Better, DSC, ECE, FOREGROUND_ECE, GED2, HM_IOU, RATER_DIVERSITY, SAMPLE_DIVERSITY, definition,
};
use ssn_eval::scores::{ALL_CLASSES, mean, of_different};

/// The scores, with the names that they have here.
const SCORES: [(&str, &str); 5] = [
    (GED2, "GED²"),
    (DSC, "Dice of the prediction"),
    (SAMPLE_DIVERSITY, "Diversity of samples"),
    (HM_IOU, "HM-IoU"),
    (ECE, "Calibration error (ECE)"),
];

/// Returns a sign for the values that are better, and its meaning.
fn arrow(key: &str) -> (&'static str, &'static str) {
    definition(key).better.arrow().unwrap_or_default()
}

/// A score of a network.
#[derive(Debug, Clone, PartialEq, Default)]
struct HeadlineScore {
    /// Nothing where it was not measured.
    value: Option<f64>,
    shown: String,
    /// Its error, or of what it is.
    note: String,
    /// How far it is from what would be best, less being better.
    badness: Option<f64>,
}

/// The scores of a network, in the order of [`SCORES`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HeadlineScores([HeadlineScore; 5]);

impl HeadlineScores {
    /// Those that `ssn evaluate` found; without it, those of the samples of this report, as far as these go.
    pub(crate) fn of(
        material: &PredictionSet,
        scores: Option<&ReadEvaluation>,
        surveys: &[CaseSurvey],
    ) -> Self {
        let found = scores.map_or_else(
            || of_surveys(surveys, material.sample_count()),
            |scores| of_scores(scores, material.kind()),
        );
        let mut headline = Self(found);
        for ((key, _), score) in SCORES.iter().zip(&mut headline.0) {
            score.badness = match definition(key).better {
                Better::Lower => score.value,
                Better::Higher => score.value.map(|value| -value),
                Better::LikeRaters | Better::Neither => score.badness,
            };
        }
        headline
    }

    /// The same, none of which can be the best: scores of other samples than those of the rest.
    pub(crate) fn not_compared(mut self) -> Self {
        self.0.iter_mut().for_each(|score| score.badness = None);
        self
    }

    /// A card for each score that was measured.
    pub(crate) fn cards(&self) -> Vec<HeadlineCard> {
        let card = |((key, name), score): (&(&str, &str), &HeadlineScore)| {
            score.value.map(|_| HeadlineCard {
                name: (*name).to_owned(),
                direction: arrow(key),
                value: score.shown.clone(),
                note: score.note.clone(),
            })
        };
        SCORES.iter().zip(&self.0).filter_map(card).collect()
    }
}

/// How many samples the scores of each network are of, if that differs: GED² depends on it.
pub(crate) fn sample_counts(networks: &[(&str, usize)]) -> Option<String> {
    let differ = networks.iter().any(|(_, count)| *count != networks[0].1);
    let told: Vec<String> = networks.iter().map(|(name, count)| format!("{name} {count}")).collect();
    differ.then(|| format!("GED² depends on the number of samples: {}.", told.join(", ")))
}

/// A row per network, with the best of each score marked.
pub(crate) fn table(networks: &[(String, HeadlineScores)]) -> Table {
    let mut columns = vec!["network".to_owned()];
    columns.extend(SCORES.iter().map(|(key, name)| format!("{name} {}", arrow(key).0)));
    let least = |place: usize| {
        let values = networks.iter().filter_map(|(_, headline)| headline.0[place].badness);
        values.min_by(f64::total_cmp)
    };
    // What is shown alike is equally good.
    let best = |place: usize| -> Vec<&str> {
        let of_best = networks.iter().filter(|(_, headline)| headline.0[place].badness == least(place));
        of_best.map(|(_, headline)| headline.0[place].shown.as_str()).collect()
    };
    let row = |(name, headline): &(String, HeadlineScores)| {
        let cell = |(place, score): (usize, &HeadlineScore)| {
            let mut cell = Cell::number(score.value, |_| score.shown.clone());
            cell.best = score.badness.is_some() && best(place).contains(&score.shown.as_str());
            match score.note.as_str() {
                "" => {}
                error if error.starts_with('±') => cell.text += &format!(" {error}"),
                note => cell.text += &format!(" ({note})"),
            }
            cell
        };
        let cells = headline.0.iter().enumerate().map(cell);
        Row::Cells([Cell::name(name)].into_iter().chain(cells).collect())
    };
    let rows = networks.iter().map(row).collect();
    Table { caption: "The most important scores".to_owned(), columns, rows, sortable: false }
}

fn of_scores(scores: &ReadEvaluation, kind: PredictionKind) -> [HeadlineScore; 5] {
    let evaluation = &scores.evaluation;
    let figure = |figure: Option<&ScoreMean>| {
        let Some((figure, mean)) = figure.and_then(|figure| Some((figure, figure.mean?))) else {
            return HeadlineScore::default();
        };
        let percent = if figure.unit == Unit::Percent { " %" } else { "" };
        let error = figure.standard_error.map(|error| format!("± {}", figure.unit.shown(error)));
        HeadlineScore {
            value: Some(mean),
            shown: minus(figure.unit.shown(mean)) + percent,
            note: error.unwrap_or_default(),
            badness: None,
        }
    };
    let first_dice = || evaluation.figures.iter().find(|figure| figure.is(DSC));
    let dice = evaluation.of_mask(DSC, ALL_CLASSES).or_else(first_dice);
    let mut dice_score = figure(dice);
    // With one class there is nothing to tell apart.
    if let Some(group) = dice.and_then(|dice| dice.group.as_ref()).filter(|_| scores.masks().len() > 1) {
        dice_score.note += &format!(", {group}");
    }
    let mean = |key: &str, count: &str| {
        let of_case =
            |id: &str| of_different(scores.of_case(id, key)?, scores.about_case(id, count)? as usize);
        mean(scores.ids().into_iter().filter_map(of_case))
    };
    let mut diversity = diversity(mean(SAMPLE_DIVERSITY, "samples"), mean(RATER_DIVERSITY, "raters"));
    if kind == PredictionKind::Deterministic && diversity.value.is_none() {
        diversity.note = "one segmentation".to_owned();
    }
    let calibration = evaluation.last(FOREGROUND_ECE).or_else(|| evaluation.last(ECE));
    let [ged, hm_iou] = [GED2, HM_IOU].map(|key| figure(evaluation.last(key)));
    [ged, dice_score, diversity, hm_iou, figure(calibration)]
}

/// The scores that the samples of a report are enough for.
fn of_surveys(surveys: &[CaseSurvey], samples: usize) -> [HeadlineScore; 5] {
    let score = |value: Option<f64>, shown: fn(f64) -> String, note: &str| HeadlineScore {
        value,
        shown: value.map(shown).map(minus).unwrap_or_default(),
        note: note.to_owned(),
        badness: None,
    };
    let of = |value: fn(&CaseSurvey) -> Option<f64>| mean(surveys.iter().filter_map(value));
    let ged = score(of(|survey| survey.ged), |x| format!("{x:.3}"), &format!("{samples} samples"));
    let dice = score(of(|survey| survey.prediction), |x| format!("{:.1} %", 100.0 * x), "");
    let diversity = diversity(of(|survey| survey.sample_distance), of(|survey| survey.rater_distance));
    [ged, dice, diversity, HeadlineScore::default(), HeadlineScore::default()]
}

/// The mean distance of different samples beside that of different raters.
fn diversity(samples: Option<f64>, raters: Option<f64>) -> HeadlineScore {
    HeadlineScore {
        value: samples,
        shown: samples.map_or(String::new(), |value| format!("{value:.3}")),
        note: raters.map_or(String::new(), |raters| format!("raters {raters:.3}")),
        badness: samples.zip(raters).map(|(samples, raters)| (samples - raters).abs()),
    }
}

/// With the sign that is meant.
fn minus(text: String) -> String {
    text.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(ged: f64, diversity_of_samples: f64) -> HeadlineScores {
        let survey = CaseSurvey {
            prediction: Some(0.5),
            ged: Some(ged),
            sample_distance: Some(diversity_of_samples),
            rater_distance: Some(0.3),
            ..CaseSurvey::default()
        };
        let mut headline = HeadlineScores(of_surveys(&[survey], 20));
        headline.0[0].badness = headline.0[0].value;
        headline
    }

    #[test]
    fn the_best_of_each_score_is_marked() {
        let networks = [
            ("a".to_owned(), network(0.2, 0.9)),
            ("b".to_owned(), network(0.25, 0.35)),
            ("c".to_owned(), network(0.2, 0.1)),
        ];
        let table = table(&networks);
        assert_eq!(table.columns[1..4], ["GED² ↓", "Dice of the prediction ↑", "Diversity of samples →"]);
        let best = |row: &Row| match row {
            Row::Cells(cells) => cells.iter().map(|cell| cell.best).collect::<Vec<_>>(),
            Row::Heading(_) => vec![],
        };
        let best: Vec<Vec<bool>> = table.rows.iter().map(best).collect();
        assert_eq!(best[0], [false, true, false, false, false, false]);
        // The diversity of b is the nearest to 0.3, that of the raters; a and c are equally good at GED².
        assert_eq!(best[1], [false, false, false, true, false, false]);
        assert_eq!(best[2], [false, true, false, false, false, false]);
        let alone = super::table(&[("a".to_owned(), network(0.2, 0.9).not_compared())]);
        assert!(matches!(&alone.rows[0], Row::Cells(cells) if cells.iter().all(|cell| !cell.best)));
    }

    #[test]
    fn different_numbers_of_samples_are_told() {
        assert_eq!(sample_counts(&[("a", 100), ("b", 100)]), None);
        let told = sample_counts(&[("a", 100), ("b", 1)]);
        assert_eq!(told.as_deref(), Some("GED² depends on the number of samples: a 100, b 1."));
    }

    #[test]
    fn what_was_not_measured_has_no_card() {
        let cards = network(0.2, 0.35).cards();
        let names: Vec<&str> = cards.iter().map(|card| card.name.as_str()).collect();
        assert_eq!(names, ["GED²", "Dice of the prediction", "Diversity of samples"]);
        assert_eq!((cards[0].value.as_str(), cards[0].note.as_str()), ("0.200", "20 samples"));
        assert_eq!(cards[2].note, "raters 0.300");
    }
}
