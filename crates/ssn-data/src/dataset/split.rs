//! Splits of a dataset into training, validation and test.
//!
//! A split never cuts through a group (a patient, a series): all cases of a group are on one side. It is a
//! function of the seed and the names, not of the order in which cases were found, and is kept in a file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssn_io::{Error, Limits, Result, read_bytes, write_atomically};
use toml::ser::ValueSerializer;

use crate::dataset::{CaseEntry, Dataset};
use crate::random::{Purpose, RandomStream};
use crate::seed::to_toml;

/// One of the three parts of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// Cases to learn from.
    Train,
    /// Cases to choose settings and checkpoints by.
    Validation,
    /// Cases for the final figures.
    Test,
}

impl Split {
    /// All parts.
    pub const ALL: [Self; 3] = [Self::Train, Self::Validation, Self::Test];

    /// The part that a folder, file or cell is named after: `train`, `Training`, `val`, `valid`, `dev`, `test`
    /// …
    pub fn from_name(name: &str) -> Option<Self> {
        match name.trim().to_lowercase().as_str() {
            "train" | "training" | "tr" | "trainset" => Some(Self::Train),
            "val" | "valid" | "validate" | "validation" | "validating" | "vl" | "dev" | "valset" => {
                Some(Self::Validation)
            }
            "test" | "testing" | "ts" | "testset" | "holdout" => Some(Self::Test),
            _ => None,
        }
    }

    /// The part that a folder is named after: as [`Self::from_name`], and `Validation_set`, `train-data` and alike.
    pub fn from_folder(name: &str) -> Option<Self> {
        let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| {
            let word = word.to_lowercase();
            !["", "set", "data", "dataset", "split", "cases"].contains(&word.as_str())
        });
        match words.collect::<Vec<_>>()[..] {
            [word] => Self::from_name(word),
            _ => None,
        }
    }

    /// The part that one of the words of a name says, such as `data_index_train`; `None` if none or several do.
    pub fn from_words(name: &str) -> Option<Self> {
        let mut found = name.split(|c: char| !c.is_alphanumeric()).filter_map(Self::from_name);
        let first = found.next()?;
        found.all(|other| other == first).then_some(first)
    }

    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
        }
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Shares of training, validation and test; only their proportions count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ratios(pub [u32; 3]);

impl Ratios {
    /// LIDC in the paper's text.
    pub const LIDC: Self = Self([60, 20, 20]);
    /// BraTS 2017: 171, 28 and 86 of 285 cases.
    pub const BRATS: Self = Self([60, 10, 30]);

    /// Refuses shares of nothing.
    pub fn check(self) -> Result<Self> {
        let total: u64 = self.0.iter().map(|&share| u64::from(share)).sum();
        if self.0[0] > 0 && total > 0 {
            return Ok(self);
        }
        let expected =
            "three shares of training, validation and test, with some for training, such as [60, 20, 20]";
        Err(Error::setting("data.split.ratios", format!("{:?}", self.0), expected))
    }

    /// How many of `count` groups each part gets: each share to within one, and a part that has a share gets
    /// at least one group while there are enough.
    fn counts(self, count: usize) -> [usize; 3] {
        let total: u128 = self.0.iter().map(|&share| u128::from(share)).sum();
        let (mut sum, mut before) = (0u128, 0);
        let mut counts = self.0.map(|share| {
            sum += u128::from(share);
            let until = (count as u128 * sum / total.max(1)) as usize;
            let part = until - before;
            before = until;
            part
        });
        for part in 0..3 {
            let largest = (0..3).max_by_key(|&i| (counts[i], 3 - i)).unwrap_or(0);
            if counts[part] == 0 && self.0[part] > 0 && counts[largest] > 1 {
                counts[part] = 1;
                counts[largest] -= 1;
            }
        }
        counts
    }
}

impl fmt::Display for Ratios {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [train, validation, test] = self.0;
        write!(f, "{train}/{validation}/{test}")
    }
}

/// The groups, each once, in the random order that the seed says.
fn shuffled<'a>(groups: &[&'a str], seed: u64) -> Vec<&'a str> {
    // From a sorted set, so that the order in which a file system lists cases changes nothing.
    let mut order: Vec<&str> = groups.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    RandomStream::new(seed, Purpose::Split, 0).shuffle(&mut order);
    order
}

/// The part of each case, given the group of each; the shares are those of groups.
pub fn divide(groups: &[&str], ratios: Ratios, seed: u64) -> Result<Vec<Split>> {
    let order = shuffled(groups, seed);
    let counts = ratios.check()?.counts(order.len());
    let parts = Split::ALL.iter().zip(counts).flat_map(|(&split, count)| std::iter::repeat_n(split, count));
    let part_of: BTreeMap<&str, Split> = order.into_iter().zip(parts).collect();
    // Every group is in the map: the counts sum up to their number.
    Ok(groups.iter().map(|group| part_of.get(group).copied().unwrap_or(Split::Train)).collect())
}

/// The fold of each case, given the group of each: `folds` parts whose numbers of groups differ by at most one.
pub fn fold(groups: &[&str], folds: usize, seed: u64) -> Result<Vec<usize>> {
    let order = shuffled(groups, seed);
    if folds < 2 || folds > order.len() {
        return Err(Error::setting(
            "data.split.folds",
            folds,
            format!("2 to {}, the number of patients or series", order.len()),
        ));
    }
    let fold_of: BTreeMap<&str, usize> =
        order.into_iter().enumerate().map(|(place, group)| (group, place % folds)).collect();
    Ok(groups.iter().map(|group| fold_of.get(group).copied().unwrap_or(0)).collect())
}

const REMAKE: &str = "edit the file, or remove it and let a new one be made";

/// How the cases are divided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SplitAssignment {
    /// Three lists of cases: training, validation, test.
    Parts([Vec<String>; 3]),
    /// k lists of cases; in turn, each is the validation set and the others are for training.
    Folds(Vec<Vec<String>>),
}

/// A split with how it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitFile {
    /// How it was made, in words.
    pub method: String,
    /// The seed that made it, if one did.
    pub seed: Option<u64>,
    /// The lists of cases.
    pub assignment: SplitAssignment,
}

/// What the file holds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    method: String,
    #[serde(default, deserialize_with = "crate::seed::option::deserialize")]
    seed: Option<u64>,
    train: Option<Vec<String>>,
    validation: Option<Vec<String>>,
    test: Option<Vec<String>>,
    folds: Option<Vec<Vec<String>>>,
}

/// The patient or series of each case.
fn groups(cases: &[CaseEntry]) -> Vec<&str> {
    cases.iter().map(|case| case.group.as_str()).collect()
}

impl SplitFile {
    /// The split of a run: parts as they are, taken from now on without asking how they were made.
    pub fn of_parts(cases: &[CaseEntry], parts: &[Split], method: String) -> Self {
        let list = |split| {
            let of_split = cases.iter().zip(parts).filter(|(_, part)| **part == split);
            of_split.map(|(case, _)| case.id.clone()).collect()
        };
        Self { method, seed: None, assignment: SplitAssignment::Parts(Split::ALL.map(list)) }
    }

    fn by_ratios(cases: &[CaseEntry], ratios: Ratios, seed: u64) -> Result<Self> {
        let parts = divide(&groups(cases), ratios, seed)?;
        let split = Self::of_parts(cases, &parts, format!("{ratios} by group"));
        Ok(Self { seed: Some(seed), ..split })
    }

    fn by_folds(cases: &[CaseEntry], folds: usize, seed: u64) -> Result<Self> {
        let numbers = fold(&groups(cases), folds, seed)?;
        let mut lists = vec![vec![]; folds];
        for (case, number) in cases.iter().zip(numbers) {
            lists[number].push(case.id.clone());
        }
        let (method, assignment) = (format!("{folds} folds by group"), SplitAssignment::Folds(lists));
        Ok(Self { method, seed: Some(seed), assignment })
    }

    /// The part of each case; `fold` says which fold is the validation set, and is ignored for three lists.
    ///
    /// Refuses a file that does not name every case exactly once, or names one that is not there. Cases that the config
    /// leaves out may be named.
    fn parts(
        &self,
        path: &Path,
        cases: &[CaseEntry],
        excluded: &[CaseEntry],
        fold: usize,
    ) -> Result<Vec<Split>> {
        let wrong = |reason: String| Error::data(path, reason).advise(REMAKE);
        let lists: Vec<(Split, &Vec<String>)> = match &self.assignment {
            SplitAssignment::Parts(lists) => Split::ALL.into_iter().zip(lists).collect(),
            SplitAssignment::Folds(lists) if fold >= lists.len() => {
                let reason =
                    format!("fold {fold} is asked for, but the file has folds 0 to {}", lists.len() - 1);
                return Err(wrong(reason));
            }
            SplitAssignment::Folds(lists) => {
                let part = |number| if number == fold { Split::Validation } else { Split::Train };
                lists.iter().enumerate().map(|(number, list)| (part(number), list)).collect()
            }
        };
        let mut part_of = BTreeMap::new();
        for (split, id) in lists.iter().flat_map(|(split, list)| list.iter().map(move |id| (*split, id))) {
            if part_of.insert(id.as_str(), split).is_some() {
                return Err(wrong(format!("the case {id:?} is listed twice")));
            }
        }
        let ids = |cases: &'_ [CaseEntry]| cases.iter().map(|case| case.id.clone()).collect::<BTreeSet<_>>();
        let (present, excluded) = (ids(cases), ids(excluded));
        if let Some(id) = part_of.keys().find(|id| !present.contains(**id) && !excluded.contains(**id)) {
            return Err(wrong(format!("the case {id:?} is listed, but the dataset does not have it")));
        }
        let absent: Vec<&String> = present.iter().filter(|id| !part_of.contains_key(id.as_str())).collect();
        match absent.first() {
            Some(id) => Err(wrong(format!("{} cases are not listed, such as {id:?}", absent.len()))),
            None => Ok(cases.iter().filter_map(|case| part_of.get(case.id.as_str()).copied()).collect()),
        }
    }

    /// Reads a split.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = read_bytes(path, &Limits::default())?;
        let wrong = |reason: String| Error::data(path, reason).advise(REMAKE);
        let text = String::from_utf8(bytes).map_err(|error| wrong(error.to_string()))?;
        let content: Content = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let assignment = match (content.train, content.folds) {
            (Some(train), None) => SplitAssignment::Parts([
                train,
                content.validation.unwrap_or_default(),
                content.test.unwrap_or_default(),
            ]),
            (None, Some(folds)) if folds.len() >= 2 => SplitAssignment::Folds(folds),
            _ => {
                return Err(wrong(
                    "neither the list `train` nor a list `folds` of two or more is there".into(),
                ));
            }
        };
        Ok(Self { method: content.method, seed: content.seed, assignment })
    }

    /// Writes the split, atomically; replaces a file of that name.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = self.to_toml();
        Ok(write_atomically(path, |out| out.write_all(text.as_bytes()))?)
    }

    fn to_toml(&self) -> String {
        let mut text =
            String::from("# Which cases are for what. Keep this file beside the results that it made.\n");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "method = {}", inline(&self.method));
        if let Some(seed) = self.seed {
            let _ = writeln!(text, "seed = {}", to_toml(seed));
        }
        match &self.assignment {
            SplitAssignment::Parts(lists) => {
                for (split, list) in Split::ALL.iter().zip(lists) {
                    let _ = writeln!(text, "\n{split} = [{}]", lines(list, "  "));
                }
            }
            SplitAssignment::Folds(lists) => {
                let inner: Vec<String> =
                    lists.iter().map(|list| format!("  [{}  ],\n", lines(list, "    "))).collect();
                let _ = writeln!(text, "\nfolds = [\n{}]", inner.concat());
            }
        }
        text
    }
}

/// The names of cases, one per line.
fn lines(ids: &[String], indent: &str) -> String {
    let rows: String = ids.iter().map(|id| format!("{indent}{},\n", inline(id))).collect();
    format!("\n{rows}")
}

/// A value as TOML writes it, on one line.
pub(crate) fn inline(value: &impl Serialize) -> String {
    let mut text = String::new();
    // Texts, lists and tables of numbers can all be written.
    let _ = value.serialize(ValueSerializer::new(&mut text));
    text
}

/// The section `[data.split]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SplitConfig {
    /// The file that holds the split: read if it is there, written if not. Relative paths start at the config
    /// file.
    pub file: PathBuf,
    /// Shares of training, validation and test, by patients or series.
    pub ratios: Ratios,
    /// A number of folds instead of shares.
    pub folds: Option<usize>,
    /// The fold that is the validation set.
    pub fold: usize,
    /// The seed of the division.
    #[serde(with = "crate::seed")]
    #[schemars(with = "u64")]
    pub seed: u64,
    /// Use the parts that the dataset itself assigns, where it assigns every case.
    pub given: bool,
}

impl Default for SplitConfig {
    fn default() -> Self {
        let file = PathBuf::from("split.toml");
        Self { file, ratios: Ratios::LIDC, folds: None, fold: 0, seed: 0, given: true }
    }
}

impl SplitConfig {
    /// The part of each case: from the split file if it is there, from the dataset itself if it assigns every
    /// case, or by the ratios or folds.
    ///
    /// # Errors
    /// Ids that are not unique; a file that does not fit the dataset, or that was made with another method or
    /// seed than is asked for. A file without a seed was made by hand and is taken as it is.
    pub fn parts(&self, dataset: &Dataset) -> Result<Vec<Split>> {
        Ok(self.parts_and_new(dataset)?.0)
    }

    /// The part of each case as in [`SplitConfig::parts`]; a split that was made now is written to its file.
    pub fn keep_parts(&self, dataset: &Dataset) -> Result<Vec<Split>> {
        let (parts, made) = self.parts_and_new(dataset)?;
        made.map_or(Ok(()), |made| made.write(&self.file))?;
        Ok(parts)
    }

    /// The part of each case, and the split if it was made now.
    fn parts_and_new(&self, dataset: &Dataset) -> Result<(Vec<Split>, Option<SplitFile>)> {
        dataset.check_unique()?;
        // What the config leaves out has a place, too: the other cases stay where they are.
        let all: Vec<CaseEntry> = dataset.entries.iter().chain(&dataset.excluded).cloned().collect();
        let given: Option<Vec<Split>> = dataset.entries.iter().map(|entry| entry.split).collect();
        let given = given.filter(|_| self.given && self.folds.is_none());
        if self.file.exists() {
            let file = SplitFile::read(&self.file)?;
            let parts = file.parts(&self.file, &dataset.entries, &dataset.excluded, self.fold)?;
            if given.as_ref() != Some(&parts) {
                self.check_method(&file, given.is_some())?;
            }
            return Ok((parts, None));
        }
        if let Some(given) = given {
            return Ok((given, None));
        }
        let made = match self.folds {
            Some(folds) => SplitFile::by_folds(&all, folds, self.seed)?,
            None => SplitFile::by_ratios(&all, self.ratios, self.seed)?,
        };
        Ok((made.parts(&self.file, &dataset.entries, &dataset.excluded, self.fold)?, Some(made)))
    }

    /// Refuses a file that was made with other settings.
    fn check_method(&self, file: &SplitFile, given: bool) -> Result<()> {
        let Some(seed) = file.seed else { return Ok(()) };
        let method = match self.folds {
            Some(folds) => format!("{folds} folds by group"),
            None => format!("{} by group", self.ratios),
        };
        if !given && (&file.method, seed) == (&method, self.seed) {
            return Ok(());
        }
        let asked = match given {
            true => "the division of the dataset itself".to_owned(),
            false => format!("{method} and seed {}", self.seed),
        };
        Err(Error::data(
            &self.file,
            format!("the split was made with {} and seed {seed}, but {asked} is asked for", file.method),
        )
        .advise("remove the file to divide anew, or set data.split to what the file was made with"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::CaseFiles;

    #[test]
    fn names_in_use_are_understood() {
        assert_eq!(Split::from_name("Training"), Some(Split::Train));
        assert_eq!(Split::from_name("valid"), Some(Split::Validation));
        assert_eq!(Split::from_name("contrast"), None);
        assert_eq!(Split::from_folder("Validation_set"), Some(Split::Validation));
        assert_eq!(Split::from_folder("validate"), Some(Split::Validation));
        assert_eq!(Split::from_folder("HoldOut"), Some(Split::Test));
        assert_eq!(Split::from_folder("train_images"), None);
        assert_eq!(Split::from_words("data_index_test"), Some(Split::Test));
        assert_eq!(Split::from_words("train_vs_test"), None);
        assert_eq!(Split::from_words("index"), None);
    }

    #[test]
    fn the_papers_counts() {
        assert_eq!(Ratios::BRATS.counts(285), [171, 28, 86]);
        assert_eq!(Ratios::LIDC.counts(875), [525, 175, 175]);
        // LIDC in the authors' code: a fifth for testing, then a fifth of the rest for validation.
        assert_eq!(Ratios([64, 16, 20]).counts(100), [64, 16, 20]);
        assert_eq!(Ratios::LIDC.counts(3), [1, 1, 1]);
        assert_eq!(Ratios::LIDC.counts(2), [1, 0, 1]);
        assert_eq!(Ratios([1, 0, 0]).counts(2), [2, 0, 0]);
    }

    #[test]
    fn no_share_for_training_is_refused() {
        let message = divide(&["a"], Ratios([0, 1, 1]), 0).unwrap_err().to_string();
        assert!(message.contains("data.split.ratios is [0, 1, 1]"), "{message}");
        let message = fold(&["a", "b", "b"], 3, 0).unwrap_err().to_string();
        assert!(message.contains("2 to 2"), "{message}");
    }

    /// The division of a seed is part of the promise that results can be repeated.
    #[test]
    fn a_seed_always_gives_this_split() {
        let names: Vec<String> = (0..10).map(|i| format!("case{i}")).collect();
        let groups: Vec<&str> = names.iter().map(String::as_str).collect();
        let parts = divide(&groups, Ratios::LIDC, 7).unwrap();
        let text: String = parts.iter().map(|part| &part.name()[..2]).collect::<Vec<_>>().join(" ");
        insta::assert_snapshot!(text);
    }

    fn cases(ids: &[&str]) -> Vec<CaseEntry> {
        let entry = |id: &&str| CaseEntry::of_files((*id).into(), None, CaseFiles::default());
        let case = |id: &&str| CaseEntry { group: id[..1].to_owned(), ..entry(id) };
        ids.iter().map(case).collect()
    }

    #[test]
    fn files_go_round() {
        let folder = tempfile::tempdir().unwrap();
        let cases = cases(&["a1", "a2", "b \"odd\"", "c1", "d1"]);
        for (name, split) in [
            ("ratios", SplitFile::by_ratios(&cases, Ratios::LIDC, 3).unwrap()),
            ("folds", SplitFile::by_folds(&cases, 3, 3).unwrap()),
        ] {
            let path = folder.path().join("split.toml");
            split.write(&path).unwrap();
            let back = SplitFile::read(&path).unwrap();
            assert_eq!(back, split);
            insta::assert_snapshot!(format!("split_{name}"), split.to_toml());
            let parts = back.parts(&path, &cases, &[], 1).unwrap();
            assert_eq!(parts[0], parts[1], "one group, one part");
        }
    }

    #[test]
    fn the_largest_seed_comes_back() {
        let split = SplitFile::by_folds(&cases(&["a1", "b1"]), 2, u64::MAX).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("split.toml");
        split.write(&path).unwrap();
        assert_eq!(SplitFile::read(&path).unwrap(), split);
        let config = SplitConfig { seed: u64::MAX, ..SplitConfig::default() };
        assert_eq!(toml::from_str::<SplitConfig>(&toml::to_string(&config).unwrap()).unwrap(), config);
    }

    #[test]
    fn files_that_do_not_fit_are_refused() {
        let cases = cases(&["a1", "b1"]);
        let parts = |lists: [&[&str]; 3]| {
            let lists = lists.map(|list| list.iter().map(|id| (*id).to_owned()).collect());
            SplitFile { method: "by hand".into(), seed: None, assignment: SplitAssignment::Parts(lists) }
        };
        let message = |file: &SplitFile, fold| {
            file.parts(Path::new("split.toml"), &cases, &[], fold).unwrap_err().to_string()
        };
        let folds = SplitFile::by_folds(&cases, 2, 0).unwrap();
        insta::assert_snapshot!(
            [
                message(&parts([&["a1"], &["a1"], &["b1"]]), 0),
                message(&parts([&["a1", "b1", "zz"], &[], &[]]), 0),
                message(&parts([&["a1"], &[], &[]]), 0),
                message(&folds, 2),
            ]
            .join("\n")
        );
    }
}
