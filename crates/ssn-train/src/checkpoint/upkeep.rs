//! What leaves the folder of checkpoints: generations that are old, damaged, or were never finished.

use std::fs;
use std::path::PathBuf;

use super::{Checkpoints, Damaged, problem, unsaved};
use crate::error::Result;

/// What a generation that does not verify is called before its number, so that it is in nobody's way and can be
/// looked into.
const DAMAGED: &str = "damaged-";
/// What names begin with while a file or folder is written.
const WRITTEN: &str = ".partial-";
/// What names begin with while a folder is removed.
const REMOVED: &str = ".removed-";
/// How many of the newest generations are kept, beside the best.
const KEPT: usize = 2;

impl Checkpoints {
    /// Removes what a process that was killed had begun to write or to remove. For the one process that works on the
    /// run: what another is about to write looks the same.
    pub fn remove_unfinished(&self) -> Result<()> {
        for entry in fs::read_dir(&self.folder).map_err(|error| problem(&self.folder, error))? {
            let entry = entry.map_err(|error| problem(&self.folder, error))?;
            let name = entry.file_name();
            if [WRITTEN, REMOVED].iter().any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
            {
                let path = entry.path();
                let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
                removed.map_err(|error| unsaved(&path, error))?;
            }
        }
        Ok(())
    }

    /// Takes generations that do not verify out of the way of new ones of their steps; gives their new places.
    pub fn set_aside(&self, damaged: &[Damaged]) -> Result<Vec<PathBuf>> {
        let aside = |damaged: &Damaged| {
            let (path, aside) = (self.path_of(damaged.step), self.named(DAMAGED, damaged.step));
            if aside.exists() {
                fs::remove_dir_all(&aside).map_err(|error| unsaved(&aside, error))?;
            }
            fs::rename(&path, &aside).map_err(|error| unsaved(&path, error))?;
            Ok(aside)
        };
        damaged.iter().map(aside).collect()
    }

    /// Removes generations that are neither new nor the best.
    pub(super) fn prune(&self, best: Option<u64>) -> Result<()> {
        let steps = self.steps()?;
        let old = &steps[..steps.len().saturating_sub(KEPT)];
        for step in old.iter().filter(|step| Some(**step) != best) {
            let path = self.path_of(*step);
            // Renamed first, so that a folder with a generation's name is never half removed.
            let condemned = self.folder.join(format!("{REMOVED}{step}"));
            fs::rename(&path, &condemned).map_err(|error| unsaved(&path, error))?;
            fs::remove_dir_all(&condemned).map_err(|error| unsaved(&condemned, error))?;
        }
        Ok(())
    }
}
