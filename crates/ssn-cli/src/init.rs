//! `ssn init`: says what a dataset is and writes a commented config for it.

use std::path::{Path, PathBuf};

use serde::Serialize;
use ssn_data::template::{describe, template};
use ssn_data::{Case, Dataset};
use ssn_io::write_atomically;

use crate::args::{Global, InitArgs};
use crate::exit::{Exit, Failure, json, print};

/// What `--json` prints.
#[derive(Serialize)]
struct Found<'a> {
    root: &'a Path,
    layout: &'static str,
    cases: usize,
    channels: &'a [String],
    classes: &'a [String],
    raters: usize,
    size: [usize; 3],
    config: &'a Path,
}

/// Recognizes the dataset, writes the config, and prints what was found.
pub fn run(args: &InitArgs, global: &Global) -> Result<Exit, Failure> {
    ssn_eval::check_free(&args.out, args.overwrite)?;
    let dataset = Dataset::open(&args.dataset)?;
    let first = first_readable(&dataset)?;
    let text = template(&dataset, &path_from(&args.out, &args.dataset), &first);
    write_atomically(&args.out, |out| out.write_all(text.as_bytes()))
        .map_err(|error| Failure::new(Exit::Io, error))?;
    if global.json {
        let found = Found {
            root: &dataset.root,
            layout: dataset.layout.name(),
            cases: dataset.entries.len(),
            channels: &dataset.channels,
            classes: &dataset.classes,
            raters: first.raters.len(),
            size: first.shape,
            config: &args.out,
        };
        return print(&json(&found)?);
    }
    let config = args.out.display();
    print(&format!("{}wrote {config}; next: ssn check {config}\n", describe(&dataset, &first)))
}

/// The first case that loads: one damaged file is for `ssn check` to tell, not a reason to stop here.
pub fn first_readable(dataset: &Dataset) -> Result<Case, Failure> {
    let mut first_error = None;
    for index in 0..dataset.entries.len() {
        match dataset.load_raw(index) {
            Ok(case) => return Ok(case),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Err(first_error.map_or_else(|| Failure::new(Exit::BadData, "the dataset has no cases"), Failure::from))
}

/// The path of the dataset as the config file sees it.
fn path_from(config: &Path, dataset: &Path) -> PathBuf {
    let beside = config.parent().is_none_or(|folder| folder.as_os_str().is_empty());
    if beside && dataset.is_relative() {
        return dataset.to_owned();
    }
    dataset.canonicalize().unwrap_or_else(|_| dataset.to_owned())
}
