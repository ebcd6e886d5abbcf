//! Files of segmentations that any tool wrote, by case: samples, probabilities, predictions, or raters without images.
//!
//! | form | example |
//! |---|---|
//! | a file per case and sample | `case1_0.nii.gz`, `case1_sample_1.nii.gz`, `sample1_case1.png` |
//! | a letter per rater | `case1_A.png`, `case1_B.png` |
//! | a folder per sample, or per rater | `sample0/case1.png`, `alice/case1.png` |
//! | a folder per case | `case1/0.npy`, `case1/1.npy` |
//! | a file per case | `case1.nii.gz`; of several channels, each is a sample |
//! | a pattern | `out/{case}/seed*/mask_{sample}.png` |

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ssn_io::{Error, Result};

use crate::dataset::{Dataset, Layout};
use crate::layouts::{DatasetOverrides, Draft};
use crate::resolve::files::{check_name, entries, is_image, name, natural_order, stem};
use crate::resolve::{Align, CaseNames, FoundCase, Hint, NameMatch, RaterKey, Tree, numbered};
use crate::text::listed;

/// The ending of arrays of probabilities, as nnU-Net writes them beside its label maps.
const ARRAY: &str = ".npz";

/// What files hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileContent {
    /// Label maps.
    Labels,
    /// Probabilities: where a case has an `.npz` file, that one.
    Probabilities,
}

/// The files of each case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FilesByCase {
    /// By the name of the case: what names each file besides the case, and the file, in natural order of these names.
    pub cases: BTreeMap<String, Vec<(String, PathBuf)>>,
    /// Files that belong to none of the cases that are known.
    pub unmatched: Vec<PathBuf>,
}

/// Cases that files are matched with.
struct KnownCases<'a> {
    ids: &'a [&'a str],
    names: CaseNames,
}

impl FilesByCase {
    /// Finds the files in a folder, or those of a pattern with `{case}`, `{sample}` and `*`. Where the names of cases are known, files
    /// are matched with them, upper and lower case being the same; where a name has none of them, separators, leading zeros and
    /// words such as *seg* at the ends do not count either.
    ///
    /// # Errors
    /// No such folder, no file, and a file whose name fits two cases.
    pub fn find(path: &Path, content: FileContent, known: Option<&[&str]>) -> Result<Self> {
        let mut found = Self::default();
        let known = known.map(|ids| KnownCases { ids, names: CaseNames::of(ids) });
        let known = known.as_ref();
        if path.to_string_lossy().contains(['*', '{']) {
            found.by_pattern(path, known)?;
        } else if path.is_file() {
            check_name(path)?;
            found.add(known, false, path, "")?;
        } else {
            found.in_folder(path, known)?;
        }
        found.keep(content);
        for files in found.cases.values_mut() {
            files.sort_by(|a, b| natural_order(&a.0, &b.0));
        }
        if found.cases.is_empty() {
            let reason = match found.unmatched.first() {
                Some(first) => format!(
                    "none of its files is named after a case; the first is {}, and the cases are {}",
                    name(first),
                    listed(known.map(|known| known.ids).unwrap_or_default(), 3)
                ),
                None => "there are no files of label maps".to_owned(),
            };
            let advice =
                "name files after their cases, or give a pattern, such as 'out/{case}_{sample}.nii.gz'";
            return Err(Error::data(path, reason).advise(advice));
        }
        Ok(found)
    }

    /// Leaves out files that do not hold what is wanted.
    fn keep(&mut self, content: FileContent) {
        let is_array = |path: &PathBuf| name(path).to_lowercase().ends_with(ARRAY);
        for files in self.cases.values_mut() {
            let arrays = files.iter().any(|(_, path)| is_array(path));
            files.retain(|(_, path)| match content {
                FileContent::Labels => !is_array(path),
                FileContent::Probabilities => is_array(path) || !arrays,
            });
        }
        self.cases.retain(|_, files| !files.is_empty());
    }

    fn in_folder(&mut self, folder: &Path, known: Option<&KnownCases<'_>>) -> Result<()> {
        let tree = Tree::new();
        let mut folders = tree.folders(folder)?;
        folders.retain(|folder| !Hint::Images.fits(&name(folder)));
        let files = maps(&tree, folder)?;
        if folders.is_empty() || !files.is_empty() {
            // Numbers behind one name only are those of cases: `case_01`, `case_02`.
            let id = |stem: &str| numbered(stem, Hint::Sample).map_or(stem, |(id, _)| id).to_owned();
            let ids: BTreeSet<String> = files.iter().map(|file| id(&stem(file))).collect();
            let is_numbered = ids.len() > 1 || files.len() == 1;
            if known.is_none() && are_lettered(&files) {
                for file in &files {
                    let stem = stem(file);
                    let (case, letter) = stem.split_at(stem.len() - 2);
                    self.cases
                        .entry(case.to_owned())
                        .or_default()
                        .push((letter[1..].to_owned(), file.clone()));
                }
                return Ok(());
            }
            return files.iter().try_for_each(|file| self.add(known, is_numbered, file, ""));
        }
        let inside = folders.iter().map(|folder| maps(&tree, folder)).collect::<Result<Vec<_>>>()?;
        if are_cases(&folders, &inside, known) {
            for (folder, files) in folders.iter().zip(inside) {
                let own = (name(folder), String::new());
                match known.map_or(Ok(Some(own)), |known| known.case_of(&name(folder), folder))? {
                    Some((case, _)) => {
                        let named = files.into_iter().map(|file| (stem(&file), file));
                        self.cases.entry(case).or_default().extend(named);
                    }
                    None => self.unmatched.extend(files),
                }
            }
            return Ok(());
        }
        for (folder, files) in folders.iter().zip(&inside) {
            files.iter().try_for_each(|file| self.add(known, false, file, &name(folder)))?;
        }
        Ok(())
    }

    /// Adds a file by its name: that of a known case with something before or behind it, or else the name before a number
    /// if `is_numbered`.
    fn add(
        &mut self,
        known: Option<&KnownCases<'_>>,
        is_numbered: bool,
        file: &Path,
        folder: &str,
    ) -> Result<()> {
        let stem = stem(file);
        let (case, rest) = match known {
            Some(known) => match known.case_of(&stem, file)? {
                Some(found) => found,
                None => {
                    self.unmatched.push(file.to_owned());
                    return Ok(());
                }
            },
            None => match numbered(&stem, Hint::Sample) {
                Some((case, _)) if is_numbered => {
                    (case.trim_end_matches(['_', '-']).to_owned(), stem[case.len()..].to_owned())
                }
                _ => (stem, String::new()),
            },
        };
        let named = match (folder.is_empty(), rest.trim_matches(['_', '-', '.', ' '])) {
            (true, rest) => rest.to_owned(),
            (false, "") => folder.to_owned(),
            (false, rest) => format!("{folder} {rest}"),
        };
        self.cases.entry(case).or_default().push((named, file.to_owned()));
        Ok(())
    }

    fn by_pattern(&mut self, pattern: &Path, known: Option<&KnownCases<'_>>) -> Result<()> {
        if !pattern.to_string_lossy().contains("{case}") {
            let advice = "put {case} where the name of the case stands, such as 'out/{case}_{sample}.nii.gz'";
            return Err(Error::data(pattern, "the pattern does not say where the case is").advise(advice));
        }
        let names_sample = pattern.to_string_lossy().contains("{sample}");
        let mut places = vec![(PathBuf::new(), Captured { names_sample, ..Captured::default() })];
        for part in pattern.components() {
            let part = part.as_os_str().to_string_lossy();
            if !part.contains(['*', '{']) {
                places.iter_mut().for_each(|(path, _)| path.push(part.as_ref()));
                continue;
            }
            let mut next = vec![];
            for (folder, captured) in places {
                let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
                let present = if folder.is_dir() { entries(&folder)? } else { vec![] };
                for entry in present {
                    next.extend(
                        matched(&part, &name(&entry), &captured).map(|captured| (entry.clone(), captured)),
                    );
                }
            }
            places = next;
        }
        for (file, captured) in places.into_iter().filter(|(file, _)| file.is_file()) {
            let case = match known {
                None => Some(captured.case),
                Some(known) => known
                    .ids
                    .iter()
                    .find(|id| id.eq_ignore_ascii_case(&captured.case))
                    .map(|id| (*id).to_owned()),
            };
            match case {
                Some(case) => self.cases.entry(case).or_default().push((captured.sample, file)),
                None => self.unmatched.push(file),
            }
        }
        Ok(())
    }
}

/// What the placeholders of a pattern stand for.
#[derive(Debug, Clone, Default, PartialEq)]
struct Captured {
    case: String,
    sample: String,
    /// Whether the pattern says where the sample is.
    names_sample: bool,
}

/// Matches a name with a part of a pattern, in which `{case}`, `{sample}` and `*` stand for any text; the shortest that fits.
fn matched(pattern: &str, text: &str, captured: &Captured) -> Option<Captured> {
    let Some(at) = pattern.find(['*', '{']) else { return (pattern == text).then(|| captured.clone()) };
    let text = text.strip_prefix(&pattern[..at])?;
    let (kind, rest) = ["{case}", "{sample}", "*"]
        .iter()
        .find_map(|kind| pattern[at..].strip_prefix(kind).map(|rest| (*kind, rest)))?;
    let ends = (0..=text.len()).filter(|&end| text.is_char_boundary(end));
    ends.filter(|&end| end > 0 || kind == "*").find_map(|end| {
        let mut captured = captured.clone();
        match kind {
            // A case that stands twice in a pattern is the same both times.
            "{case}" if !captured.case.is_empty() && captured.case != text[..end] => return None,
            "{case}" => text[..end].clone_into(&mut captured.case),
            "{sample}" => captured.sample += &text[..end],
            // Without {sample}, what stars stand for tells files of a case apart.
            _ if !captured.names_sample => captured.sample += &text[..end],
            _ => {}
        }
        matched(rest, &text[end..], &captured)
    })
}

/// Whether all names end in a letter of a rater, `case1_A` and `case1_B`, and most cases have several.
fn are_lettered(files: &[PathBuf]) -> bool {
    let mut cases = BTreeMap::<String, usize>::new();
    for file in files {
        let stem = stem(file);
        match stem.as_bytes() {
            [.., before, b'_' | b'-', letter]
                if letter.is_ascii_alphabetic() && before.is_ascii_alphanumeric() =>
            {
                *cases.entry(stem[..stem.len() - 2].to_owned()).or_default() += 1;
            }
            _ => return false,
        }
    }
    2 * cases.values().filter(|count| **count > 1).count() > cases.len()
}

/// Returns the files of label maps or arrays in a folder.
fn maps(tree: &Tree<'_>, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = tree.files(folder)?;
    files.retain(|path| is_image(path) || name(path).to_lowercase().ends_with(ARRAY));
    Ok(files)
}

/// Whether folders are of cases, and not of samples or raters: their names are those of cases, or their files are not named alike.
fn are_cases(folders: &[PathBuf], inside: &[Vec<PathBuf>], known: Option<&KnownCases<'_>>) -> bool {
    if let Some(known) = known {
        let of_case = |folder: &&PathBuf| known.ids.iter().any(|id| id.eq_ignore_ascii_case(&name(folder)));
        return folders.iter().any(|folder| of_case(&folder));
    }
    let stems = |files: &Vec<PathBuf>| files.iter().map(|file| stem(file)).collect::<BTreeSet<_>>();
    let all: Vec<BTreeSet<String>> = inside.iter().map(stems).collect();
    let alike =
        |a: &BTreeSet<String>, b: &BTreeSet<String>| 2 * a.intersection(b).count() >= a.len().min(b.len());
    if !all.windows(2).all(|pair| alike(&pair[0], &pair[1])) {
        return true;
    }
    // Folders of raters have the names of cases in common. Those of cases may have `0`, `1`, `2` in common; then they are
    // numbered themselves.
    let is_number = |name: &str, hint: Hint| {
        let lower = name.to_lowercase();
        let mut rests = hint.words().filter_map(|word| lower.strip_prefix(word)).chain([lower.as_str()]);
        rests.any(|rest| rest.trim_matches(['_', '-', ' ']).bytes().all(|byte| byte.is_ascii_digit()))
    };
    let is_of_case = |folder: &PathBuf| {
        let name = name(folder);
        name.bytes().any(|byte| byte.is_ascii_digit()) && !is_number(&name, Hint::Source)
    };
    all.iter().flatten().all(|stem| is_number(stem, Hint::Sample)) && folders.iter().all(is_of_case)
}

impl KnownCases<'_> {
    /// Returns the case of a file, and the rest of its name.
    fn case_of(&self, stem: &str, file: &Path) -> Result<Option<(String, String)>> {
        match self.names.find(stem, Align::Strict) {
            NameMatch::None => Ok(None),
            NameMatch::Case(case, rest) => Ok(Some((case.to_owned(), rest.join("_")))),
            NameMatch::Several(mut ids) => {
                ids.sort_by_key(|id| self.ids.iter().position(|known| known == id));
                let reason = format!("its name fits the cases {} and {}", ids[0], ids[1]);
                Err(Error::data(file, reason).advise("rename it, or give a pattern with {case}"))
            }
        }
    }
}

impl Dataset {
    /// The label maps of raters, without images, in one of the forms of [`FilesByCase`].
    ///
    /// # Errors
    /// As [`FilesByCase::find`].
    pub fn of_labels(path: &Path, known: &DatasetOverrides) -> Result<Self> {
        let found = FilesByCase::find(path, FileContent::Labels, None)?;
        let case = |(id, files): (String, Vec<(String, PathBuf)>)| {
            let mut case = FoundCase { id, ..FoundCase::default() };
            files.into_iter().for_each(|(name, path)| case.add_labels(RaterKey::Name(name), path));
            case
        };
        let mut cases: Vec<FoundCase> = found.cases.into_iter().map(case).collect();
        cases.sort_by(|a, b| natural_order(&a.id, &b.id));
        let draft = Draft::of_cases(Layout::LabelFiles, cases);
        Draft { channels: Some(vec![]), ..draft }.complete(path, known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(names: &[&str], known: Option<&[&str]>) -> FilesByCase {
        let folder = tempfile::tempdir().unwrap();
        for file in names {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"").unwrap();
        }
        FilesByCase::find(folder.path(), FileContent::Labels, known).unwrap()
    }

    fn listed_files(found: &FilesByCase) -> Vec<String> {
        let of = |(case, files): (&String, &Vec<(String, PathBuf)>)| {
            let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
            format!("{case}: {}", names.join(", "))
        };
        found.cases.iter().map(of).collect()
    }

    #[test]
    fn every_form_is_understood() {
        let known: &[&str] = &["case1", "case10"];
        let flat = ["case1_0.png", "Case1_2.png", "case1_10.png", "case10_sample0.png", "other.png"];
        let found = find(&flat, Some(known));
        assert_eq!(listed_files(&found), ["case1: 0, 2, 10", "case10: sample0"]);
        assert_eq!(found.unmatched.len(), 1);
        let before = find(&["seg_case1.nii.gz", "pred-0_case10.nii.gz"], Some(known));
        assert_eq!(listed_files(&before), ["case1: seg", "case10: pred-0"]);
        let samples = find(&["s0/case1.png", "s1/case1.png", "s1/case10.png"], Some(known));
        assert_eq!(listed_files(&samples), ["case1: s0, s1", "case10: s1"]);
        let cases = find(&["case1/0.npy", "case1/1.npy", "CASE10/0.npy"], Some(known));
        assert_eq!(listed_files(&cases), ["case1: 0, 1", "case10: 0"]);
    }

    #[test]
    fn cases_are_found_out_where_none_is_known() {
        assert_eq!(
            listed_files(&find(&["a_0.png", "a_1.png", "b_0.png"], None)),
            ["a: _0, _1".replace('_', ""), "b: 0".into()]
        );
        assert_eq!(
            listed_files(&find(&["alice/x.png", "alice/y.png", "bob/x.png"], None)),
            ["x: alice, bob", "y: alice"]
        );
        assert_eq!(listed_files(&find(&["x1/0.png", "x1/1.png", "x2/0.png"], None)), ["x1: 0, 1", "x2: 0"]);
        let numbers = ["alice/1.png", "alice/2.png", "bob/1.png", "images/1.png"];
        assert_eq!(listed_files(&find(&numbers, None)), ["1: alice, bob", "2: alice"]);
        assert_eq!(listed_files(&find(&["case_01.png", "case_02.png"], None)), ["case_01: ", "case_02: "]);
        assert_eq!(listed_files(&find(&["x.png", "y.png"], None)), ["x: ", "y: "]);
        let letters = ["p1_A.png", "p1_B.png", "p2_A.png", "p2_B.png", "p3_A.png"];
        assert_eq!(listed_files(&find(&letters, None)), ["p1: A, B", "p2: A, B", "p3: A"]);
        assert_eq!(listed_files(&find(&["p1_A.png", "p2_B.png"], None)), ["p1_A: ", "p2_B: "]);
    }

    #[test]
    fn probabilities_lie_beside_label_maps() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["a.nii.gz", "a.npz", "b.nii.gz"] {
            std::fs::write(folder.path().join(file), b"").unwrap();
        }
        let found = |content| {
            let found = FilesByCase::find(folder.path(), content, Some(&["a", "b"])).unwrap();
            found.cases.values().flatten().map(|(_, path)| name(path)).collect::<Vec<_>>()
        };
        assert_eq!(found(FileContent::Labels), ["a.nii.gz", "b.nii.gz"]);
        assert_eq!(found(FileContent::Probabilities), ["a.npz", "b.nii.gz"]);
    }

    #[test]
    fn patterns_say_what_is_what() {
        let none = Captured::default();
        let found = matched("{case}_s{sample}.nii.gz", "a_b_s12.nii.gz", &none).unwrap();
        assert_eq!((found.case.as_str(), found.sample.as_str()), ("a_b", "12"));
        assert_eq!(matched("*x", "abc", &none), None);
        assert!(matched("run*", "run", &none).is_some());
    }

    #[test]
    fn names_that_fit_two_cases_are_refused() {
        let known = KnownCases { ids: &["ab", "cd"], names: CaseNames::of(["ab", "cd"]) };
        let error = known.case_of("ab_cd", Path::new("ab_cd.png")).unwrap_err().to_string();
        assert!(error.contains("its name fits the cases ab and cd"), "{error}");
    }
}
