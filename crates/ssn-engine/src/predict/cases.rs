//! Which cases are predicted: a part of the run's dataset, of another dataset, or images alone.

use std::path::{Path, PathBuf};

use ssn_cli::args::{Part, PredictArgs};
use ssn_cli::datasets::failure;
use ssn_cli::{Exit, Failure};
use ssn_data::{DataConfig, Dataset, Known};
use ssn_net::run::{CONFIG, Trained};

/// The cases to predict.
pub struct Chosen {
    /// Their dataset.
    pub dataset: Dataset,
    /// Their places in it.
    pub cases: Vec<usize>,
    /// The part of the dataset that they are.
    pub split: String,
    /// The config or dataset that an evaluation reads.
    pub named: PathBuf,
}

/// Finds the cases that the arguments name.
pub fn choose(args: &PredictArgs, trained: &Trained) -> Result<Chosen, Failure> {
    let chosen = match (args.data.as_slice(), &trained.data) {
        ([], None) => {
            let message = "a bundle has no dataset of its own; name a dataset, a config or images";
            return Err(Failure::new(Exit::Usage, message));
        }
        ([], Some(data)) => divided(data, &args.model.join(CONFIG), args.split)?,
        ([path], _) if is_config(path) => {
            divided(&DataConfig::read(path).map_err(failure)?, path, args.split)?
        }
        (paths, _) => given(paths, args.split, trained)?,
    };
    check_channels(&chosen.dataset, trained)?;
    match chosen.cases.is_empty() {
        false => Ok(chosen),
        true => Err(Failure::new(
            Exit::BadData,
            format!("{} has no case in the part {}", chosen.dataset.root.display(), chosen.split),
        )),
    }
}

fn is_config(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
}

/// A part of the dataset of a config.
fn divided(data: &DataConfig, config: &Path, part: Option<Part>) -> Result<Chosen, Failure> {
    let dataset = data.open().map_err(failure)?;
    let (parts, _) = data.parts(&dataset).map_err(failure)?;
    let part = part.unwrap_or(Part::Test);
    let wanted = |index: &usize| part.split().is_none_or(|split| parts[*index] == split);
    let cases = (0..parts.len()).filter(wanted).collect();
    Ok(Chosen { dataset, cases, split: part.name().to_owned(), named: absolute(config) })
}

fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// What the command line names: a dataset, with or without labels.
fn given(paths: &[PathBuf], part: Option<Part>, trained: &Trained) -> Result<Chosen, Failure> {
    let [path] = paths else {
        return Err(Failure::new(Exit::Usage, "name one dataset"));
    };
    let known = Known { classes: Some(trained.about.classes.clone()), ..Known::default() };
    let dataset = Dataset::open_with(path, &known).map_err(failure)?;
    match part {
        None | Some(Part::All) => Ok(Chosen {
            cases: (0..dataset.entries.len()).collect(),
            dataset,
            split: Part::All.name().to_owned(),
            named: absolute(path),
        }),
        Some(part) => Err(Failure::new(
            Exit::Usage,
            format!("--split {} needs a division: name a config instead of the dataset", part.name()),
        )),
    }
}

/// A network sees channels by their place: those of another dataset must be as many.
fn check_channels(dataset: &Dataset, trained: &Trained) -> Result<(), Failure> {
    let (found, expected) = (&dataset.channels, &trained.about.channels);
    if found.len() == expected.len() {
        return Ok(());
    }
    let message = format!(
        "{} has {} channels ({}), but the network was trained with {} ({}); choose them with data.channels in a config",
        dataset.root.display(),
        found.len(),
        found.join(", "),
        expected.len(),
        expected.join(", ")
    );
    Err(Failure::new(Exit::BadData, message))
}
