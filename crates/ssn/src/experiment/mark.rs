//! What the results in a folder depend on, as the file that marks it says.
//!
//! An experiment may grow: rows, seeds and comments can be added. Where a setting changed, results would no longer
//! belong to what the file says, so that is refused, row by row.

use ssn_eval::CheckpointChoice;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use ssn_data::SyntheticConfig;
use toml::Table;

use super::file::{Row, last};
use super::plan::{EXPERIMENT, Plan};
use crate::error::{Error, ErrorKind, Result};
use crate::work_folder::{is_begun, occupied, write_file};

/// What is said of a folder that belongs to something else.
pub const ANOTHER: &str = "another experiment, or this one with other settings, is in it";
/// What stands above the settings.
const HEAD: &str = "# What the results in this folder depend on; `ssn run-experiment` compares it with what it is asked for.\n";

/// The settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    samples: usize,
    folds: usize,
    #[serde(default = "last")]
    checkpoint: CheckpointChoice,
    masks: Vec<String>,
    /// The synthetic images; nothing for a dataset, whose path is in the config.
    images: Option<SyntheticConfig>,
    config: Table,
    rows: Vec<RowMark>,
}

/// Those of a row.
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
    /// What a plan asks for.
    fn of(plan: &Plan) -> Result<Self> {
        Ok(Self {
            samples: plan.samples,
            folds: plan.folds,
            checkpoint: plan.checkpoint,
            masks: plan.masks.iter().map(|(name, classes)| format!("{name}={}", classes.join("+"))).collect(),
            images: plan.images.clone(),
            config: toml::from_str(&plan.config).map_err(internal)?,
            rows: plan.rows.iter().map(RowMark::of).collect(),
        })
    }

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

/// Whether the folder of a plan was begun; marks it if it was.
///
/// # Errors
/// A folder with something else, or with a row that was trained with other settings.
pub fn goes_on(plan: &Plan) -> Result<bool> {
    let path = plan.out.join(EXPERIMENT);
    if !path.exists() {
        return is_begun(&plan.out, EXPERIMENT, "", ANOTHER);
    }
    let mut asked = Mark::of(plan)?;
    let text = ssn_io::read_text(&path).map_err(|_| occupied(&plan.out, ANOTHER))?;
    // Folders used to be marked with the whole file.
    if text != plan.mark {
        let there: Mark = toml::from_str(&text).map_err(|_| occupied(&plan.out, ANOTHER))?;
        if let Some(what) = asked.difference(&there) {
            return Err(occupied(&plan.out, &format!("{ANOTHER}: {what} differ")));
        }
        for old in there.rows {
            match asked.rows.iter().position(|row| row.folder == old.folder) {
                Some(number) if asked.rows[number] != old => check_changed(plan, number)?,
                Some(_) => {}
                // What is left out now may come back.
                None => asked.rows.push(old),
            }
        }
    }
    let new = asked.text()?;
    if new != text {
        write_file(&path, new.as_bytes())?;
    }
    Ok(true)
}

/// Marks the folder of a plan that begins.
pub fn begin(plan: &Plan) -> Result<()> {
    write_file(&plan.out.join(EXPERIMENT), Mark::of(plan)?.text()?.as_bytes())
}

/// Refuses a row with other settings than before, unless nothing is left of it.
fn check_changed(plan: &Plan, number: usize) -> Result<()> {
    let row = &plan.rows[number];
    let runs = plan.out.join("runs").join(row.slug());
    if !holds_anything(&runs) {
        return Ok(());
    }
    let message = format!(
        "the row {:?} was trained with other settings; undo the change, remove {} to train it anew, or name another \
         folder with --out",
        row.label(),
        runs.display()
    );
    Err(Error::new(ErrorKind::Usage, message))
}

fn holds_anything(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

fn internal(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Internal, error)
}
