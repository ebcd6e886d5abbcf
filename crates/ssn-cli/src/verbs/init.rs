//! `ssn init`: says what a dataset is and writes a commented config for it.

use std::path::{Path, PathBuf};

use serde::Serialize;
use ssn_data::config::template::{batch_sections, data_sections, describe, suggest_normalization};
use ssn_data::{Case, Dataset, Layout};
use ssn_eval::ErrorKind;
use ssn_io::write_atomically;

use crate::answer::Answer;
use crate::args::InitArgs;
use crate::exit::Failure;

/// What `--json` prints.
#[derive(Serialize)]
struct Found<'a> {
    root: &'a Path,
    layout: Layout,
    cases: usize,
    channels: &'a [String],
    classes: &'a [String],
    raters: usize,
    size: [usize; 3],
    left_out: Vec<String>,
    config: &'a Path,
}

/// Recognizes the dataset and writes the config.
pub fn answer(args: &InitArgs) -> Result<Answer, Failure> {
    ssn_eval::check_free(&args.out, args.overwrite)?;
    let dataset = Dataset::open(&args.dataset)?;
    let first = dataset.first_readable()?;
    let text = general_config(&dataset, &path_from(&args.out, &args.dataset), &first);
    write_atomically(&args.out, |out| out.write_all(text.as_bytes()))
        .map_err(|error| Failure::new(ErrorKind::Io, error))?;
    let left_out: Vec<String> = dataset.left_out().into_iter().map(|finding| finding.reason).collect();
    let found = Found {
        root: &dataset.root,
        layout: dataset.layout,
        cases: dataset.entries.len(),
        channels: &dataset.channels,
        classes: &dataset.classes,
        raters: first.raters.len(),
        size: first.shape,
        left_out,
        config: &args.out,
    };
    let config = args.out.display();
    let left_out: String = found.left_out.iter().map(|reason| format!("  {reason}\n")).collect();
    let text = format!("{}{left_out}wrote {config}; next: ssn check {config}\n", describe(&dataset, &first));
    Answer::new(text, &found)
}

/// The head of a config: what to do with the file, and the preset.
pub fn config_head(is_2d: bool, preset: &str) -> String {
    format!(
        "# Check the dataset with `ssn check`, train with `ssn train`, each with this file's name.\n\n\
         # The settings that this file does not name: general; small for a first look on a laptop; or the paper's\n\
         # experiment, {}.\n\
         preset = \"{preset}\"\n\n",
        if is_2d { "lidc or lidc-as-coded" } else { "brats or brats-60mm" }
    )
}

/// The end of a config: in comments, so that another preset can still say it.
const FREQUENT: &str = "
# What the preset says, and people change first; remove the # to change a line.
# The network is planned for the patches; `width` is the number of channels of its finest level.
# [model]
# plan = { width = 32 }
# stochastic with a rank (0: independent voxels), or \"deterministic\".
# head = { stochastic = { rank = 10, initial_scale = 0.1 } }
# [training]
# steps = 20000
# seed = 0
# Steps between validations, each with GED² and Dice; the best checkpoint is kept.
# validate_every = 1000
";

/// A commented config with the preset `general`: what was found, and the settings that people change first.
pub fn general_config(dataset: &Dataset, path: &Path, first: &Case) -> String {
    let is_2d = first.shape[0] == 1;
    let scale = suggest_normalization(dataset, first);
    config_head(is_2d, "general")
        + &data_sections(dataset, path, first, scale)
        + "\n# What follows suits the preset above; with another one, remove it.\n"
        + &batch_sections(dataset, first)
        + FREQUENT
}

/// The path of the dataset as the config file sees it.
fn path_from(config: &Path, dataset: &Path) -> PathBuf {
    let beside = config.parent().is_none_or(|folder| folder.as_os_str().is_empty());
    if beside && dataset.is_relative() {
        return dataset.to_owned();
    }
    dataset.canonicalize().unwrap_or_else(|_| dataset.to_owned())
}
