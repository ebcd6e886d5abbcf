//! An experiment as it was asked for: rows with all their settings, the config that they share, and where all goes.

use std::path::{Path, PathBuf};

use ssn_data::SyntheticConfig;
use ssn_train::TrainError;
use ssn_train::run::{ConfigSources, Override, RunPreset};
use toml::{Table, Value};

use super::file::{Experiment, Reduced, Row};
use super::job::Job;
use crate::error::{Error, ErrorKind, Result};
use crate::synthetic;
use crate::work_folder::DATA;
use ssn_data::text::quoted;
use ssn_eval::{CheckpointChoice, ExperimentConfig};

/// The experiment in its folder: the settings that its results depend on, which mark the folder.
pub const EXPERIMENT: &str = "experiment.toml";
/// The config in its folder.
pub const CONFIG: &str = "config.toml";
/// Where experiments go unless another folder is named.
const OUT: &str = "experiments-out";

/// What is to be done.
pub struct Plan {
    /// The folder for everything.
    pub out: PathBuf,
    /// The text that used to mark it: folders that have it go on.
    pub mark: String,
    /// The title of the table.
    pub title: String,
    /// Samples of each case.
    pub samples: usize,
    /// Folds, or 0.
    pub folds: usize,
    /// The checkpoint of each run that is scored.
    pub checkpoint: CheckpointChoice,
    /// Masks that are scored.
    pub masks: Vec<(String, Vec<String>)>,
    /// The text of the config that all rows share.
    pub config: String,
    /// The images that are made up first.
    pub images: Option<SyntheticConfig>,
    /// The rows, with every setting.
    pub rows: Vec<Row>,
    /// So many seeds of each row are asked for; others stay in the table if they are there.
    seeds: usize,
}

impl Plan {
    /// Puts the file and the arguments together. Nothing is written.
    ///
    /// # Errors
    /// Settings that a training would refuse, of any row: an experiment must not fail after days.
    pub fn new(options: &ExperimentConfig, experiment: Experiment, text: &str) -> Result<Self> {
        let reduced = chosen(options, experiment.reduced)?;
        let images = reduced.as_ref().filter(|_| options.data.is_none()).map(images);
        let seeds = reduced.as_ref().and_then(|r| r.seeds);
        let of_all = reduced.as_ref().map_or(&[][..], |r| &r.set);
        let rows: Vec<Row> = experiment
            .rows
            .into_iter()
            .map(|mut row| {
                row.set.extend_from_slice(of_all);
                row.set.extend(std::mem::take(&mut row.synthetic).into_iter().filter(|_| images.is_some()));
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
        let plan = Self {
            mark: mark(options, text),
            title: experiment.title + version,
            samples: reduced.as_ref().and_then(|r| r.samples).unwrap_or(experiment.samples),
            folds,
            checkpoint: experiment.checkpoint,
            // Synthetic images have classes of their own.
            masks: if images.is_some() { vec![] } else { groups(options, &experiment.masks)? },
            config: config(options, experiment.config.unwrap_or_default(), images.as_ref(), &out)?,
            images,
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
    pub fn jobs(&self, number: usize) -> Vec<Job> {
        let row = &self.rows[number];
        let folds: Vec<Option<usize>> =
            if self.folds == 0 { vec![None] } else { (0..self.folds).map(Some).collect() };
        let of_seed = |&seed: &u64| folds.iter().map(move |&fold| (seed, fold)).collect::<Vec<_>>();
        let jobs = row.seeds.iter().flat_map(of_seed);
        jobs.map(|(seed, fold)| Job::new(&self.out, number, &row.slug(), seed, fold)).collect()
    }

    /// Whether the seed of a training is asked for.
    pub fn is_asked_for(&self, job: &Job) -> bool {
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
        Err(Error::new(ErrorKind::Usage, message))
    }

    /// Refuses settings of a row that a training would refuse.
    fn check(&self, options: &ExperimentConfig, row: &Row) -> Result<()> {
        let wrong = |reason: String| {
            Error::new(
                ErrorKind::BadData,
                format!("{}, row {:?}: {reason}", options.file.display(), row.label()),
            )
        };
        let preset = row.preset.as_deref().map(RunPreset::parse).transpose().map_err(wrong)?;
        let mut settings = vec![];
        for written in row.set.iter().chain(&fold_settings(self.folds, 0)) {
            settings.push(Override::parse(written).map_err(|reason| wrong(format!("{written}: {reason}")))?);
        }
        let file = Some((self.out.join(CONFIG), self.config.clone()));
        let checked = ConfigSources { preset, file, overrides: settings }.config();
        let config = checked.map_err(|error| match error {
            // Lines are those of a file that is not there yet.
            TrainError::Config { reason, .. } => wrong(without_line(&reason).to_owned()),
            other => wrong(other.to_string()),
        })?;
        if self.checkpoint == CheckpointChoice::Best && config.training.validate_every == 0 {
            let reason = "training.validate_every is 0, but checkpoint is \"best\", which validations choose; \
                          set validate_every, or leave checkpoint out";
            return Err(wrong(reason.to_owned()));
        }
        Ok(())
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

/// The text that marks the folder of the toy problem: the file, and the command as far as it changes results.
pub fn mark(options: &ExperimentConfig, text: &str) -> String {
    let mut words = vec![];
    if let Some(data) = &options.data {
        words.extend(["--data".to_owned(), absolute(data).display().to_string()]);
    }
    for setting in &options.settings {
        words.extend(["--set".to_owned(), setting.clone()]);
    }
    words.extend(options.reduced.then(|| "--reduced".to_owned()));
    let words: String = words.iter().map(|word| format!(" {}", quoted(word))).collect();
    let name = options.file.file_name().unwrap_or_default().to_string_lossy();
    format!("# ssn run-experiment {name}{words}\n{text}")
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
            Err(Error::new(ErrorKind::Usage, message))
        }
    }
}

/// Masks as `name=class+class`.
fn groups(options: &ExperimentConfig, masks: &[String]) -> Result<Vec<(String, Vec<String>)>> {
    let parse = |mask: &String| {
        ssn_eval::scores::Group::parse(mask).map_err(|reason| {
            Error::new(ErrorKind::BadData, format!("{}, masks: {mask:?}: {reason}", options.file.display()))
        })
    };
    masks.iter().map(parse).collect()
}

fn images(reduced: &Reduced) -> SyntheticConfig {
    let &Reduced { cases, size, classes, .. } = reduced;
    SyntheticConfig { cases, size, classes, mask: size[0] > 1, ..SyntheticConfig::default() }
}

/// The config of all rows; paths of the file start where it lies.
fn config(
    options: &ExperimentConfig,
    mut table: Table,
    images: Option<&SyntheticConfig>,
    out: &Path,
) -> Result<String> {
    let internal = |error: &dyn std::fmt::Display| Error::new(ErrorKind::Internal, error);
    if let Some(images) = images {
        let section: Table =
            toml::from_str(&synthetic::data_section(images, DATA)).map_err(|error| internal(&error))?;
        table.extend(section);
    } else if let Some(data) = table.entry("data").or_insert_with(|| Table::new().into()).as_table_mut() {
        let folder = absolute(&options.file).parent().unwrap_or(Path::new("")).to_owned();
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
    let text = toml::to_string(&table).map_err(|error| internal(&error))?;
    Ok(format!("# The config of all rows of {}.\n{text}", out.join(EXPERIMENT).display()))
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A reason without the line that it names.
fn without_line(reason: &str) -> &str {
    let rest = reason.strip_prefix("line ").and_then(|rest| rest.split_once(": "));
    rest.map_or(reason, |(_, rest)| rest)
}
