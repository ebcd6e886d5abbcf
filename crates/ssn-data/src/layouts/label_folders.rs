//! A folder of label maps per case: `labels/case1/rater1.png`, `labels/case1/case1_r2.png`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ssn_io::Result;

use crate::resolve::files::{name, stem};
use crate::resolve::{Align, CaseNames, Hint, NameMatch, RaterKey, Tree, without_kinds, words};

/// Label maps by case and rater.
pub(super) type ByCase = Vec<(String, RaterKey, PathBuf)>;

/// Returns the label maps in a folder of labels whose folders are named after cases.
///
/// Folders named 1, 2, 3 next to images named 1, 2, 3 are of raters if their files have the names of other cases.
pub(super) fn by_case(tree: &Tree<'_>, labels: &Path, names: &CaseNames) -> Result<Option<ByCase>> {
    let folders = tree.folders(labels)?;
    let (mut found, mut made, mut cases, mut foreign) = (vec![], vec![], BTreeSet::new(), 0);
    if folders.is_empty() || !tree.images(labels)?.is_empty() {
        return Ok(None);
    }
    for folder in folders.into_iter().filter(|folder| !tree.is_series(folder)) {
        let (folder_name, files) = (name(&folder), tree.images(&folder)?);
        let NameMatch::Case(case, rest) = names.find(&folder_name, Align::Strict) else { return Ok(None) };
        if !rest.is_empty() || files.is_empty() || !cases.insert(case) {
            return Ok(None);
        }
        for path in files {
            let stem = stem(&path);
            if Hint::Made.fits_one(&words(&stem)) {
                made.push((case.to_owned(), RaterKey::Number(0), path));
                continue;
            }
            let rest = match names.find(&stem, Align::Strict) {
                NameMatch::Case(own, rest) if own == case => {
                    rest.iter().flat_map(|rest| words(rest)).collect()
                }
                NameMatch::Case(..) => {
                    foreign += 1;
                    words(&stem)
                }
                _ => words(&stem),
            };
            let Some(rater) = rater_of(&rest) else { return Ok(None) };
            found.push((case.to_owned(), rater, path));
        }
    }
    // A consensus next to raters is not one of them.
    let found = if found.is_empty() { made } else { found };
    Ok((!found.is_empty() && 2 * foreign < found.len()).then_some(found))
}

/// Returns the rater that words name by a number or as a person; other words may be structures.
fn rater_of(words: &[String]) -> Option<RaterKey> {
    let is_rater = |word: &String| word.starts_with(char::is_numeric) || Hint::Person.fits(word);
    match without_kinds(words) {
        [] => Some(RaterKey::Number(0)),
        own => own.iter().any(is_rater).then(|| RaterKey::of(&own.concat())),
    }
}
