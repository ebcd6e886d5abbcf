//! The part of a report about single cases: which of them get pictures, and what is shown of each.

use std::collections::BTreeMap;
use std::path::Path;

use ssn_core::Control;
use ssn_data::text::shell_quoted;

use crate::distances::distances;
use crate::gallery::{self, GALLERY};
use crate::material::{CaseDistances, CaseSurvey, PredictionSet};
use crate::output::{Drawn, Report};
use crate::pictures::{self, COLUMNS};
use crate::scores::ReadEvaluation;
use crate::steering::{Steered, impossible};
use crate::volumes::volumes;
use ssn_eval::predictions::file_stem;
use ssn_eval::registry::{GED2, SAMPLE_DIVERSITY};
use ssn_io::Result;

/// Cases whose samples are steered: the first of those chosen.
const STEERED: usize = 3;

/// Gives every case its place among all: by the GED² of its evaluation, or of the samples of this report where not all cases were
/// evaluated, or without raters by how much samples differ. The best is the first.
pub(crate) fn rank(surveys: &mut [CaseSurvey], scores: Option<&ReadEvaluation>) {
    let evaluated = |survey: &CaseSurvey| scores.and_then(|scores| scores.of_case(&survey.id, GED2));
    let all = |value: &dyn Fn(&CaseSurvey) -> Option<f64>| -> Option<Vec<f64>> {
        surveys.iter().map(value).collect()
    };
    let badness = all(&evaluated).or_else(|| all(&|survey| survey.ged));
    let badness = badness.unwrap_or_else(|| surveys.iter().map(|survey| survey.sample_diversity).collect());
    let mut order: Vec<usize> = (0..surveys.len()).collect();
    order.sort_by(|&a, &b| badness[a].total_cmp(&badness[b]));
    for (rank, index) in order.into_iter().enumerate() {
        surveys[index].rank = rank;
    }
}

/// Gives cases the places that they have in another folder; those that it lacks come last.
pub(crate) fn rank_like(surveys: &mut [CaseSurvey], others: &[CaseSurvey]) {
    let ranks: BTreeMap<&str, usize> = others.iter().map(|other| (other.id.as_str(), other.rank)).collect();
    for survey in surveys {
        survey.rank = ranks.get(survey.id.as_str()).copied().unwrap_or(usize::MAX);
    }
}

/// The case in the middle of all.
pub(crate) fn typical(surveys: &[CaseSurvey]) -> Option<usize> {
    let mut order: Vec<usize> = (0..surveys.len()).collect();
    order.sort_by_key(|&index| surveys[index].rank);
    order.get(order.len().saturating_sub(1) / 2).copied()
}

/// What makes a case typical.
pub(crate) fn typical_words(surveys: &[CaseSurvey], id: &str) -> String {
    match (surveys.len(), surveys.iter().all(|survey| survey.ged.is_some())) {
        (1, _) => format!("The case {id}."),
        (_, true) => {
            format!("A typical case, {id}: half of the others have a smaller GED², half a larger one.")
        }
        (_, false) => {
            format!("A typical case, {id}: of half of the others, samples differ less, of half more.")
        }
    }
}

/// The id of the part of a page that is about a case.
pub(crate) fn anchor(id: &str) -> String {
    format!("case-{}", file_stem(id))
}

/// `ssn view PREDICTIONS --case ID`, the line that opens a case in the viewer, with names as a shell takes them.
pub(crate) fn view_line(predictions: &Path, id: &str) -> String {
    let path = predictions.to_string_lossy();
    // A name that begins with a dash would be taken for an option.
    let path = if path.starts_with('-') { format!("./{path}") } else { path.into_owned() };
    let case = if id.starts_with('-') {
        format!("--case={}", shell_quoted(id))
    } else {
        format!("--case {}", shell_quoted(id))
    };
    format!("ssn view {} {case}", shell_quoted(&path))
}

/// The pictures and measures of the chosen cases.
pub(crate) fn chosen(
    report: &mut Report,
    material: &PredictionSet,
    surveys: &[CaseSurvey],
    chosen: &[Chosen],
    scores: Option<&ReadEvaluation>,
    control: Control<'_>,
) -> Result<()> {
    if chosen.is_empty() {
        return Ok(());
    }
    report.page.paragraph(
        "Pictures of the most ambiguous case, the worst and the best, and others evenly between them. Worse is a larger GED² of the \
         samples shown here, more ambiguous is a larger distance between raters, or between samples where there is one rater.",
    );
    report.page.paragraph(GALLERY);
    let unsteerable = impossible(material.kind());
    unsteerable.into_iter().for_each(|sentence| report.page.paragraph(sentence));
    let steered = if unsteerable.is_some() { 0 } else { STEERED };
    let phase = control.phase("drawing", chosen.len(), "cases");
    for (place, one) in chosen.iter().enumerate() {
        let id = material.found[one.index].id();
        phase.current(id);
        let survey = &surveys[one.index];
        case(report, material, (survey, &facts(survey, scores)), *one, place < steered)?;
        phase.advance(1, id);
    }
    Ok(())
}

fn case(
    report: &mut Report,
    material: &PredictionSet,
    (survey, facts): (&CaseSurvey, &str),
    Chosen { index, why }: Chosen,
    steered: bool,
) -> Result<()> {
    let subject = material.read(index, true)?;
    let id = &survey.id;
    report.page.part(&anchor(id), &format!("{id} · {why}"));
    report.page.paragraph(facts);
    report.page.command(&view_line(material.predictions.root(), id));
    let measured = CaseDistances::of(&subject)?;
    let view = pictures::view(std::slice::from_ref(&subject));
    let mut caption = "Entropy from 0, light, to 1, dark.".to_owned();
    if subject.file.description().size[0] > 1 {
        caption += &format!(" Slice {}, which has most marked voxels.", view.slice);
    }
    let groups = gallery::groups(&measured.distances, COLUMNS);
    let svg = pictures::overview(material, &subject, &view, &groups)?;
    report.show(vec![Drawn { name: format!("{id}-pictures"), svg, caption }]);
    report.page.fold(if steered {
        "Volumes and distances of the samples, and what steering does"
    } else {
        "Volumes and distances of the samples"
    });
    report.show(vec![
        Drawn {
            name: format!("{id}-volumes"),
            svg: volumes(subject.file.description(), &measured),
            caption: "Volumes of the samples; those of raters should lie among them.".to_owned(),
        },
        Drawn {
            name: format!("{id}-distances"),
            svg: distances(id, &measured),
            caption: "Distances 1 − IoU of all pairs; samples that are alike are neighbors. Where a rater's column is light \
                      somewhere, a sample found what this rater marked."
                .to_owned(),
        },
    ]);
    if steered {
        // The most typical sample, and that of the largest group which is not its own.
        let typical = gallery::typical(&measured.distances);
        let other = groups.iter().map(|group| group.sample).find(|sample| *sample != typical);
        let strips = Steered {
            material,
            subject: &subject,
            view: &view,
            samples: [other.unwrap_or(typical), typical],
        };
        strips.figures()?.into_iter().for_each(|drawn| report.show(vec![drawn]));
    }
    report.page.end_fold();
    Ok(())
}

/// The figures of a case: those of its evaluation, as the tables have them, or of the samples that are shown.
fn facts(survey: &CaseSurvey, scores: Option<&ReadEvaluation>) -> String {
    let mut facts = vec![];
    let scored = |key: &str| scores.and_then(|scores| scores.of_case(&survey.id, key));
    facts.extend(scored(GED2).or(survey.ged).map(|ged| format!("GED² {ged:.3}")));
    let diversity = scored(SAMPLE_DIVERSITY).unwrap_or(survey.sample_diversity);
    facts.push(format!("diversity of samples {diversity:.3}"));
    facts.extend(survey.rater_diversity.map(|diversity| format!("of raters {diversity:.3}")));
    facts.extend(survey.prediction.map(|dice| format!("DSC of the prediction {:.1} %", 100.0 * dice)));
    facts.extend(survey.above().map(|share| format!("{:.0} % of samples above it", 100.0 * share)));
    facts.join(", ") + "."
}

/// A case that gets pictures, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// Its place among all.
    pub(crate) index: usize,
    pub(crate) why: &'static str,
}

/// The most ambiguous case, the worst, the best, and others evenly between the best and the worst.
///
/// Worse is a larger GED², or, without raters, a larger diversity of samples; more ambiguous is a larger diversity of
/// raters, or of samples.
pub(crate) fn choose(surveys: &[CaseSurvey], count: usize) -> Vec<Chosen> {
    let known = surveys.iter().all(|survey| survey.ged.is_some());
    let badness = |survey: &CaseSurvey| survey.ged.filter(|_| known).unwrap_or(survey.sample_diversity);
    let ambiguity = |survey: &CaseSurvey| survey.rater_diversity.unwrap_or(survey.sample_diversity);
    let mut order: Vec<usize> = (0..surveys.len()).collect();
    order.sort_by(|&a, &b| badness(&surveys[a]).total_cmp(&badness(&surveys[b])));
    let most = order
        .iter()
        .copied()
        .rev()
        .max_by(|&a, &b| ambiguity(&surveys[a]).total_cmp(&ambiguity(&surveys[b])));
    let names = if known {
        ["most ambiguous", "worst", "best", "between best and worst"]
    } else {
        ["most ambiguous", "most diverse samples", "least diverse samples", "between"]
    };
    let mut chosen: Vec<Chosen> = vec![];
    for (index, why) in [most, order.last().copied(), order.first().copied()].into_iter().zip(names) {
        if let Some(index) = index.filter(|index| chosen.iter().all(|one| one.index != *index)) {
            chosen.push(Chosen { index, why });
        }
    }
    chosen.truncate(count);
    order.retain(|index| chosen.iter().all(|one| one.index != *index));
    let more = (count - chosen.len()).min(order.len());
    chosen.extend(
        (0..more).map(|i| Chosen { index: order[(2 * i + 1) * order.len() / (2 * more)], why: names[3] }),
    );
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(ged: Option<f64>, sample_diversity: f64, rater_diversity: Option<f64>) -> CaseSurvey {
        CaseSurvey { ged, sample_diversity, rater_diversity, ..CaseSurvey::default() }
    }

    #[test]
    fn names_are_quoted_where_they_need_it() {
        let line = |path: &str, id: &str| view_line(Path::new(path), id);
        assert_eq!(line("runs/a_1/predictions", "case-1.2"), "ssn view runs/a_1/predictions --case case-1.2");
        assert_eq!(line("my data", "a'b"), r"ssn view 'my data' --case 'a'\''b'");
        assert_eq!(line("p", "$(rm x);`"), "ssn view p --case '$(rm x);`'");
        assert_eq!(line("-p", "-x"), "ssn view ./-p --case=-x");
        assert_eq!(line("p", ""), "ssn view p --case ''");
    }

    #[test]
    fn all_folders_have_one_order_of_cases() {
        let named = |id: &str, ged: f64| CaseSurvey { id: id.into(), ..survey(Some(ged), 0.0, None) };
        let mut first = [named("a", 0.5), named("b", 0.1), named("c", 0.3)];
        rank(&mut first, None);
        assert_eq!(first.each_ref().map(|survey| survey.rank), [2, 0, 1]);
        assert_eq!(typical(&first), Some(2));
        let mut second = [named("d", 0.0), named("c", 0.0), named("b", 0.9)];
        rank_like(&mut second, &first);
        assert_eq!(second.each_ref().map(|survey| survey.rank), [usize::MAX, 1, 0]);
        assert_eq!((typical(&[]), typical(&first[..1])), (None, Some(0)));
    }

    #[test]
    fn the_extremes_come_first_and_nothing_twice() {
        let surveys: Vec<CaseSurvey> =
            (0..10).map(|i| survey(Some(f64::from(i)), 0.0, Some(f64::from(i % 7)))).collect();
        let indices = |count| choose(&surveys, count).iter().map(|one| one.index).collect::<Vec<_>>();
        assert_eq!(indices(3), [6, 9, 0]);
        assert_eq!((indices(0).len(), indices(1)), (0, vec![6]));
        assert_eq!(indices(5), [6, 9, 0, 2, 7]);
        let mut all = indices(20);
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
        let without = [survey(None, 0.2, None), survey(None, 0.5, None)];
        let chosen = choose(&without, 6);
        assert_eq!(chosen[0], Chosen { index: 1, why: "most ambiguous" });
        assert_eq!(chosen[1], Chosen { index: 0, why: "least diverse samples" });
        assert!(choose(&[], 3).is_empty());
    }
}
