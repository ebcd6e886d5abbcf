//! A folder of predictions: a distribution file per case of one model, what else was made of each, and an index of
//! all. Names of files are safe on every file system that tells upper from lower case, one name per id.

use std::fs;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use ssn_data::text::{csv_text, listed, natural_order};
use ssn_data::{LabelReading, nearest};
use ssn_io::hex::hex;
use ssn_io::{Error, Limits, OWN_FILES, Result, read_bytes, write_atomically};

use super::distribution_file::{DistributionFile, Header, ModelId};

/// The name of the index, as in the authors' tool.
const INDEX_FILE: &str = "prediction.csv";
/// The file that says what the folder belongs to.
pub const ABOUT_FILE: &str = "predictions.json";
const VERSION: u32 = 1;
/// The endings of images that may lie in the folder; the first is that of new ones.
pub const IMAGE_ENDINGS: [&str; 4] = [".nii.gz", ".nrrd", ".mha", ".png"];

/// What the predictions of a folder have in common: `predictions.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct About {
    /// The model that made them.
    pub model: ModelId,
    /// The seed of what is random in prediction.
    pub seed: u64,
    /// The dataset that the cases are from.
    pub dataset: String,
    /// The part of the dataset, such as `test`.
    pub split: String,
    /// Images that were named by themselves, instead of a dataset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<ImagePaths>,
    /// How the model read labels in training, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<LabelReading>,
    /// Whether the dataset are label maps of raters without images.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub labels_only: bool,
}

/// Images that were named for prediction, and the channels that the model takes of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImagePaths {
    /// Files and folders.
    pub paths: Vec<PathBuf>,
    /// The names of the channels.
    pub channels: Vec<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(title = "predictions.json")]
struct Stored {
    /// 1.
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

    /// Returns `true` if the model trained on the image, though nobody asked for cases of the training set.
    pub fn is_trained_on(&self) -> bool {
        self.header.description.image.as_ref().is_some_and(|image| image.trained_on)
    }
}

impl Predictions {
    /// Makes the folder, or goes on with one that belongs to the same model, seed, dataset and split. Further images join
    /// those that a folder is of.
    ///
    /// # Errors
    /// A sentence when the folder holds predictions of another model, or with other settings.
    pub fn create(root: &Path, mut about: About) -> Result<Self> {
        if root.join(ABOUT_FILE).exists() {
            let there = Self::open(root)?.about;
            if let (Some(known), Some(more)) = (&there.images, &mut about.images) {
                let new = more.paths.iter().filter(|path| !known.paths.contains(path));
                more.paths = known.paths.iter().chain(new).cloned().collect();
                about.dataset.clone_from(&there.dataset);
            }
            if let Some(reason) = difference(&there, &about) {
                let advice = "choose another folder, or remove this one";
                return Err(Error::data(root, reason).advise(advice));
            }
        } else {
            claim(root, &[ABOUT_FILE, INDEX_FILE].map(str::to_owned))?;
        }
        let stored = Stored { version: VERSION, about };
        let text = serde_json::to_string_pretty(&stored).map_err(Error::mismatch)?;
        write_text(&root.join(ABOUT_FILE), &(text + "\n"))?;
        Ok(Self { root: root.to_owned(), about: stored.about })
    }

    /// Makes sure that the distribution and some other files of cases can be written and replace nobody else's.
    ///
    /// # Errors
    /// A file that is there and is not listed as ours.
    pub fn claim<'a>(&self, ids: impl Iterator<Item = &'a str>, outputs: &[Output]) -> Result<()> {
        let files = |id: &str| {
            let mut files = vec![self.distribution_path(id)];
            files.extend(outputs.iter().map(|&output| self.output_path(id, output)));
            files.extend(outputs.contains(&Output::Prediction).then(|| self.prediction_path(id, true)));
            files
        };
        claim(&self.root, &ids.flat_map(files).map(|path| name_of(&path)).collect::<Vec<_>>())
    }

    /// Opens a folder.
    ///
    /// # Errors
    /// A sentence when it is no folder of predictions.
    pub fn open(root: &Path) -> Result<Self> {
        let path = root.join(ABOUT_FILE);
        let refuse =
            |reason: String| Error::data(root, reason).advise("choose a folder that `ssn predict` wrote");
        if !root.exists() {
            return Err(refuse("there is no such folder".to_owned()));
        }
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

    /// The JSON Schema of `predictions.json`.
    pub fn schema() -> serde_json::Value {
        schemars::schema_for!(Stored).into()
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

    /// The label map of a case that is to be written: PNG for pictures.
    pub fn prediction_path(&self, id: &str, is_picture: bool) -> PathBuf {
        let ending = if is_picture { ".png" } else { IMAGE_ENDINGS[0] };
        self.root.join(format!("{}_{}{ending}", file_stem(id), Output::Prediction.name()))
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

    /// Whether the distribution of a case is known to be of another image than the one with this hash.
    pub fn is_of_other_image(&self, id: &str, image_sha256: Option<&str>) -> bool {
        let header = DistributionFile::read_header(&self.distribution_path(id), &Limits::default());
        let known = header.ok().and_then(|header| header.description.image).map(|image| image.sha256);
        known.zip(image_sha256).is_some_and(|(known, now)| known != now)
    }

    /// The cases whose distribution is there, in natural order of their ids.
    ///
    /// # Errors
    /// The first file that cannot be used, or that is from another model.
    pub fn cases(&self) -> Result<Vec<Found>> {
        let mut found = vec![];
        for path in distribution_files(&self.root)? {
            let header = DistributionFile::read_header(&path, &Limits::default())?;
            if let Some((reason, advice)) = self.stranger(&name_of(&path), &header) {
                return Err(Error::data(path, reason).advise(advice));
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

    /// Writes the index of what is in the folder, atomically, and gives its path.
    ///
    /// The columns are id, distribution and prediction, and then those that any case has.
    pub fn write_index(&self) -> Result<PathBuf> {
        let cases = self.cases()?;
        let files = |id: &str| Output::ALL.map(|output| self.find_output(id, output));
        let rows: Vec<_> = cases.iter().map(|case| files(case.id())).collect();
        let present = |&column: &usize| column == 0 || rows.iter().any(|row| row[column].is_some());
        let columns: Vec<usize> = (0..Output::ALL.len()).filter(present).collect();

        let names = columns.iter().map(|&column| Output::ALL[column].name());
        let mut table = vec![["id", "distribution"].into_iter().chain(names).map(str::to_owned).collect()];
        for (case, row) in cases.iter().zip(&rows) {
            // All files lie in the folder itself: relative to it, a path is its name.
            let mut cells = vec![case.id().to_owned(), name_of(&case.path)];
            cells.extend(columns.iter().map(|&column| row[column].as_deref().map_or(String::new(), name_of)));
            table.push(cells);
        }
        let path = self.root().join(INDEX_FILE);
        write_text(&path, &csv_text(&table))?;
        Ok(path)
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
        let of = |model: &ModelId| match there.model.name == asked.model.name {
            // As after training again.
            true => {
                format!("{:?} with the SHA-256 {}…", model.name, model.sha256.get(..8).unwrap_or_default())
            }
            false => format!("{:?}", model.name),
        };
        return Some(format!(
            "it holds predictions of another model ({}, not {})",
            of(&there.model),
            of(&asked.model)
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

/// How distribution files end.
pub const DISTRIBUTION_ENDING: &str = ".ssn.safetensors";

/// The longest stem of a name. File systems allow 255 bytes, and what a file is stands behind the stem.
const MAX_STEM: usize = 180;
/// Bytes of a longer stem that stay readable before its hash.
const KEPT: usize = 100;

/// What a file beside the distribution holds, by the names of the authors' tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Output {
    /// The label map of the mean.
    Prediction,
    /// The mean probabilities over samples.
    Probabilities,
    /// The marginal entropy over samples.
    Entropy,
    /// The mean of the logits.
    Mean,
    /// The diagonal of the covariance.
    Diagonal,
    /// The factor of the covariance.
    Factor,
}

impl Output {
    /// All of them, in the order of the index.
    pub const ALL: [Self; 6] =
        [Self::Prediction, Self::Probabilities, Self::Entropy, Self::Mean, Self::Diagonal, Self::Factor];

    /// What stands behind the stem in the name of the file, and the name of its column in the index.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prediction => "prediction",
            Self::Probabilities => "prob_maps",
            Self::Entropy => "marginal_entropy",
            Self::Mean => "logit_mean",
            Self::Diagonal => "cov_diag",
            Self::Factor => "cov_factor",
        }
    }
}

/// The stem of the names of a case's files.
///
/// Letters and digits of ASCII, `-`, `_` and `.` stay, except for a `.` at the start; every other byte becomes `%` and two
/// hexadecimal digits. So two ids never share a name, and none leads out of its folder. A stem of more than 180
/// bytes is cut to 100, with `%~` and the SHA-256 of the id behind.
pub fn file_stem(id: &str) -> String {
    let mut stem = String::with_capacity(id.len());
    for (at, byte) in id.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || b"-_".contains(&byte) || byte == b'.' && at > 0;
        match plain {
            true => stem.push(char::from(byte)),
            false => stem.push_str(&format!("%{byte:02X}")),
        }
    }
    if id.is_empty() {
        return "%".to_owned();
    }
    if stem.len() <= MAX_STEM {
        return stem;
    }
    format!("{}%~{}", &stem[..KEPT], hex(&Sha256::digest(id)))
}

/// Cases of a list that are named in a message; the rest is counted.
const NAMED_IN_MESSAGES: usize = 10;

/// The files, and those of the folders, in the order in which they were named; each with what its header says.
pub fn find_distribution_files(inputs: &[PathBuf]) -> Result<Vec<Found>> {
    let mut paths = vec![];
    for input in inputs {
        match input.is_dir() {
            true => paths.extend(files_of(input)?),
            false => paths.push(checked(input)?),
        }
    }
    let read = |path: PathBuf| {
        let header = DistributionFile::read_header(&path, &Limits::default())?;
        Ok(Found { path, header })
    };
    paths.into_iter().map(read).collect()
}

/// A file that may be a distribution file, by its name.
fn checked(path: &Path) -> Result<PathBuf> {
    if !path.exists() {
        let reason = "there is no such file or folder; check the path";
        return Err(Error::io(path, std::io::Error::new(std::io::ErrorKind::NotFound, reason)));
    }
    if path.extension().is_none_or(|ending| ending != "safetensors") {
        return Err(Error::mismatch(format!(
            "{}: this is no distribution file, whose names end with {DISTRIBUTION_ENDING}; name one, or a folder of them",
            path.display()
        )));
    }
    Ok(path.to_owned())
}

/// The distribution files of a folder, in natural order; at least one.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = distribution_files(folder)?;
    if paths.is_empty() {
        return Err(Error::mismatch(format!(
            "{} holds no files *{DISTRIBUTION_ENDING}; `ssn predict` writes them",
            folder.display()
        )));
    }
    paths.sort_by(|a, b| natural_order(&name_of(a), &name_of(b)));
    Ok(paths)
}

/// The distribution files of a folder, in any order; hidden ones are on their way.
fn distribution_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let list = || -> std::io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect()
    };
    let mut paths = list().map_err(|error| Error::io(folder, error))?;
    paths.retain(|path| name_of(path).ends_with(DISTRIBUTION_ENDING) && !name_of(path).starts_with('.'));
    Ok(paths)
}

/// The name of a file, without its folder.
pub(crate) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The first of many names, and how many there are besides.
pub(crate) fn listed_ids(ids: &[String]) -> String {
    listed(ids, NAMED_IN_MESSAGES)
}

/// That a class does not exist in a file or dataset, and which was probably meant.
pub fn unknown_name(name: &str, known: &[String], place: &Path) -> String {
    let hint = match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("it has {}", known.join(", ")),
    };
    format!("there is no class {name:?} in {}; {hint}", place.display())
}

/// Whether a path names a config, and not a dataset itself.
pub fn is_config(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
}

/// Makes a folder and those above it.
pub fn create_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|error| Error::system("create the folder", path, error))
}

/// Makes a folder, or makes sure that files of these names can be written to it and replace nobody else's.
///
/// # Errors
/// A file that is there and is not listed as ours.
pub fn claim(folder: &Path, names: &[String]) -> Result<()> {
    create_folder(folder)?;
    match ssn_io::claim(folder, names)? {
        None => Ok(()),
        Some(path) => Err(Error::usage(format!(
            "{} is there, but {OWN_FILES} of its folder does not list it as written by this program: it is not replaced; \
             move it away, or choose another folder with --out",
            path.display()
        ))),
    }
}

/// Removes those of a folder's files that are listed as ours and that `is_left` chooses by their names.
pub fn remove_own_files(folder: &Path, is_left: impl Fn(&str) -> bool) -> Result<()> {
    for name in ssn_io::own_files(folder)?.into_iter().filter(|name| is_left(name)) {
        let path = folder.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::system("remove", &path, error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Writes a text file completely or not at all.
pub fn write_text(path: &Path, text: &str) -> Result<()> {
    Ok(write_atomically(path, |out| out.write_all(text.as_bytes()))?)
}

/// Refuses to replace a file unless that was asked for.
pub fn check_free(path: &Path, overwrite: bool) -> Result<()> {
    check_free_or(path, overwrite, "choose another name with --out")
}

/// The same, with what else than replacing it can be done.
pub fn check_free_or(path: &Path, overwrite: bool, advice: &str) -> Result<()> {
    if overwrite || !path.exists() {
        return Ok(());
    }
    let message = format!("{} exists already; {advice} or replace it with --overwrite", path.display());
    Err(Error::usage(message))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_safe_and_readable() {
        for (id, expected) in [
            ("Brats17_CBICA_AAB_1", "Brats17_CBICA_AAB_1"),
            ("z-12.5_c0", "z-12.5_c0"),
            ("p 1/s%2", "p%201%2Fs%252"),
            ("../up", "%2E.%2Fup"),
            ("ü", "%C3%BC"),
            ("", "%"),
        ] {
            assert_eq!(file_stem(id), expected);
        }
        let long = "x/".repeat(200);
        let stem = file_stem(&long);
        assert!(stem.len() <= MAX_STEM && stem.starts_with("x%2Fx%2F"), "{stem}");
    }

    #[test]
    fn no_two_ids_share_a_name() {
        let mut ids: Vec<String> = (0u32..0x300).filter_map(char::from_u32).map(String::from).collect();
        ids.extend(["a b", "a%20b", "a_b", "a%b", ".a", "a.", "%2Ea"].map(str::to_owned));
        ids.extend((0..50).map(|i| format!("{}{i}", "long".repeat(60))));
        ids.push("é".repeat(100));
        ids.sort();
        ids.dedup();
        let stems: BTreeSet<String> = ids.iter().map(|id| file_stem(id)).collect();
        assert_eq!(stems.len(), ids.len());
        for stem in stems {
            assert!(stem.is_ascii() && !stem.contains(['/', '\\', ' ']) && !stem.starts_with('.'), "{stem}");
        }
    }
}
