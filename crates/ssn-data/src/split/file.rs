//! A split in a file: TOML that people can read and edit, one case per line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;
use ssn_io::{Limits, read_bytes, write_atomically};

use super::{Ratios, Split, divide, fold};
use crate::error::{DataError, Result};

const REMAKE: &str = "edit the file, or remove it and let a new one be made";

/// A case as a split sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member<'a> {
    /// The name of the case.
    pub id: &'a str,
    /// Its patient or series.
    pub group: &'a str,
}

/// How the cases are divided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assignment {
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
    pub assignment: Assignment,
}

/// What the file holds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    method: String,
    seed: Option<u64>,
    train: Option<Vec<String>>,
    validation: Option<Vec<String>>,
    test: Option<Vec<String>>,
    folds: Option<Vec<Vec<String>>>,
}

/// The cases of each part.
fn lists(members: &[Member<'_>], parts: &[Split]) -> Assignment {
    let list = |split| {
        let of_split = members.iter().zip(parts).filter(|(_, part)| **part == split);
        of_split.map(|(member, _)| member.id.to_owned()).collect()
    };
    Assignment::Parts(Split::ALL.map(list))
}

impl SplitFile {
    /// How a split by ratios is described.
    pub fn ratios_method(ratios: Ratios) -> String {
        format!("{ratios} by group")
    }

    /// How a split into folds is described.
    pub fn folds_method(folds: usize) -> String {
        format!("{folds} folds by group")
    }

    /// A split by ratios.
    pub fn by_ratios(members: &[Member<'_>], ratios: Ratios, seed: u64) -> Result<Self> {
        let groups: Vec<&str> = members.iter().map(|member| member.group).collect();
        let parts = divide(&groups, ratios, seed)?;
        let assignment = lists(members, &parts);
        Ok(Self { method: Self::ratios_method(ratios), seed: Some(seed), assignment })
    }

    /// The split of a run: parts as they are, taken from now on without asking how they were made.
    pub fn of_parts(members: &[Member<'_>], parts: &[Split], method: &str) -> Self {
        Self { method: method.to_owned(), seed: None, assignment: lists(members, parts) }
    }

    /// A split into folds.
    pub fn by_folds(members: &[Member<'_>], folds: usize, seed: u64) -> Result<Self> {
        let groups: Vec<&str> = members.iter().map(|member| member.group).collect();
        let numbers = fold(&groups, folds, seed)?;
        let mut lists = vec![vec![]; folds];
        for (member, number) in members.iter().zip(numbers) {
            lists[number].push(member.id.to_owned());
        }
        let method = Self::folds_method(folds);
        Ok(Self { method, seed: Some(seed), assignment: Assignment::Folds(lists) })
    }

    /// The part of each case; `fold` says which fold is the validation set, and is ignored for three lists.
    ///
    /// Refuses a file that does not name every case exactly once, or names one that is not there.
    pub fn parts(&self, path: &Path, members: &[Member<'_>], fold: usize) -> Result<Vec<Split>> {
        let wrong = |reason: String| DataError::Dataset { path: path.to_owned(), reason, advice: REMAKE };
        let lists: Vec<(Split, &Vec<String>)> = match &self.assignment {
            Assignment::Parts(lists) => Split::ALL.into_iter().zip(lists).collect(),
            Assignment::Folds(lists) if fold >= lists.len() => {
                let reason =
                    format!("fold {fold} is asked for, but the file has folds 0 to {}", lists.len() - 1);
                return Err(wrong(reason));
            }
            Assignment::Folds(lists) => {
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
        let present: BTreeSet<&str> = members.iter().map(|member| member.id).collect();
        if let Some(id) = part_of.keys().find(|id| !present.contains(**id)) {
            return Err(wrong(format!("the case {id:?} is listed, but the dataset does not have it")));
        }
        let absent: Vec<&str> = present.iter().filter(|id| !part_of.contains_key(**id)).copied().collect();
        match absent.first() {
            Some(id) => Err(wrong(format!("{} cases are not listed, such as {id:?}", absent.len()))),
            None => Ok(members.iter().filter_map(|member| part_of.get(member.id).copied()).collect()),
        }
    }

    /// Reads a split.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = read_bytes(path, &Limits::default())?;
        let wrong = |reason: String| DataError::Dataset { path: path.to_owned(), reason, advice: REMAKE };
        let text = String::from_utf8(bytes).map_err(|error| wrong(error.to_string()))?;
        let content: Content = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let assignment = match (content.train, content.folds) {
            (Some(train), None) => Assignment::Parts([
                train,
                content.validation.unwrap_or_default(),
                content.test.unwrap_or_default(),
            ]),
            (None, Some(folds)) if folds.len() >= 2 => Assignment::Folds(folds),
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

    /// The text of the file.
    pub fn to_toml(&self) -> String {
        let mut text =
            String::from("# Which cases are for what. Keep this file beside the results that it made.\n");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "method = {}", quoted(&self.method));
        if let Some(seed) = self.seed {
            let _ = writeln!(text, "seed = {seed}");
        }
        match &self.assignment {
            Assignment::Parts(lists) => {
                for (split, list) in Split::ALL.iter().zip(lists) {
                    let _ = writeln!(text, "\n{split} = [{}]", lines(list, "  "));
                }
            }
            Assignment::Folds(lists) => {
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
    let rows: String = ids.iter().map(|id| format!("{indent}{},\n", quoted(id))).collect();
    format!("\n{rows}")
}

/// A text as TOML writes it.
pub(crate) fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(names: &[&'static str]) -> Vec<Member<'static>> {
        names.iter().map(|name| Member { id: name, group: &name[..1] }).collect()
    }

    #[test]
    fn files_go_round() {
        let folder = tempfile::tempdir().unwrap();
        let members = members(&["a1", "a2", "b \"odd\"", "c1", "d1"]);
        for (name, split) in [
            ("ratios", SplitFile::by_ratios(&members, Ratios::LIDC, 3).unwrap()),
            ("folds", SplitFile::by_folds(&members, 3, 3).unwrap()),
        ] {
            let path = folder.path().join("split.toml");
            split.write(&path).unwrap();
            let back = SplitFile::read(&path).unwrap();
            assert_eq!(back, split);
            insta::assert_snapshot!(format!("split_{name}"), split.to_toml());
            let parts = back.parts(&path, &members, 1).unwrap();
            assert_eq!(parts[0], parts[1], "one group, one part");
        }
    }

    #[test]
    fn files_that_do_not_fit_are_refused() {
        let members = members(&["a1", "b1"]);
        let parts = |lists: [&[&str]; 3]| {
            let lists = lists.map(|list| list.iter().map(|id| (*id).to_owned()).collect());
            SplitFile { method: "by hand".into(), seed: None, assignment: Assignment::Parts(lists) }
        };
        let message = |file: &SplitFile, fold| {
            file.parts(Path::new("split.toml"), &members, fold).unwrap_err().to_string()
        };
        let folds = SplitFile::by_folds(&members, 2, 0).unwrap();
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
