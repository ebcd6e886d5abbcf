//! A config put together from layers: a preset, a file, and single settings of the command line.
//!
//! Later layers win, key by key. What is wrong is told with the layer and the line that it came from.

use std::path::{Path, PathBuf};

use ssn_data::config::{UnknownName, check_sections, explain, line_of};
use toml::de::DeTable;
use toml::{Table, Value};

use super::config::RunConfig;
use super::presets::RunPreset;
use crate::error::{Result, TrainError};

/// Tables that are one choice: a layer that names another choice replaces the whole.
const CHOICES: [&str; 4] = ["model.backbone", "model.head", "optimizer.method", "optimizer.decay"];
/// The key before all sections that names a preset.
const PRESET: &str = "preset";
/// The key of tables that say themselves which choice they are.
const KIND: &str = "kind";

/// A setting of the command line, `a.b.c=value`.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    keys: Vec<String>,
    value: Value,
    written: String,
}

impl Setting {
    /// Reads `a.b.c=value`. A value that is no TOML is a text.
    pub fn parse(written: &str) -> Result<Self, String> {
        let (path, value) =
            written.split_once('=').ok_or("expected KEY=VALUE, such as training.steps=1000")?;
        let keys: Vec<String> = path.trim().split('.').map(str::to_owned).collect();
        if keys.iter().any(String::is_empty) {
            return Err(format!("`{path}` is no key, such as training.steps"));
        }
        let value = value.trim();
        let table: Option<Table> = toml::from_str(&format!("value = {value}")).ok();
        let parsed = table.and_then(|mut table| table.remove("value").filter(|_| table.is_empty()));
        let value = parsed.unwrap_or_else(|| Value::String(value.to_owned()));
        Ok(Self { keys, value, written: written.to_owned() })
    }
}

/// What a config is put together from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Layers {
    /// The preset; without it, the one that the file names, or `general`.
    pub preset: Option<RunPreset>,
    /// The text of a config file, and the name that messages give it.
    pub file: Option<(PathBuf, String)>,
    /// Settings of the command line.
    pub settings: Vec<Setting>,
}

impl Layers {
    /// The config; relative paths start at the config file.
    ///
    /// # Errors
    /// [`TrainError::Config`] with one sentence about the first thing that is wrong, and where it stands.
    pub fn config(&self) -> Result<RunConfig> {
        let mut table = self.file_table()?;
        let preset = self.preset(&mut table)?;
        let mut merged =
            parse(preset.text()).map_err(|error| self.wrong(explain::<RunConfig>(preset.text(), &error)))?;
        merge(&mut merged, table, "");
        for setting in &self.settings {
            set(&mut merged, &setting.keys, &setting.value, String::new());
        }
        self.read(merged)
    }

    /// The config of a file that says everything by itself, as a run freezes it.
    pub fn frozen(path: PathBuf, text: String) -> Result<RunConfig> {
        let layers = Self { file: Some((path, text)), ..Self::default() };
        layers.read(layers.file_table()?)
    }

    fn read(&self, merged: Table) -> Result<RunConfig> {
        check_sections::<RunConfig>(&merged).map_err(|reason| self.wrong(reason))?;
        if !merged.contains_key("data") {
            return Err(self.wrong("the section [data] is missing; `ssn init DIR` writes one".to_owned()));
        }
        let config: RunConfig = serde_path_to_error::deserialize(Value::Table(merged.clone()))
            .map_err(|error| self.wrong(self.explain(&merged, &error)))?;
        config.check().map_err(|error| self.wrong(error.to_string()))?;
        let folder = self.file.as_ref().and_then(|(path, _)| path.parent()).unwrap_or(Path::new(""));
        Ok(RunConfig { data: config.data.seen_from(folder), ..config })
    }

    /// The sections of the file that are about learning, and win over a preset's.
    pub fn learning_sections(&self) -> Vec<String> {
        let table = self.file_table().unwrap_or_default();
        table
            .keys()
            .filter(|key| !["data", PRESET].contains(&key.as_str()))
            .map(|key| format!("[{key}]"))
            .collect()
    }

    fn file_table(&self) -> Result<Table> {
        let Some((_, text)) = &self.file else { return Ok(Table::new()) };
        parse(text).map_err(|error| self.wrong(explain::<RunConfig>(text, &error)))
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

    /// What is wrong with a value, and where it was written.
    fn explain(&self, merged: &Table, error: &serde_path_to_error::Error<toml::de::Error>) -> String {
        let message = error.inner().message();
        let path = error.path().to_string();
        let mut keys: Vec<&str> = path.split('.').filter(|key| *key != "?").collect();
        let unknown = UnknownName::find::<RunConfig>(merged)
            .filter(|unknown| unknown.keys.iter().zip(&keys).all(|(found, key)| found == key));
        // An unknown key is not always part of the path of the error.
        if let Some(UnknownName { keys: found, name, .. }) = &unknown
            && found.last() == Some(name)
        {
            keys = found.iter().map(String::as_str).collect();
        }
        let is_here = |setting: &&Setting| {
            let shorter = setting.keys.len().min(keys.len());
            setting.keys[..shorter] == keys[..shorter]
        };
        let place = match self.settings.iter().rev().find(is_here) {
            Some(setting) => format!("--set {}: ", setting.written),
            None => self.line(&keys).map_or(String::new(), |line| format!("line {line}: ")),
        };
        let hint = unknown.as_ref().map_or(String::new(), UnknownName::hint);
        format!("{place}{}: {message}{hint}", keys.join("."))
    }

    /// The line of the file where a key, or the longest part of it that is there, is written.
    fn line(&self, keys: &[&str]) -> Option<usize> {
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

    fn wrong(&self, reason: String) -> TrainError {
        let path = self.file.as_ref().map_or_else(|| "the settings".into(), |(path, _)| path.clone());
        TrainError::Config { path, reason }
    }
}

fn parse(text: &str) -> Result<Table, toml::de::Error> {
    toml::from_str(text)
}

/// Whether the table at a path is one choice, given what it holds.
fn is_choice(path: &str, table: &Table) -> bool {
    CHOICES.contains(&path) || table.contains_key(KIND)
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Puts a layer over what is there.
fn merge(base: &mut Table, layer: Table, path: &str) {
    for (key, value) in layer {
        let path = join(path, &key);
        match (base.get_mut(&key), value) {
            (Some(Value::Table(old)), Value::Table(new))
                if !is_choice(&path, old) && !is_choice(&path, &new) =>
            {
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
