//! A config merged from its sources: a preset, a file, and overrides of the command line.
//!
//! Later sources win, key by key. Errors name the source and the line of a mistake.

use std::path::{Path, PathBuf};

use schemars::schema_for;
use ssn_data::config::template::{batch_sections, data_sections, suggest_normalization};
use ssn_data::config::{explain, line_of, unknown_key, with_hint};
use ssn_data::{DataConfig, Dataset, nearest};
use ssn_io::Error;
use ssn_nn::error::{NnError, Result};
use toml::de::DeTable;
use toml::{Table, Value};

use super::config::RunConfig;

/// The key before all sections that names a preset.
const PRESET: &str = "preset";

/// Tables that are one choice: a source that names another choice replaces the whole.
const CHOICES: [&str; 4] = ["model.backbone", "model.head", "optimizer.method", "optimizer.decay"];
/// The key of the steps of a run, and those of the phases in it.
const STEPS: &str = "training.steps";
const PHASES: [&str; 2] = ["loss.pretrain_steps", "loss.likelihood_steps"];
/// Settings that a run may change when it is continued.
const CHANGEABLE: [&str; 8] = [
    STEPS,
    "training.log_every",
    "training.save_every",
    "training.save_minutes",
    "training.validate_every",
    "training.validation_samples",
    "training.validation_cases",
    "training.patience",
];
/// The key of the file of a TorchScript network.
const TORCHSCRIPT: &str = "model.backbone.torchscript";
/// The key of tables that say themselves which choice they are.
const KIND: &str = "kind";

/// A choice of settings for everything but the dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunPreset {
    /// For data of your own.
    General,
    /// A small network and few steps, for a laptop and a first look; that of `ssn demo`.
    Small,
    /// The paper's 2D experiment as it is described.
    Lidc,
    /// The paper's 2D experiment as the authors' code runs it.
    LidcAsCoded,
    /// The network of the 2D experiment with the energy loss, on a short budget.
    LidcEnergy,
    /// The paper's 3D experiment with patches of 30 mm.
    Brats,
    /// The paper's 3D experiment with patches of 60 mm.
    Brats60mm,
}

impl RunPreset {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::General,
        Self::Small,
        Self::Lidc,
        Self::LidcAsCoded,
        Self::LidcEnergy,
        Self::Brats,
        Self::Brats60mm,
    ];

    /// The name in config files and on the command line, and the text: a config without `[data]`.
    fn name_and_text(self) -> (&'static str, &'static str) {
        match self {
            Self::General => ("general", include_str!("../../presets/general.toml")),
            Self::Small => ("small", include_str!("../../presets/small.toml")),
            Self::Lidc => ("lidc", include_str!("../../presets/lidc.toml")),
            Self::LidcAsCoded => ("lidc-as-coded", include_str!("../../presets/lidc-as-coded.toml")),
            Self::LidcEnergy => ("lidc-energy", include_str!("../../presets/lidc-energy.toml")),
            Self::Brats => ("brats", include_str!("../../presets/brats.toml")),
            Self::Brats60mm => ("brats-60mm", include_str!("../../presets/brats-60mm.toml")),
        }
    }

    /// The name in config files and on the command line.
    pub fn name(self) -> &'static str {
        self.name_and_text().0
    }

    /// The text of the preset: a config without `[data]`.
    pub fn text(self) -> &'static str {
        self.name_and_text().1
    }

    /// The preset of a name, or a sentence that says which there are.
    pub fn parse(name: &str) -> Result<Self, String> {
        if name == "toy" {
            return Err("the toy problem has a verb of its own: ssn toy".to_owned());
        }
        Self::ALL.into_iter().find(|preset| preset.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name);
            let hint =
                nearest(name, names).map_or(".".to_owned(), |near| format!("; did you mean `{near}`?"));
            format!("there is no preset `{name}`{hint} There are {}", names.join(", "))
        })
    }
}

/// An override of the command line, `a.b.c=value`.
#[derive(Debug, Clone, PartialEq)]
pub struct Override {
    keys: Vec<String>,
    value: Value,
    written: String,
}

impl Override {
    /// Parses `a.b.c=value`. A value that is no TOML is a string.
    pub fn parse(written: &str) -> Result<Self, String> {
        let (path, value) =
            written.split_once('=').ok_or("expected KEY=VALUE, such as training.steps=1000")?;
        let keys = parts_of(path.trim());
        if keys.iter().any(String::is_empty) {
            return Err(format!("`{path}` is no key, such as training.steps"));
        }
        let value = value.trim();
        let table: Option<Table> = toml::from_str(&format!("value = {value}")).ok();
        let parsed = table.and_then(|mut table| table.remove("value").filter(|_| table.is_empty()));
        let value = parsed.unwrap_or_else(|| Value::String(value.to_owned()));
        Ok(Self { keys, value, written: written.to_owned() })
    }

    /// Makes the path of a TorchScript file start at `folder`, for an override that a file in that folder has.
    pub fn seen_from(mut self, folder: &Path) -> Self {
        let mut table = Table::new();
        set(&mut table, &self.keys, &self.value, String::new());
        if join_torchscript(&mut table, folder) {
            let mut value = Value::Table(table);
            for key in &self.keys {
                value = value.as_table_mut().and_then(|inner| inner.remove(key)).unwrap_or(value);
            }
            self.written = format!("{}={value}", self.keys.join("."));
            self.value = value;
        }
        self
    }

    /// Returns it as on the command line, `a.b.c=value`.
    pub fn written(&self) -> &str {
        &self.written
    }
}

/// What a config is merged from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConfigSources {
    /// The preset; without it, the one that the file names, or `general`.
    pub preset: Option<RunPreset>,
    /// The text of a config file, and the name that messages give it.
    pub file: Option<(PathBuf, String)>,
    /// Overrides of the command line.
    pub overrides: Vec<Override>,
}

/// Returns a number of steps in a table.
fn steps_of(table: &Table, key: &str) -> Option<i64> {
    let (last, sections) = parts_of(key).split_last().map(|(last, rest)| (last.clone(), rest.to_vec()))?;
    let section = sections.iter().try_fold(table, |table, name| table.get(name)?.as_table())?;
    section.get(&last)?.as_integer()
}

impl RunConfig {
    /// Returns the config of a preset with data sections that suit a dataset: what `ssn train --data DATASET` trains.
    ///
    /// ```no_run
    /// use ssn_train::run::{RunConfig, RunPreset};
    ///
    /// let mut config = RunConfig::for_data("dataset", RunPreset::General)?;
    /// config.training.steps = 2_000;
    /// # Ok::<(), ssn_nn::NnError>(())
    /// ```
    pub fn for_data(data: impl AsRef<Path>, preset: RunPreset) -> Result<Self> {
        ConfigSources::for_data(data.as_ref(), Some(preset))?.config()
    }

    /// Returns the config of a preset on a dataset whose settings are known.
    pub fn preset(preset: RunPreset, data: DataConfig) -> Result<Self> {
        let path = data.path.clone();
        let failed = |error: toml::ser::Error| NnError::file(&path, error);
        let mut table = Table::new();
        table.insert("data".to_owned(), Value::try_from(data).map_err(failed)?);
        let text = toml::to_string(&table).map_err(failed)?;
        let file = Some((PathBuf::new(), text));
        ConfigSources { preset: Some(preset), file, overrides: vec![] }.config()
    }

    /// Reads a config file.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        ConfigSources::of_file(path.as_ref())?.config()
    }
}

impl ConfigSources {
    /// Reads a config file.
    pub fn of_file(path: &Path) -> Result<Self> {
        let text = ssn_io::read_text(path).map_err(|error| NnError::file(path, error))?;
        Ok(Self { file: Some((path.to_owned(), text)), ..Self::default() })
    }

    /// Writes the sections for a dataset that was named alone.
    pub fn for_data(data: &Path, preset: Option<RunPreset>) -> Result<Self> {
        let dataset = Dataset::open(data)?;
        let first = dataset.first_readable()?;
        let scale = suggest_normalization(&dataset, &first);
        let mut text = data_sections(&dataset, data, &first, scale);
        // A preset of the paper sets everything about training itself.
        if preset.is_none_or(|preset| [RunPreset::General, RunPreset::Small].contains(&preset)) {
            text += &batch_sections(&dataset, &first);
        }
        let file = Some((data.file_name().unwrap_or_default().into(), text));
        Ok(Self { preset, file, overrides: vec![] })
    }

    /// The merged config; relative paths start at the config file, but a TorchScript file that an override names at
    /// the current folder.
    ///
    /// # Errors
    /// One sentence about the first mistake, and where it is.
    pub fn config(&self) -> Result<RunConfig> {
        let mut table = self.file_table()?;
        join_torchscript(&mut table, self.folder());
        let preset = self.preset(&mut table)?;
        let mut merged: Table =
            toml::from_str(preset.text()).map_err(|error| self.wrong(explain(preset.text(), &error)))?;
        merge(&mut merged, table, "");
        self.apply_overrides(&mut merged);
        self.shorten_phases(&mut merged);
        self.deserialize(merged)
    }

    /// Shortens the phases of the preset where they leave no step to the last one: they share half of the steps then.
    fn shorten_phases(&self, merged: &mut Table) {
        let Some(steps) = steps_of(merged, STEPS) else { return };
        let phases = PHASES.map(|key| (key, steps_of(merged, key).unwrap_or(0)));
        let (set_here, of_preset): (Vec<_>, Vec<_>) = phases.into_iter().partition(|(key, _)| self.sets(key));
        let sum = |phases: &[(&str, i64)]| phases.iter().map(|(_, steps)| i128::from(*steps)).sum::<i128>();
        let (room, needed) = (i128::from(steps) - sum(&set_here), sum(&of_preset));
        if needed < room || room < 2 {
            return;
        }
        for (key, phase) in of_preset.into_iter().filter(|(_, phase)| *phase > 0) {
            let shorter = i128::from(phase) * (room / 2) / needed;
            set(merged, &parts_of(key), &Value::Integer(shorter as i64), String::new());
        }
    }

    /// Returns a sentence for each phase of the preset that is shorter in this config.
    pub fn shortened(&self, config: &RunConfig) -> Vec<String> {
        let Ok(preset) = self.file_table().and_then(|mut table| self.preset(&mut table)) else {
            return vec![];
        };
        let Ok(preset) = toml::from_str::<Table>(preset.text()) else { return vec![] };
        let Ok(own) = Table::try_from(config) else { return vec![] };
        let sentence = |key: &&str| {
            let (phase, own) = (steps_of(&preset, key)?, steps_of(&own, key)?);
            let steps = config.training.steps;
            (own < phase && !self.sets(key))
                .then(|| format!("{key} is {own} instead of {phase}, because {STEPS} is {steps}"))
        };
        PHASES.iter().filter_map(sentence).collect()
    }

    /// Returns the text of a frozen config with changed settings.
    ///
    /// # Errors
    /// A setting that a run must keep; a config that is wrong with the changes.
    pub fn changed(path: &Path, text: String, changes: &[Override]) -> Result<String> {
        for Override { keys, written, .. } in changes {
            let key = keys.join(".");
            if !CHANGEABLE.contains(&key.as_str()) {
                let reason = format!("--set {written}: a run that is continued keeps {key}");
                let advice = format!("it may change {}", CHANGEABLE.join(", "));
                return Err(Error::usage(reason).advise(advice).into());
            }
        }
        let sources =
            Self { file: Some((path.to_owned(), text)), overrides: changes.to_vec(), ..Self::default() };
        let mut table = sources.file_table()?;
        sources.apply_overrides(&mut table);
        sources.deserialize(table.clone())?;
        toml::to_string(&table).map_err(|error| NnError::file(path, error))
    }

    /// Returns the config of a file that sets everything, as a run freezes it.
    ///
    /// # Errors
    /// As of [`ConfigSources::config`].
    pub fn frozen(path: PathBuf, text: String) -> Result<RunConfig> {
        let sources = Self { file: Some((path, text)), ..Self::default() };
        sources.deserialize(sources.file_table()?)
    }

    fn deserialize(&self, merged: Table) -> Result<RunConfig> {
        if !merged.contains_key("data") {
            return Err(self.wrong("the section [data] is missing; `ssn init DIR` writes one".to_owned()));
        }
        let config: RunConfig = serde_path_to_error::deserialize(Value::Table(merged))
            .map_err(|error| self.wrong(self.explain(&error)))?;
        config.check().map_err(|error| self.wrong(error.to_string()))?;
        Ok(RunConfig { data: config.data.seen_from(self.folder()), ..config })
    }

    /// The folder of the config file.
    fn folder(&self) -> &Path {
        self.file.as_ref().and_then(|(path, _)| path.parent()).unwrap_or(Path::new(""))
    }

    /// A sentence for each key that the file or an override sets, and that has no effect on this config; a preset's keys
    /// may serve other heads.
    pub fn without_effect(&self, config: &RunConfig) -> Vec<String> {
        let set = config.without_effect().into_iter().filter(|(key, _)| self.sets(key));
        set.map(|(key, reason)| format!("{}{key} has no effect: {reason}", self.place(&parts_of(key))))
            .collect()
    }

    /// Whether the file or an override sets a key, such as `data.split.folds`.
    pub fn sets(&self, key: &str) -> bool {
        let mut table = self.file_table().unwrap_or_default();
        self.apply_overrides(&mut table);
        has(&table, key)
    }

    fn apply_overrides(&self, table: &mut Table) {
        for setting in &self.overrides {
            set(table, &setting.keys, &setting.value, String::new());
        }
    }

    /// The sections of the file that are about training, and win over a preset's.
    pub fn learning_sections(&self) -> Vec<String> {
        let table = self.file_table().unwrap_or_default();
        let keys = table.keys().filter(|key| !["data", PRESET].contains(&key.as_str()));
        keys.map(|key| format!("[{key}]")).collect()
    }

    fn file_table(&self) -> Result<Table> {
        let Some((_, text)) = &self.file else { return Ok(Table::new()) };
        toml::from_str(text).map_err(|error| self.wrong(explain(text, &error)))
    }

    /// The preset that was asked for, or the one that the file names.
    fn preset(&self, file: &mut Table) -> Result<RunPreset> {
        let named = match file.remove(PRESET) {
            None => RunPreset::General,
            Some(Value::String(name)) => RunPreset::parse(&name).map_err(|reason| self.wrong(reason))?,
            Some(other) => return Err(self.wrong(format!("preset is {other}, but it must be a name"))),
        };
        Ok(self.preset.unwrap_or(named))
    }

    /// Returns the mistake in a value, and the place where it was written.
    fn explain(&self, error: &serde_path_to_error::Error<toml::de::Error>) -> String {
        let path = error.path().to_string();
        let mut keys: Vec<String> =
            path.split('.').filter(|key| !matches!(*key, "" | "?")).map(str::to_owned).collect();
        let message = error.inner().message();
        // An unknown key is not always part of the path of the error.
        if let Some(key) = unknown_key(message).filter(|key| keys.last().is_none_or(|last| last != key)) {
            keys.push(key.to_owned());
        }
        let hint = match &keys[..] {
            [key] => Some(sections_of(key)).filter(|names| !names.is_empty()),
            _ => None,
        };
        let message = hint.map_or_else(
            || with_hint(message),
            |names| format!("{message}; did you mean {}?", names.join(" or ")),
        );
        format!("{}{}: {message}", self.place(&keys), keys.join("."))
    }

    /// Where a key was set: the override, or the line of the file.
    fn place(&self, keys: &[String]) -> String {
        let is_here = |setting: &&Override| {
            let shorter = setting.keys.len().min(keys.len());
            setting.keys[..shorter] == keys[..shorter]
        };
        match self.overrides.iter().rev().find(is_here) {
            Some(setting) => format!("--set {}: ", setting.written),
            None => self.line(keys).map_or(String::new(), |line| format!("line {line}: ")),
        }
    }

    /// The line of the file where a key, or the longest part of it that is there, is written.
    fn line(&self, keys: &[String]) -> Option<usize> {
        let (_, text) = self.file.as_ref()?;
        let document = DeTable::parse(text).ok()?;
        let (mut table, mut line) = (document.get_ref(), None);
        for key in keys {
            let (name, value) = table.iter().find(|(name, _)| name.get_ref().as_ref() == *key)?;
            line = Some(line_of(text, name.span().start));
            match value.get_ref().as_table() {
                Some(inner) => table = inner,
                None => break,
            }
        }
        line
    }

    fn wrong(&self, reason: String) -> NnError {
        let path = self.file.as_ref().map_or_else(|| "the settings".into(), |(path, _)| path.clone());
        Error::data(path, reason).into()
    }
}

/// Returns the whole names of a key in the sections that have it.
fn sections_of(key: &str) -> Vec<String> {
    let schema = schema_for!(RunConfig).to_value();
    let resolved = |section: &serde_json::Value| {
        let path = section["$ref"].as_str().and_then(|path| path.strip_prefix('#'));
        path.and_then(|path| schema.pointer(path)).unwrap_or(section)["properties"][key].is_object()
    };
    let sections = schema["properties"].as_object().into_iter().flatten();
    sections.filter(|(_, section)| resolved(section)).map(|(name, _)| format!("`{name}.{key}`")).collect()
}

/// The parts of a dotted key.
fn parts_of(key: &str) -> Vec<String> {
    key.split('.').map(str::to_owned).collect()
}

/// Whether a table has a dotted key.
fn has(table: &Table, key: &str) -> bool {
    match key.split_once('.') {
        None => table.contains_key(key),
        Some((first, rest)) => {
            table.get(first).and_then(Value::as_table).is_some_and(|inner| has(inner, rest))
        }
    }
}

/// The table that holds a dotted key if there is one, and the last part of the key.
fn holder<'a, 'k>(table: &'a mut Table, key: &'k str) -> Option<(&'a mut Table, &'k str)> {
    match key.split_once('.') {
        None => Some((table, key)),
        Some((first, rest)) => holder(table.get_mut(first)?.as_table_mut()?, rest),
    }
}

/// Makes the path of the TorchScript file of a config start at `folder`. Returns `true` if it names one.
pub fn join_torchscript(config: &mut Table, folder: &Path) -> bool {
    let path = holder(config, TORCHSCRIPT).and_then(|(backbone, name)| backbone.get_mut(name));
    let Some(Value::String(path)) = path else { return false };
    *path = folder.join(&*path).to_string_lossy().into_owned();
    true
}

/// Whether a source's table takes the place of what is there, rather than changing some keys of it: where it is one choice.
/// The loss is another one only where its kind is named and differs.
fn replaces(path: &str, old: &Table, new: &Table) -> bool {
    if path == "loss" {
        return new.contains_key(KIND) && new.get(KIND) != old.get(KIND);
    }
    CHOICES.contains(&path) || old.contains_key(KIND) || new.contains_key(KIND)
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Merges a source into what is there.
fn merge(base: &mut Table, source: Table, path: &str) {
    for (key, value) in source {
        let path = join(path, &key);
        match (base.get_mut(&key), value) {
            (Some(Value::Table(old)), Value::Table(new)) if !replaces(&path, old, &new) => {
                merge(old, new, &path);
            }
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

/// Sets one value; choices that the path leaves are replaced.
fn set(table: &mut Table, keys: &[String], value: &Value, path: String) {
    let Some((key, rest)) = keys.split_first() else { return };
    if rest.is_empty() {
        table.insert(key.clone(), value.clone());
        return;
    }
    let path = join(&path, key);
    let inner = table.entry(key.clone()).or_insert_with(|| Value::Table(Table::new()));
    let fits = inner
        .as_table()
        .is_some_and(|inner| !CHOICES.contains(&path.as_str()) || inner.contains_key(&rest[0]));
    if !fits {
        *inner = Value::Table(Table::new());
    }
    if let Value::Table(inner) = inner {
        set(inner, rest, value, path);
    }
}
