//! An experiment as it was asked for: rows with all their settings, the config that they share, where all goes, and what marks
//! that folder.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use ssn_args::{CheckpointChoice, ExperimentConfig};
use ssn_data::SyntheticConfig;
use ssn_io::Place;
use ssn_nn::NnError;
use ssn_train::run::{ConfigSources, Override, RunPreset, join_torchscript};
use toml::{Table, Value};

use super::file::{Experiment, Reduced, Row, last};
use crate::error::{Error, Result};
use crate::work_folder::{data_section, is_begun, occupied, write_file};

/// The experiment in its folder: the settings that its results depend on, which mark the folder.
pub const EXPERIMENT: &str = "experiment.toml";
/// The config in its folder.
pub const CONFIG: &str = "config.toml";
/// Where experiments go unless another folder is named.
const OUT: &str = "experiments-out";
/// What is said of a folder that belongs to something else.
pub const ANOTHER: &str = "another experiment, or this one with other settings, is in it";
/// What stands above the settings.
const HEAD: &str = "# What the results in this folder depend on; `ssn run-experiment` compares it with what it is asked for.\n";

/// What is to be done.
pub struct ExperimentPlan {
    /// The folder for everything.
    pub out: PathBuf,
    /// What its results depend on, which marks the folder.
    pub mark: Mark,
    /// The title of the table.
    pub title: String,
    /// Masks that are scored.
    pub masks: Vec<(String, Vec<String>)>,
    /// The text of the config that all rows share.
    pub config: String,
    /// The rows, with every setting.
    pub rows: Vec<Row>,
    /// So many seeds of each row are asked for; others stay in the table if they are there.
    seeds: usize,
}

/// One training.
pub struct TrainingJob {
    /// The row that it belongs to.
    pub row: usize,
    /// Its seed.
    pub seed: u64,
    /// The fold that it does not learn from.
    pub fold: Option<usize>,
    /// The folder of the run.
    pub run: PathBuf,
    /// The folder of its predictions.
    pub predictions: PathBuf,
    /// The file of its record.
    pub(super) record: PathBuf,
}

impl TrainingJob {
    /// The job of a row; `slug` is the name of the row's folders.
    pub fn new(out: &Path, row: usize, slug: &str, seed: u64, fold: Option<usize>) -> Self {
        let name = format!("seed{seed}{}", fold.map_or(String::new(), |fold| format!("-fold{fold}")));
        let place = |folder: &str| out.join(folder).join(slug).join(&name);
        let record = out.join("records").join(slug).join(name.clone() + ".json");
        Self { row, seed, fold, run: place("runs"), predictions: place("predictions"), record }
    }

    /// What it is called.
    pub fn label(&self, plan: &ExperimentPlan) -> String {
        let fold = self.fold.map_or(String::new(), |fold| format!(", fold {fold}"));
        format!("{}, seed {}{fold}", plan.rows[self.row].label(), self.seed)
    }
}

impl ExperimentPlan {
    /// Puts the file and the arguments together. Nothing is written.
    ///
    /// # Errors
    /// Settings that a training would refuse, of any row: an experiment must not fail after days.
    pub fn new(options: &ExperimentConfig, experiment: Experiment) -> Result<Self> {
        let reduced = chosen(options, experiment.reduced)?;
        let images = reduced.as_ref().filter(|_| options.data.is_none()).map(images);
        let seeds = reduced.as_ref().and_then(|r| r.seeds);
        let of_all = reduced.as_ref().map_or(&[][..], |r| &r.set);
        let folder = folder_of(options);
        let from_here = |setting: String| match Override::parse(&setting) {
            Ok(parsed) => parsed.seen_from(&folder).written().to_owned(),
            // The check of the row says what is wrong.
            Err(_) => setting,
        };
        let rows: Vec<Row> = experiment
            .rows
            .into_iter()
            .map(|mut row| {
                row.set.extend_from_slice(of_all);
                row.set.extend(std::mem::take(&mut row.synthetic).into_iter().filter(|_| images.is_some()));
                row.set = row.set.into_iter().map(from_here).collect();
                row.set.extend_from_slice(&options.settings);
                row.set = last_of_each(row.set);
                row.seeds.truncate(seeds.unwrap_or(usize::MAX).max(1));
                row
            })
            .collect();
        let folds = match (experiment.folds, &reduced) {
            (0, _) => 0,
            (_, Some(Reduced { folds: Some(fewer), .. })) => *fewer,
            (folds, _) => folds,
        };
        let version = match (&reduced, &images) {
            (None, _) => "",
            (Some(_), None) => " (reduced)",
            (Some(_), Some(_)) => " (reduced, on synthetic images)",
        };
        let out = out(options);
        // Synthetic images have classes of their own.
        let masks = if images.is_some() { vec![] } else { groups(options, &experiment.masks)? };
        let config = config(options, experiment.config.unwrap_or_default(), images.as_ref())?;
        let sections = toml::to_string(&config).map_err(internal)?;
        let mark = Mark {
            samples: reduced.as_ref().and_then(|r| r.samples).unwrap_or(experiment.samples),
            folds,
            checkpoint: experiment.checkpoint,
            masks: masks.iter().map(|(name, classes)| format!("{name}={}", classes.join("+"))).collect(),
            images,
            config,
            rows: rows.iter().map(RowMark::of).collect(),
        };
        let plan = Self {
            mark,
            title: experiment.title + version,
            masks,
            config: format!("# The config of all rows of {}.\n{sections}", out.join(EXPERIMENT).display()),
            rows,
            seeds: options.seeds.unwrap_or(usize::MAX),
            out,
        };
        for row in &plan.rows {
            plan.check(options, row)?;
        }
        Ok(plan)
    }

    /// Every training of a row, seed by seed.
    pub fn jobs(&self, number: usize) -> Vec<TrainingJob> {
        let row = &self.rows[number];
        let folds: Vec<Option<usize>> =
            if self.mark.folds == 0 { vec![None] } else { (0..self.mark.folds).map(Some).collect() };
        let of_seed = |&seed: &u64| folds.iter().map(move |&fold| (seed, fold)).collect::<Vec<_>>();
        let jobs = row.seeds.iter().flat_map(of_seed);
        jobs.map(|(seed, fold)| TrainingJob::new(&self.out, number, &row.slug(), seed, fold)).collect()
    }

    /// Whether the seed of a training is asked for.
    pub fn is_asked_for(&self, job: &TrainingJob) -> bool {
        self.rows[job.row].seeds.iter().take(self.seeds).any(|&seed| seed == job.seed)
    }

    /// Which rows are asked for: those with the name, alone or after its group; if there are none, those with it in
    /// group and name. Otherwise nobody could ask for "rank 1" beside "rank 10".
    ///
    /// # Errors
    /// When none is: the sentence names all.
    pub fn wanted(&self, only: &[String]) -> Result<Vec<bool>> {
        let mut wanted = vec![only.is_empty(); self.rows.len()];
        for part in only.iter().map(|part| part.to_lowercase()) {
            let is_it = |row: &Row| [&row.name, &row.label()].iter().any(|name| name.to_lowercase() == part);
            let has_it = |row: &Row| row.label().to_lowercase().contains(&part);
            let is_exact = self.rows.iter().any(is_it);
            for (wanted, row) in wanted.iter_mut().zip(&self.rows) {
                *wanted |= if is_exact { is_it(row) } else { has_it(row) };
            }
        }
        if wanted.contains(&true) {
            return Ok(wanted);
        }
        let rows: Vec<String> = self.rows.iter().map(Row::label).collect();
        let message =
            format!("no row has {} in its name; the rows are: {}", only.join(" or "), rows.join(", "));
        Err(Error::usage(message))
    }

    /// Refuses settings of a row that a training would refuse.
    fn check(&self, options: &ExperimentConfig, row: &Row) -> Result<()> {
        let wrong = |reason: String| {
            Error::mismatch(format!("{}, row {:?}: {reason}", options.file.display(), row.label()))
        };
        let preset = row.preset.as_deref().map(RunPreset::parse).transpose().map_err(wrong)?;
        let mut settings = vec![];
        for written in row.set.iter().chain(&fold_settings(self.mark.folds, 0)) {
            settings.push(Override::parse(written).map_err(|reason| wrong(format!("{written}: {reason}")))?);
        }
        let path = self.out.join(CONFIG);
        let file = Some((path.clone(), self.config.clone()));
        let checked = ConfigSources { preset, file, overrides: settings }.config();
        let config = checked.map_err(|error| match error {
            // Lines are those of a file that is not there yet.
            NnError::Other(Error { place: Place::File(file), reason, .. }) if file == path => {
                wrong(without_line(&reason).to_owned())
            }
            other => wrong(other.to_string()),
        })?;
        if self.mark.checkpoint == CheckpointChoice::Best && config.training.validate_every == 0 {
            let reason = "training.validate_every is 0, but checkpoint is \"best\", which validations choose; \
                          set validate_every, or leave checkpoint out";
            return Err(wrong(reason.to_owned()));
        }
        Ok(())
    }

    /// Whether its folder was begun; marks it if it was.
    ///
    /// # Errors
    /// A folder with something else, or with a row that was trained with other settings.
    pub fn goes_on(&self) -> Result<bool> {
        let path = self.out.join(EXPERIMENT);
        if !path.exists() {
            return is_begun(&self.out, EXPERIMENT, "", ANOTHER);
        }
        let mut asked = self.mark.clone();
        let text = ssn_io::read_text(&path).map_err(|_| occupied(&self.out, ANOTHER))?;
        let there: Mark = toml::from_str(&text).map_err(|_| occupied(&self.out, ANOTHER))?;
        if let Some(what) = asked.difference(&there) {
            return Err(occupied(&self.out, &format!("{ANOTHER}: {what} differ")));
        }
        for old in there.rows {
            match asked.rows.iter().position(|row| row.folder == old.folder) {
                Some(number) if asked.rows[number] != old => self.check_changed(number)?,
                Some(_) => {}
                // What is left out now may come back.
                None => asked.rows.push(old),
            }
        }
        let new = asked.text()?;
        if new != text {
            write_file(&path, new.as_bytes())?;
        }
        Ok(true)
    }

    /// Marks the folder that begins.
    pub fn begin(&self) -> Result<()> {
        write_file(&self.out.join(EXPERIMENT), self.mark.text()?.as_bytes())
    }

    /// Refuses a row with other settings than before, unless nothing is left of it.
    fn check_changed(&self, number: usize) -> Result<()> {
        let row = &self.rows[number];
        let runs = self.out.join("runs").join(row.slug());
        if !fs::read_dir(&runs).is_ok_and(|mut entries| entries.next().is_some()) {
            return Ok(());
        }
        let message = format!(
            "the row {:?} was trained with other settings; undo the change, remove {} to train it anew, or name another \
             folder with --out",
            row.label(),
            runs.display()
        );
        Err(Error::usage(message))
    }
}

/// What the results in a folder depend on, as the file that marks it says.
///
/// An experiment may grow: rows, seeds and comments can be added. Where a setting changed, results would no longer
/// belong to what the file says, so that is refused, row by row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// Samples of each case.
    pub samples: usize,
    /// Folds, or 0.
    pub folds: usize,
    /// The checkpoint of each run that is scored.
    #[serde(default = "last")]
    pub checkpoint: CheckpointChoice,
    /// Masks that are scored, as `name=class+class`.
    pub masks: Vec<String>,
    /// The images that are made up first; nothing for a dataset, whose path is in the config.
    pub images: Option<SyntheticConfig>,
    config: Table,
    rows: Vec<RowMark>,
}

/// The same of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct RowMark {
    /// The name of its folders.
    folder: String,
    preset: Option<String>,
    categorical: bool,
    set: Vec<String>,
}

impl RowMark {
    fn of(row: &Row) -> Self {
        let Row { preset, categorical, set, .. } = row.clone();
        Self { folder: row.slug(), preset, categorical, set }
    }
}

impl Mark {
    /// The first thing that all rows share and that differs.
    fn difference(&self, there: &Self) -> Option<&'static str> {
        let pairs = [
            (self.samples == there.samples, "samples"),
            (self.folds == there.folds, "folds"),
            (self.checkpoint == there.checkpoint, "checkpoint"),
            (self.masks == there.masks, "masks"),
            (self.images == there.images, "the synthetic images"),
            (self.config.get("data") == there.config.get("data"), "the data of [config]"),
            (self.config == there.config, "[config]"),
        ];
        pairs.into_iter().find(|(is_same, _)| !is_same).map(|(_, name)| name)
    }

    fn text(&self) -> Result<String> {
        Ok(format!("{HEAD}{}", toml::to_string(self).map_err(internal)?))
    }
}

/// Settings without those that a later one of the same key replaces.
fn last_of_each(settings: Vec<String>) -> Vec<String> {
    let key = |setting: &str| setting.split('=').next().unwrap_or_default().trim().to_owned();
    let keys: Vec<String> = settings.iter().map(|setting| key(setting)).collect();
    let is_last = |place: usize| !keys[place + 1..].contains(&keys[place]);
    settings
        .into_iter()
        .enumerate()
        .filter(|(place, _)| is_last(*place))
        .map(|(_, setting)| setting)
        .collect()
}

/// The settings of a fold; none without folds.
pub fn fold_settings(folds: usize, fold: usize) -> Vec<String> {
    match folds {
        0 => vec![],
        _ => vec![format!("data.split.folds={folds}"), format!("data.split.fold={fold}")],
    }
}

/// The folder for everything.
pub fn out(options: &ExperimentConfig) -> PathBuf {
    let name = options.file.file_stem().unwrap_or_default().to_string_lossy();
    let name = format!("{name}{}", if options.reduced { "-reduced" } else { "" });
    options.out.clone().unwrap_or_else(|| Path::new(OUT).join(name))
}

/// Returns the text that marks the folder of the toy problem: the file, and whether the reduced version was asked for.
pub fn toy_mark(options: &ExperimentConfig, text: &str) -> String {
    let reduced = if options.reduced { " --reduced" } else { "" };
    let name = options.file.file_name().unwrap_or_default().to_string_lossy();
    format!("# ssn run-experiment {name}{reduced}\n{text}")
}

/// The reduced version, if it is asked for.
pub fn chosen(options: &ExperimentConfig, reduced: Option<Reduced>) -> Result<Option<Reduced>> {
    match (options.reduced, reduced) {
        (false, _) => Ok(None),
        (true, Some(reduced)) => Ok(Some(reduced)),
        (true, None) => {
            let message = format!(
                "{} has no section [reduced]; add one, or leave --reduced out",
                options.file.display()
            );
            Err(Error::usage(message))
        }
    }
}

/// Masks as `name=class+class`.
fn groups(options: &ExperimentConfig, masks: &[String]) -> Result<Vec<(String, Vec<String>)>> {
    let parse = |mask: &String| {
        ssn_args::Group::parse(mask).map_err(|reason| {
            Error::mismatch(format!("{}, masks: {mask:?}: {reason}", options.file.display()))
        })
    };
    masks.iter().map(parse).collect()
}

fn images(reduced: &Reduced) -> SyntheticConfig {
    let &Reduced { cases, size, classes, .. } = reduced;
    SyntheticConfig { cases, size, classes, mask: size[0] > 1, ..SyntheticConfig::default() }
}

/// The config of all rows; paths of the file start where it lies.
fn config(options: &ExperimentConfig, mut table: Table, images: Option<&SyntheticConfig>) -> Result<Table> {
    let folder = folder_of(options);
    join_torchscript(&mut table, &folder);
    if let Some(images) = images {
        let section: Table = toml::from_str(&data_section(images)).map_err(internal)?;
        table.extend(section);
    } else if let Some(data) = table.entry("data").or_insert_with(|| Table::new().into()).as_table_mut() {
        let from_here = |path: &str| Value::String(folder.join(path).display().to_string());
        if let Some(path) = data.get_mut("path") {
            *path = path.as_str().map_or_else(|| path.clone(), from_here);
        }
        if let Some(file) = data.get_mut("split").and_then(|split| split.get_mut("file")) {
            *file = file.as_str().map_or_else(|| file.clone(), from_here);
        }
        if let Some(given) = &options.data {
            data.insert("path".to_owned(), Value::String(absolute(given).display().to_string()));
        }
    }
    Ok(table)
}

/// The folder of the experiment file.
fn folder_of(options: &ExperimentConfig) -> PathBuf {
    absolute(&options.file).parent().unwrap_or(Path::new("")).to_owned()
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A reason without the line that it names.
fn without_line(reason: &str) -> &str {
    let rest = reason.strip_prefix("line ").and_then(|rest| rest.split_once(": "));
    rest.map_or(reason, |(_, rest)| rest)
}

fn internal(error: impl std::fmt::Display) -> Error {
    Error::internal(error)
}
