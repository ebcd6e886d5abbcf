//! The libtorch that the engine will run with.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::engine::loader::libraries_of;

/// The version that the engine is built for.
pub const VERSION: &str = "2.11.0";

/// The library that every computation needs.
const LIBTORCH: &str = "libtorch_cpu.so";

/// What is known of the engine's libtorch.
#[derive(Debug, Default, Serialize)]
pub struct Libtorch {
    /// The folder of its libraries.
    pub folder: Option<PathBuf>,
    /// The version that the folder states.
    pub version: Option<String>,
    /// Names of libraries that the engine needs and that are not found.
    pub missing: Vec<String>,
    /// What the loader says of a library that is too old for the engine.
    pub too_old: Option<String>,
}

impl Libtorch {
    /// Asks the dynamic loader for the libraries of `engine`.
    pub fn of(engine: &Path) -> Self {
        let libraries = libraries_of(engine, &[]);
        let path = libraries.found.iter().find(|path| path.ends_with(LIBTORCH));
        let folder = path.and_then(|path| Some(path.parent()?.to_owned()));
        let version = folder.as_deref().and_then(stated_version);
        Self { folder, version, missing: libraries.missing, too_old: libraries.too_old }
    }

    /// Why the engine cannot run with it, with what to do; nothing if it can.
    pub fn problem(&self) -> Option<String> {
        let remedy = "run `cargo xtask setup` in the checkout that the engine was built in, or name the folder of \
                      the right libraries in LD_LIBRARY_PATH";
        if !self.missing.is_empty() {
            let verb = if self.missing.len() == 1 { "is" } else { "are" };
            return Some(format!("{} {verb} not found; {remedy}", self.missing.join(", ")));
        }
        if let Some(said) = &self.too_old {
            return Some(format!("{said}; build it again on this machine"));
        }
        match (&self.version, &self.folder) {
            (Some(found), Some(folder)) if found.split('+').next() != Some(VERSION) => {
                let folder = folder.display();
                Some(format!("{folder} holds libtorch {found}, and {VERSION} is needed; {remedy}"))
            }
            _ => None,
        }
    }
}

/// The version that a folder of libraries states beside it: `build-version`, or `version.py` of a PyTorch.
fn stated_version(lib: &Path) -> Option<String> {
    let root = lib.parent()?;
    if let Ok(text) = std::fs::read_to_string(root.join("build-version")) {
        return Some(text.trim().to_owned());
    }
    let text = std::fs::read_to_string(root.join("version.py")).ok()?;
    let quoted = text.lines().find_map(|line| line.strip_prefix("__version__ = "))?;
    Some(quoted.trim_matches(['\'', '"']).to_owned())
}
