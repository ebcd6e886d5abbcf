//! Which cases are predicted: a part of the run's dataset, of another dataset, or images alone.

use std::path::{Path, PathBuf};

use ssn_cli::args::{Part, PredictArgs};
use ssn_cli::datasets::{failure, is_config};
use ssn_cli::{Exit, Failure};
use ssn_data::{DataConfig, Dataset};
use ssn_nn::model::weights::About;
use ssn_train::run::{CONFIG, Trained};

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
            format!(
                "{} has no case in the part {}; choose another with --split validation, train or all",
                chosen.dataset.root.display(),
                chosen.split
            ),
        )),
    }
}

/// A part of the dataset of a config.
fn divided(data: &DataConfig, config: &Path, part: Option<Part>) -> Result<Chosen, Failure> {
    let dataset = data.open().map_err(failure)?;
    let (parts, _) = data.split.parts(&dataset).map_err(failure)?;
    let dataset = dataset.with_optional_labels();
    let part = part.unwrap_or(Part::Test);
    let wanted = |index: &usize| part.split().is_none_or(|split| parts[*index] == split);
    let cases = (0..parts.len()).filter(wanted).collect();
    Ok(Chosen { dataset, cases, split: part.name().to_owned(), named: absolute(config) })
}

fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// What the command line names: images, or a dataset with or without labels.
fn given(paths: &[PathBuf], part: Option<Part>, trained: &Trained) -> Result<Chosen, Failure> {
    if let Some(part) = part.filter(|part| *part != Part::All) {
        let message = format!("--split {} needs a division: name a config instead of files", part.name());
        return Err(Failure::new(Exit::Usage, message));
    }
    let About { channels, classes, .. } = &trained.about;
    let mut dataset = Dataset::of_images(paths, channels, classes).map_err(failure)?;
    if let Some(coding) = trained.data.as_ref().and_then(DataConfig::coding) {
        dataset.reading.coding = coding;
    }
    for finding in &dataset.findings {
        eprintln!("{}: {}", finding.severity, finding.reason);
    }
    let named = absolute(paths.first().map_or(Path::new("."), PathBuf::as_path));
    let cases = (0..dataset.entries.len()).collect();
    Ok(Chosen { dataset, cases, split: Part::All.name().to_owned(), named })
}

/// A network sees channels by their place: those of another dataset must be as many.
fn check_channels(dataset: &Dataset, trained: &Trained) -> Result<(), Failure> {
    let (found, expected) = (&dataset.channels, &trained.about.channels);
    let same_set = found.iter().all(|name| expected.contains(name));
    if found.len() == expected.len() && same_set && found != expected {
        let message = format!(
            "the channels of {} come as {}, but the network was trained with {}; set data.channels to that order",
            dataset.root.display(),
            found.join(", "),
            expected.join(", ")
        );
        return Err(Failure::new(Exit::BadData, message));
    }
    if found.len() == expected.len() {
        if !same_set {
            eprintln!("note: channels {} are taken for {}", found.join(", "), expected.join(", "));
        }
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
