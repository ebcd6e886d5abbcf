//! A folder of predictions: a distribution file per case of one model, and what else was made of each.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use ssn_data::text::natural_order;
use ssn_io::{Limits, read_bytes, write_atomically};

use crate::error::{EvalError, Result};
use crate::predictions::description::ModelId;
use crate::predictions::distribution_file::DistributionFile;
use crate::predictions::file_names::{DISTRIBUTION_ENDING, Output, file_stem};
use crate::predictions::header::Header;

/// The file that says what the folder belongs to.
pub const ABOUT_FILE: &str = "predictions.json";
/// The version of that file.
const VERSION: u32 = 1;
/// The endings of images that may lie in the folder; the first is that of new ones.
pub const IMAGE_ENDINGS: [&str; 4] = [".nii.gz", ".nrrd", ".mha", ".png"];

/// What the predictions of a folder have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The model that made them.
    pub model: ModelId,
    /// The seed of what is random in prediction.
    pub seed: u64,
    /// The dataset that the cases are from.
    pub dataset: String,
    /// The part of the dataset, such as `test`.
    pub split: String,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    #[serde(flatten)]
    about: About,
}

/// A folder of predictions of one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Predictions {
    root: PathBuf,
    about: About,
}

/// A case whose distribution is in the folder.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Its distribution file.
    pub path: PathBuf,
    /// What the header of that file says.
    pub header: Header,
}

impl Found {
    /// The id of the case.
    pub fn id(&self) -> &str {
        &self.header.description.case
    }
}

impl Predictions {
    /// Makes the folder, or goes on with one that belongs to the same model, seed, dataset and split.
    ///
    /// # Errors
    /// A sentence when the folder holds predictions of another model, or with other settings.
    pub fn create(root: &Path, about: About) -> Result<Self> {
        fs::create_dir_all(root).map_err(|error| EvalError::io(root, error))?;
        if root.join(ABOUT_FILE).exists() {
            let there = Self::open(root)?.about;
            if let Some(reason) = difference(&there, &about) {
                let advice = "choose another folder, or remove this one";
                return Err(EvalError::Unusable { path: root.to_owned(), reason, advice });
            }
        }
        let stored = Stored { version: VERSION, about };
        let text =
            serde_json::to_string_pretty(&stored).map_err(|error| EvalError::Parts(error.to_string()))?;
        write_atomically(&root.join(ABOUT_FILE), |out| writeln!(out, "{text}"))?;
        Ok(Self { root: root.to_owned(), about: stored.about })
    }

    /// Opens a folder.
    ///
    /// # Errors
    /// A sentence when it is no folder of predictions.
    pub fn open(root: &Path) -> Result<Self> {
        let path = root.join(ABOUT_FILE);
        let refuse = |reason: String| EvalError::Unusable {
            path: root.to_owned(),
            reason,
            advice: "choose a folder that `ssn predict` wrote",
        };
        if root.is_dir() && !path.exists() {
            return Err(refuse(format!("it holds no predictions: there is no {ABOUT_FILE}")));
        }
        let bytes = read_bytes(&path, &Limits::default())?;
        let Stored { version, about } = serde_json::from_slice(&bytes)
            .map_err(|error| refuse(format!("{ABOUT_FILE} cannot be read: {error}")))?;
        if version != VERSION {
            return Err(refuse(format!(
                "{ABOUT_FILE} has version {version}, but this program reads {VERSION}"
            )));
        }
        Ok(Self { root: root.to_owned(), about })
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What it belongs to.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// The distribution file of a case, there or not.
    pub fn distribution_path(&self, id: &str) -> PathBuf {
        self.root.join(file_stem(id) + DISTRIBUTION_ENDING)
    }

    /// The image file of a case that is to be written.
    pub fn output_path(&self, id: &str, output: Output) -> PathBuf {
        self.root.join(format!("{}_{}{}", file_stem(id), output.name(), IMAGE_ENDINGS[0]))
    }

    /// The image file of a case that is there, in any format.
    pub fn find_output(&self, id: &str, output: Output) -> Option<PathBuf> {
        let name = format!("{}_{}", file_stem(id), output.name());
        let paths = IMAGE_ENDINGS.iter().map(|ending| self.root.join(name.clone() + ending));
        paths.into_iter().find(|path| path.is_file())
    }

    /// Whether a case is finished: its distribution file is there and complete, this model made it, and if it holds what the
    /// network drew, then at least so many samples.
    pub fn is_finished(&self, id: &str, samples: u64) -> bool {
        DistributionFile::read_header(&self.distribution_path(id), &Limits::default()).is_ok_and(|header| {
            header.description.case == id
                && header.description.model.sha256 == self.about.model.sha256
                && header.check_samples(samples).is_ok()
        })
    }

    /// The cases whose distribution is there, in natural order of their ids.
    ///
    /// # Errors
    /// The first file that cannot be used, or that is from another model.
    pub fn cases(&self) -> Result<Vec<Found>> {
        let mut found = vec![];
        for entry in fs::read_dir(&self.root).map_err(|error| EvalError::io(&self.root, error))? {
            let path = entry.map_err(|error| EvalError::io(&self.root, error))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with('.') || !name.ends_with(DISTRIBUTION_ENDING) {
                continue;
            }
            let header = DistributionFile::read_header(&path, &Limits::default())?;
            if let Some((reason, advice)) = self.stranger(&name, &header) {
                return Err(EvalError::Unusable { path, reason, advice });
            }
            found.push(Found { path, header });
        }
        found.sort_by(|a, b| natural_order(a.id(), b.id()));
        Ok(found)
    }

    /// Reads the distribution of a case.
    pub fn read(&self, id: &str) -> Result<DistributionFile> {
        DistributionFile::read(&self.distribution_path(id), &Limits::default())
    }

    /// Why a distribution file does not belong here.
    fn stranger(&self, name: &str, header: &Header) -> Option<(String, &'static str)> {
        let description = &header.description;
        if description.model.sha256 != self.about.model.sha256 {
            let reason =
                format!("the model {:?} made it, but the folder is of another", description.model.name);
            return Some((reason, "remove the file, or predict the case again"));
        }
        let expected = file_stem(&description.case) + DISTRIBUTION_ENDING;
        (name != expected).then(|| {
            let reason = format!("it is of case {:?}, whose file is {expected}", description.case);
            (reason, "give it that name, or remove it")
        })
    }
}

/// Why what is asked for cannot go into a folder that is there.
fn difference(there: &About, asked: &About) -> Option<String> {
    if there.model.sha256 != asked.model.sha256 {
        return Some(format!(
            "it holds predictions of another model ({:?}, not {:?})",
            there.model.name, asked.model.name
        ));
    }
    let settings = [
        ("dataset", &there.dataset, &asked.dataset),
        ("split", &there.split, &asked.split),
        ("seed", &there.seed.to_string(), &asked.seed.to_string()),
    ];
    let (what, there, asked) = settings.into_iter().find(|(_, there, asked)| there != asked)?;
    Some(format!("it holds predictions with {what} {there:?}, but {asked:?} is asked for"))
}
