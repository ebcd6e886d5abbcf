//! The scores of many cases: predictions against the raters of their dataset, case by case, what the scores say
//! together, and what is kept to resume.

mod import;
mod matching;
mod summary;
mod swapped;
mod verdict;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use ssn_core::{Control, LabelMap, Phase};
use ssn_data::parallel::{self, MemoryMeter};
use ssn_data::{Cases, Dataset, DatasetOverrides, Severity, Shard, ShardProgress};
use ssn_io::hex::hex;
use ssn_io::{Error, Limits, Result, read_bytes};

pub use import::import;
use matching::load_raters;
pub use matching::{ScoringJob, ScoringPlan, check_classes, load_with_image, open, open_of, places};
pub use ssn_args::{EvaluateConfig, OtherTool, SplitChoice};
pub use summary::{
    CaseOverlaps, Evaluation, EvaluationSettings, Overlaps, ScoreMean, Scored, cases_csv, raters_csv,
};
use swapped::swapped_classes;

use crate::predictions::{
    About, DistributionFile, PredictionKind, Predictions, claim, create_folder, file_stem, listed_ids,
    unknown_name, write_text,
};
use crate::registry::versions;
use crate::scores::{DEFAULT_SAMPLES, Group, ScoreConfig, memory, score};

/// What an evaluation found.
pub struct Evaluated {
    /// The means over the cases.
    pub evaluation: Evaluation,
    /// The scores of each case.
    pub cases: Vec<Scored>,
    /// The file with the scores of each case.
    pub cases_csv: PathBuf,
}

/// Scores all cases against the raters of the dataset, and writes the files of the evaluation.
///
/// Cases whose prediction, raters and settings are the same as before are not scored again.
pub fn evaluate(config: &EvaluateConfig, control: Control<'_>) -> Result<Evaluated> {
    let work = plan_work(config, control)?;
    let all: Vec<usize> = (0..work.plan.jobs.len()).collect();
    let cases = work.score(&all, config.overwrite, control)?;
    work.finish(cases, control)
}

/// Scores the cases of a shard, and writes the files of the evaluation once all cases are scored.
pub fn evaluate_shard(
    config: &EvaluateConfig,
    shard: Shard,
    control: Control<'_>,
) -> Result<Result<Evaluated, ShardProgress>> {
    if shard.is_whole() {
        return evaluate(config, control).map(Ok);
    }
    let work = plan_work(config, control)?;
    work.score(&shard.own(work.plan.jobs.len()), config.overwrite, control)?;
    match work.collect(shard)? {
        Ok(cases) => work.finish(cases, control).map(Ok),
        Err(waiting) => Ok(Err(waiting)),
    }
}

/// Finds out what is to be scored, and how.
fn plan_work(config: &EvaluateConfig, control: Control<'_>) -> Result<Work> {
    let predictions = match (config.other.is_given(), &config.other.raters) {
        (true, _) => convert(config, control)?,
        (false, None) => Predictions::open(&config.predictions)?,
        (false, Some(_)) => {
            return Err(Error::usage(
                "--raters is for files of another tool, which --samples, --probabilities or --predictions names; name the \
                 dataset of predictions with --data",
            ));
        }
    };
    let about = predictions.about();
    let part = config.split.or(SplitChoice::from_name(&about.split)).unwrap_or(SplitChoice::Test);
    // Raters of another tool's files are those that the folder names.
    let data = config.data.as_deref().filter(|_| config.other.raters.is_none());
    let plan = ScoringPlan::new(&predictions, data, part, config.split.is_some())?;
    for finding in plan.dataset.findings.iter().filter(|finding| finding.severity == Severity::Warning) {
        control.warn(&finding.reason);
    }
    if plan.trained_on > 0 {
        control.warn(&format!(
            "the model trained on {} of the cases: they are left out, and --split all scores them too",
            plan.trained_on
        ));
    }
    let stored = plan.jobs.iter().map(|job| job.found.header.samples).min().unwrap_or(0);
    // Of samples that another tool drew, all count, and of those that a network drew, as many as there are.
    let is_usual = config.samples == DEFAULT_SAMPLES && stored < DEFAULT_SAMPLES;
    let takes_stored = stored > 0 && (config.other.samples.is_some() || is_usual);
    let samples = if takes_stored { stored } else { config.samples };
    let config = &EvaluateConfig { samples, ..config.clone() };
    if !plan.missing.is_empty() && !config.allow_missing {
        return Err(Error::mismatch(format!(
            "{} of {} cases of the part {} have no prediction in {}: {}; predict them, or go on without them \
             with --allow-missing",
            plan.missing.len(),
            plan.missing.len() + plan.jobs.len(),
            plan.part,
            config.predictions.display(),
            listed_ids(&plan.missing)
        )));
    }
    if plan.others > 0 {
        control.message(&format!(
            "{} predictions are of other cases than those of the part {}",
            plan.others, plan.part
        ));
    }
    for job in &plan.jobs {
        job.found.header.check_samples(config.samples as u64)?;
    }
    let settings = settings(config, &predictions, &plan)?;
    let folder = EvaluationFolder::open(config, &settings, &plan)?;
    Ok(Work { plan, settings, folder })
}

/// Converts the files of another tool to a folder of predictions.
fn convert(config: &EvaluateConfig, control: Control<'_>) -> Result<Predictions> {
    let Some(path) = config.other.raters.as_ref().or(config.data.as_ref()) else {
        return Err(Error::usage(
            "files of another tool need something to be compared with: give what raters marked with --raters, or a \
             dataset with --data",
        ));
    };
    let part = config.split.unwrap_or(SplitChoice::All);
    // Raters may be a dataset, or label maps alone.
    let labels_only = config.other.raters.is_some() && !Dataset::is_recognized(path);
    let dataset = match labels_only {
        true => Dataset::of_labels(path, &DatasetOverrides::default())?,
        false => open(path, part, None)?.0,
    };
    let raters = (0..dataset.entries.len()).map(|index| dataset.rater_count(index)).collect::<BTreeSet<_>>();
    let raters: Vec<String> = raters.iter().map(usize::to_string).collect();
    control.message(&format!(
        "raters: {} cases with {} rater{} each",
        dataset.entries.len(),
        raters.join(" or "),
        if raters == ["1"] { "" } else { "s" }
    ));
    let about = |model| About {
        model,
        seed: 0,
        dataset: path.canonicalize().unwrap_or_else(|_| path.clone()).display().to_string(),
        split: part.name().to_owned(),
        images: None,
        labels: None,
        labels_only,
    };
    import(&config.other, &dataset, about, &config.predictions, config.overwrite, control)
}

/// What the flags ask for, in the terms of the classes.
fn settings(
    config: &EvaluateConfig,
    predictions: &Predictions,
    plan: &ScoringPlan,
) -> Result<EvaluationSettings> {
    let classes = &plan.classes;
    let mut groups = vec![];
    for (name, members) in &config.groups {
        let number = |member: &String| match classes.iter().position(|class| class == member) {
            Some(0) => Err(format!("{member:?} is the background, which is not scored")),
            Some(number) => Ok(number as u8),
            None => Err(unknown_name(member, classes, &config.predictions)),
        };
        let numbers: Result<Vec<u8>, String> = members.iter().map(number).collect();
        let numbers = numbers.map_err(|reason| Error::usage(format!("--group {name}: {reason}")))?;
        groups.push(Group { name: name.clone(), classes: numbers });
    }
    let base = if config.fast { ScoreConfig::fast(config.samples) } else { ScoreConfig::default() };
    let scores = ScoreConfig {
        samples: config.samples,
        seed: config.seed,
        prediction: config.prediction,
        categorical: config.categorical,
        temperature: config.temperature,
        diagonal_noise: config.diagonal_noise,
        tolerance: config.tolerance,
        bins: config.bins,
        distance: config.ged_distance,
        sets: config.sets.clone(),
        surface_samples: config.surface_samples,
        empty_penalty: config.empty_penalty,
        groups,
        ..base
    };
    if scores.steers() && plan.kind != PredictionKind::Stochastic {
        return Err(Error::usage(format!(
            "the predictions in {} have no distribution whose noise could be steered; leave out --temperature and \
             --no-diagonal-noise",
            config.predictions.display()
        )));
    }
    let root = &plan.dataset.root;
    let dataset = root.canonicalize().unwrap_or_else(|_| root.clone()).display().to_string();
    let (model, split) = (predictions.about().model.clone(), plan.part.to_owned());
    let about = plan.jobs.first().map(|job| &job.found.header.description);
    let labels_only = about.is_some_and(|about| about.labels_only);
    Ok(EvaluationSettings {
        model,
        kind: plan.kind,
        dataset,
        split,
        scores,
        bootstrap: config.bootstrap,
        labels_only,
    })
}

/// The folder in which an evaluation lies unless another is named.
pub fn default_folder(predictions: &Path) -> PathBuf {
    predictions.join("evaluation")
}

/// The scores that an evaluation in [`default_folder`] has of a case; nothing where there are none that can be read.
pub fn written_scores(predictions: &Path, id: &str) -> Option<Scored> {
    let path = EvaluationFolder { root: default_folder(predictions) }.record(id);
    let bytes = read_bytes(&path, &Limits::default()).ok()?;
    let record: ScoreRecord = serde_json::from_slice(&bytes).ok()?;
    (record.scored.id == id).then_some(record.scored)
}

/// The cases of an evaluation, how they are scored, and where the scores go.
struct Work {
    plan: ScoringPlan,
    settings: EvaluationSettings,
    folder: EvaluationFolder,
}

impl Work {
    /// Scores those of some cases that are not scored yet, or all of them `again`.
    fn score(&self, cases: &[usize], again: bool, control: Control<'_>) -> Result<Vec<Scored>> {
        let phase = control.phase("scoring", cases.len(), "cases");
        self.each(cases, &phase, |job, meter| {
            let (raters, rater_names, key) = self.raters(job)?;
            let (path, config) = (self.folder.record(job.found.id()), &self.settings.scores);
            if let Some(record) = ScoreRecord::read(&path, &key, job.found.id()).filter(|_| !again) {
                return Ok(Scored { rater_names, ..record.scored });
            }
            meter.saw_all(memory(&job.found.header, raters.len(), config));
            let file = DistributionFile::read(&job.found.path, &Limits::default())?;
            let scores = score(&file, &raters, config)?;
            let record =
                ScoreRecord::new(key, Scored { id: job.found.id().to_owned(), rater_names, scores })?;
            record.write(&path)?;
            Ok(record.scored)
        })
    }

    /// The scores of all cases, if all shards have left theirs.
    fn collect(&self, shard: Shard) -> Result<Result<Vec<Scored>, ShardProgress>> {
        let jobs = &self.plan.jobs;
        // Labels take time to read: only once every case has a file.
        let is_there = |index: usize| self.folder.record(jobs[index].found.id()).is_file();
        if let Some(waiting) = shard.waiting(jobs.len(), is_there) {
            return Ok(Err(waiting));
        }
        let all: Vec<usize> = (0..jobs.len()).collect();
        let unwatched = Control::default().phase("", all.len(), "cases");
        let found = self.each(&all, &unwatched, |job, _| {
            let (id, (.., key)) = (job.found.id(), self.raters(job)?);
            Ok(ScoreRecord::read(&self.folder.record(id), &key, id).map(|record| record.scored))
        })?;
        Ok(match shard.waiting(jobs.len(), |index| found[index].is_some()) {
            Some(waiting) => Err(waiting),
            None => Ok(found.into_iter().flatten().collect()),
        })
    }

    fn finish(self, cases: Vec<Scored>, control: Control<'_>) -> Result<Evaluated> {
        let Self { plan, settings, folder } = self;
        let swapped = swapped_classes(&plan, &cases)?;
        swapped.iter().for_each(|sentence| control.warn(sentence));
        let mut evaluation = Evaluation::new(settings, &cases, plan.missing)?;
        evaluation.verdict.splice(0..0, swapped);
        folder.write(&evaluation, &cases)?;
        Ok(Evaluated { evaluation, cases, cases_csv: folder.cases_csv() })
    }

    /// The labels of a case's raters, their names, and the key of its scores. Labels come first: scores of labels that were corrected
    /// since are no longer theirs.
    fn raters(&self, job: &ScoringJob) -> Result<(Vec<LabelMap>, Vec<String>, String)> {
        let (raters, names) = load_raters(&self.plan.dataset, job)?;
        let key = key(&versions(), &self.settings.scores, &job.found.header.sha256, &raters)?;
        Ok((raters, names, key))
    }

    /// Something of each of some cases, or the first failure.
    fn each<T: Send>(
        &self,
        cases: &[usize],
        phase: &Phase<'_>,
        work: impl Fn(&ScoringJob, &MemoryMeter) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let jobs: Vec<&ScoringJob> = cases.iter().map(|&case| &self.plan.jobs[case]).collect();
        each_case(&jobs, |job| job.found.id(), phase, |job, meter| work(job, meter))
    }
}

/// Does something with each of some cases, several at once where memory allows it; returns the first failure.
pub fn each_case<C: Sync, T: Send>(
    cases: &[C],
    id: impl Fn(&C) -> &str,
    phase: &Phase<'_>,
    work: impl Fn(&C, &MemoryMeter) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let results = parallel::map_until(cases.len(), phase, |number, meter| work(&cases[number], meter))?;
    let one = |(case, result): (&C, Result<Result<T>, String>)| {
        let failed = |panic| format!("case {}: the program failed: {panic}; please report this", id(case));
        result.unwrap_or_else(|panic| Err(Error::internal(failed(panic))))
    };
    cases.iter().zip(results).map(one).collect()
}

/// The files of an evaluation, and the folder of what is known of each case.
const SUMMARY: &str = "summary.json";
const CASES_TABLE: &str = "cases.csv";
const RATERS_TABLE: &str = "raters.csv";
const CASES: &str = "cases";

struct EvaluationFolder {
    root: PathBuf,
}

impl EvaluationFolder {
    /// Makes the folder, or goes on with one that is of the same settings.
    fn open(config: &EvaluateConfig, settings: &EvaluationSettings, plan: &ScoringPlan) -> Result<Self> {
        let root = config.out.clone().unwrap_or_else(|| default_folder(&config.predictions));
        let folder = Self { root };
        let there = read_bytes(&folder.summary(), &Limits::default()).ok();
        let there = there.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
        let asked = serde_json::to_value(settings).map_err(Error::internal)?;
        let usual = serde_json::to_value(ScoreConfig::default()).map_err(Error::internal)?;
        if let Some(there) = there.filter(|_| !config.overwrite)
            && let Some((what, old, new)) = difference("", &with_defaults(&there["settings"], &usual), &asked)
        {
            return Err(Error::usage(format!(
                "{} holds an evaluation with {what} {old}, but {new} is asked for; choose another folder with --out \
                 or replace it with --overwrite",
                folder.root.display()
            )));
        }
        folder.claim(plan)?;
        create_folder(&folder.root.join(CASES))?;
        Ok(folder)
    }

    /// Claims the tables and the records of the cases: files of others are never replaced.
    fn claim(&self, plan: &ScoringPlan) -> Result<()> {
        let tables = [SUMMARY, CASES_TABLE, RATERS_TABLE].map(str::to_owned);
        let records = plan.jobs.iter().map(|job| format!("{CASES}/{}.json", file_stem(job.found.id())));
        claim(&self.root, &records.chain(tables).collect::<Vec<_>>())
    }

    /// The file that keeps the scores of a case.
    fn record(&self, id: &str) -> PathBuf {
        self.root.join(CASES).join(file_stem(id) + ".json")
    }

    fn cases_csv(&self) -> PathBuf {
        self.root.join(CASES_TABLE)
    }

    fn summary(&self) -> PathBuf {
        self.root.join(SUMMARY)
    }

    /// Writes the tables of cases and of their raters, and then the summary.
    fn write(&self, evaluation: &Evaluation, cases: &[Scored]) -> Result<()> {
        write_text(&self.root.join(RATERS_TABLE), &raters_csv(cases))?;
        write_text(&self.cases_csv(), &cases_csv(cases))?;
        let text = serde_json::to_string_pretty(evaluation).map_err(Error::internal)?;
        write_text(&self.summary(), &(text + "\n"))
    }
}

/// Returns settings of an evaluation, with the default of each setting of scores that an earlier version did not have.
fn with_defaults(settings: &Value, usual: &Value) -> Value {
    let mut settings = settings.clone();
    if let (Some(there), Value::Object(usual)) =
        (settings.get_mut("scores").and_then(Value::as_object_mut), usual)
    {
        for (name, value) in usual {
            there.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
    settings
}

/// The first field in which two settings differ, with both values.
fn difference(name: &str, there: &Value, asked: &Value) -> Option<(String, String, String)> {
    if let (Value::Object(old), Value::Object(new)) = (there, asked) {
        let field = |key: &String| if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
        let none = Value::Null;
        return new
            .iter()
            .find_map(|(key, value)| difference(&field(key), old.get(key).unwrap_or(&none), value));
    }
    (there != asked).then(|| (name.to_owned(), there.to_string(), asked.to_string()))
}

/// The scores of a case, with what they depend on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ScoreRecord {
    /// Of what the scores were made: see [`key`].
    key: String,
    /// SHA-256 of the scores as JSON.
    sha256: String,
    #[serde(flatten)]
    scored: Scored,
}

fn checksum(scored: &Scored) -> Result<String> {
    let text = serde_json::to_string(scored).map_err(Error::internal)?;
    Ok(hex(&Sha256::digest(text)))
}

/// Hashes all that the scores of a case depend on: their definitions, the settings, the content of the distribution file, and the label
/// maps of the raters.
fn key(
    definitions: &[(&str, u16)],
    config: &ScoreConfig,
    distribution_sha256: &str,
    raters: &[LabelMap],
) -> Result<String> {
    let text = serde_json::to_string(&(definitions, config, distribution_sha256)).map_err(Error::mismatch)?;
    let mut digest = Sha256::new_with_prefix(text);
    for rater in raters {
        digest.update((rater.labels().len() as u64).to_le_bytes());
        digest.update(rater.labels());
    }
    Ok(hex(&digest.finalize()))
}

impl ScoreRecord {
    fn new(key: String, scored: Scored) -> Result<Self> {
        Ok(Self { key, sha256: checksum(&scored)?, scored })
    }

    /// The record in a file, if it is there, is whole, and was made of the same.
    fn read(path: &Path, key: &str, id: &str) -> Option<Self> {
        let bytes = read_bytes(path, &Limits::default()).ok()?;
        let record: Self = serde_json::from_slice(&bytes).ok()?;
        // Two numbers with other digits may be the same in double precision.
        let is_as_written = record.text().is_ok_and(|text| text.as_bytes() == bytes);
        let is_whole = is_as_written && checksum(&record.scored).is_ok_and(|sum| sum == record.sha256);
        (is_whole && record.key == key && record.scored.id == id).then_some(record)
    }

    fn write(&self, path: &Path) -> Result<()> {
        write_text(path, &self.text()?)
    }

    fn text(&self) -> Result<String> {
        serde_json::to_string(self).map_err(Error::mismatch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case_scores::CaseScores;
    use ssn_args::GedDistance;

    #[test]
    fn a_setting_that_an_older_folder_lacks_has_its_default() {
        let usual = serde_json::to_value(ScoreConfig::default()).unwrap();
        let asked = serde_json::json!({ "split": "test", "scores": usual });
        let mut older = asked.clone();
        older["scores"].as_object_mut().unwrap().remove("surface_samples");
        assert_eq!(difference("", &with_defaults(&older, &usual), &asked), None);
        older["scores"]["bins"] = 20.into();
        let found = difference("", &with_defaults(&older, &usual), &asked);
        assert_eq!(found, Some(("scores.bins".to_owned(), "20".to_owned(), "15".to_owned())));
    }

    #[test]
    fn a_record_is_of_its_definitions_settings_file_and_raters() {
        let rater = |label| LabelMap::new(vec![label, 0], 2).unwrap();
        let of = |definitions: &[(&str, u16)], config: &ScoreConfig, sha256, label| {
            key(definitions, config, sha256, &[rater(label)]).unwrap()
        };
        let (usual, one) = (ScoreConfig::default(), [("dice", 1)]);
        let first = of(&one, &usual, "a", 1);
        assert_eq!(of(&one, &usual, "a", 1), first);
        let other = ScoreConfig { seed: 1, ..ScoreConfig::default() };
        let changed = [
            of(&[("dice", 2)], &usual, "a", 1),
            of(&[("dice", 1), ("added", 1)], &usual, "a", 1),
            of(&one, &other, "a", 1),
            of(&one, &usual, "b", 1),
            of(&one, &usual, "a", 0),
        ];
        assert!(changed.iter().all(|changed| *changed != first), "{changed:?}");
    }

    #[test]
    fn a_record_is_read_if_it_is_whole_and_of_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let evaluation = EvaluationFolder { root: default_folder(folder.path()) };
        create_folder(&evaluation.root.join(CASES)).unwrap();
        let scores = CaseScores {
            samples: 1,
            raters: 1,
            distance: GedDistance::Iou,
            in_voxels: false,
            masks: vec![],
            values: vec![],
            reliability: None,
        };
        let scored = Scored { id: "a".to_owned(), rater_names: vec![], scores };
        let (path, record) =
            (evaluation.record("a"), ScoreRecord::new("k".to_owned(), scored.clone()).unwrap());
        record.write(&path).unwrap();
        assert_eq!(ScoreRecord::read(&path, "k", "a"), Some(record));
        assert_eq!(
            [("other", "a"), ("k", "b")].map(|(key, id)| ScoreRecord::read(&path, key, id)),
            [None, None]
        );
        assert_eq!(written_scores(folder.path(), "a"), Some(scored));
        assert_eq!(written_scores(folder.path(), "b"), None);
        // Files of two cases that were exchanged.
        std::fs::copy(&path, evaluation.record("b")).unwrap();
        assert_eq!(written_scores(folder.path(), "b"), None);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("\"samples\":1", "\"samples\":2")).unwrap();
        assert_eq!(ScoreRecord::read(&path, "k", "a"), None, "the checksum is that of one sample");
        std::fs::write(&path, &text[1..]).unwrap();
        assert_eq!(written_scores(folder.path(), "a"), None);
    }
}
