//! The files of an evaluation.

use std::path::{Path, PathBuf};

use serde_json::Value;
use ssn_eval::evaluation::cases_csv;
use ssn_eval::{Evaluation, Scored, Settings, file_stem};
use ssn_io::{Limits, read_bytes, write_atomically};

use super::default_folder;
use crate::args::EvaluateArgs;
use crate::exit::{Exit, Failure, json};

/// Where everything goes.
pub(super) struct Folder {
    root: PathBuf,
}

impl Folder {
    /// Makes the folder, or goes on with one that is of the same settings.
    ///
    /// # Errors
    /// When it holds an evaluation with other settings, unless it may be replaced.
    pub(super) fn open(args: &EvaluateArgs, settings: &Settings) -> Result<Self, Failure> {
        let root = args.out.clone().unwrap_or_else(|| default_folder(&args.predictions));
        let folder = Self { root };
        let there = read_bytes(&folder.summary(), &Limits::default()).ok();
        let there = there.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
        let asked = serde_json::to_value(settings).map_err(|error| Failure::new(Exit::Internal, error))?;
        if let Some(there) = there.filter(|_| !args.overwrite)
            && let Some((what, old, new)) = difference("", &there["settings"], &asked)
        {
            let message = format!(
                "{} holds an evaluation with {what} {old}, but {new} is asked for; choose another folder with --out \
                 or replace it with --overwrite",
                folder.root.display()
            );
            return Err(Failure::new(Exit::Usage, message));
        }
        let cases = folder.root.join("cases");
        std::fs::create_dir_all(&cases).map_err(|error| {
            Failure::new(Exit::Io, format!("cannot create the folder {}: {error}", cases.display()))
        })?;
        Ok(folder)
    }

    /// The file that keeps the scores of a case.
    pub(super) fn record(&self, id: &str) -> PathBuf {
        self.root.join("cases").join(file_stem(id) + ".json")
    }

    /// The table of all cases.
    pub(super) fn cases_csv(&self) -> PathBuf {
        self.root.join("cases.csv")
    }

    fn summary(&self) -> PathBuf {
        self.root.join("summary.json")
    }

    /// Writes the table of cases, and then the summary.
    pub(super) fn write(&self, evaluation: &Evaluation, cases: &[Scored]) -> Result<(), Failure> {
        write_text(&self.cases_csv(), &cases_csv(cases))?;
        write_text(&self.summary(), &json(evaluation)?)
    }
}

fn write_text(path: &Path, text: &str) -> Result<(), Failure> {
    write_atomically(path, |out| out.write_all(text.as_bytes()))
        .map_err(|error| Failure::new(Exit::Io, error))
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
