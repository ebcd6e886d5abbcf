//! Which cases are predicted: a part of the run's dataset, of another dataset, or images alone.

use std::path::Path;

use ssn_cli::args::{Part, PredictArgs};
use ssn_cli::datasets::failure;
use ssn_cli::{Exit, Failure};
use ssn_data::{DataConfig, Dataset, Known, Split};
use ssn_net::run::Trained;

/// The cases to predict.
pub struct Chosen {
    /// Their dataset.
    pub dataset: Dataset,
    /// Their places in it.
    pub cases: Vec<usize>,
    /// The part of the dataset that they are.
    pub split: String,
}

/// Finds the cases that the arguments name.
pub fn choose(args: &PredictArgs, trained: &Trained) -> Result<Chosen, Failure> {
    let chosen = match (args.data.as_slice(), &trained.data) {
        ([], None) => {
            let message = "a bundle has no dataset of its own; name a dataset, a config or images";
            return Err(Failure::new(Exit::Usage, message));
        }
        ([], Some(data)) => divided(data, args.split)?,
        ([path], _) if is_config(path) => divided(&DataConfig::read(path).map_err(failure)?, args.split)?,
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
fn divided(data: &DataConfig, part: Option<Part>) -> Result<Chosen, Failure> {
    let dataset = data.open().map_err(failure)?;
    let (parts, _) = data.parts(&dataset).map_err(failure)?;
    let split = match part {
        None | Some(Part::Test) => Split::Test,
        Some(Part::Validation) => Split::Validation,
        Some(Part::Train) => Split::Train,
        Some(Part::All) => return Ok(all(dataset)),
    };
    let cases = (0..parts.len()).filter(|&index| parts[index] == split).collect();
    Ok(Chosen { dataset, cases, split: split.name().to_owned() })
}

fn all(dataset: Dataset) -> Chosen {
    Chosen { cases: (0..dataset.entries.len()).collect(), dataset, split: "all".to_owned() }
}

/// What the command line names: a dataset, with or without labels.
fn given(paths: &[std::path::PathBuf], part: Option<Part>, trained: &Trained) -> Result<Chosen, Failure> {
    let [path] = paths else {
        return Err(Failure::new(Exit::Usage, "name one dataset"));
    };
    let known = Known { classes: Some(trained.about.classes.clone()), ..Known::default() };
    let dataset = Dataset::open_with(path, &known).map_err(failure)?;
    match part {
        None | Some(Part::All) => Ok(all(dataset)),
        Some(part) => Err(Failure::new(
            Exit::Usage,
            format!("--split {part:?} needs a division: name a config instead of the dataset"),
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
