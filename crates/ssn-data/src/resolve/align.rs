//! Alignment of the names of files with cases: `Seg_Case01_cup.png` is a file of the case `case_1`.

use std::collections::BTreeMap;

use crate::resolve::words::{core, cuts, shared_ends, without_ends, without_kinds, words};

/// Cases by the words of their names.
type Table = BTreeMap<Vec<String>, Vec<String>>;

/// Names of cases, to be found in the names of their files.
pub struct CaseNames {
    /// Ids by their text in lower case.
    written: BTreeMap<String, Vec<String>>,
    /// Ids by all their words.
    whole: Table,
    /// Ids by their words without kinds of files.
    core: Table,
    /// Ids by these words without those that all ids share.
    short: Table,
}

/// How much a name may differ from the name of its case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// The name contains the text of the id next to a separator, or all its words.
    Strict,
    /// Words that all ids share may be missing.
    Free,
}

/// Case of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum NameMatch<'a> {
    /// One case, and the rest of the name.
    Case(&'a str, Vec<String>),
    /// All cases that the name fits equally well.
    Several(Vec<&'a str>),
    None,
}

/// Separators next to the id in the name of a file.
const SEPARATORS: &[char] = &['_', '-', '.', ' '];

impl CaseNames {
    pub fn of<S: AsRef<str>>(ids: impl IntoIterator<Item = S>) -> Self {
        let mut names =
            Self { written: BTreeMap::new(), whole: Table::new(), core: Table::new(), short: Table::new() };
        for id in ids {
            let (id, words) = (id.as_ref().to_owned(), words(id.as_ref()));
            names.written.entry(id.to_lowercase()).or_default().push(id.clone());
            names.core.entry(core(&words).to_vec()).or_default().push(id.clone());
            names.whole.entry(words).or_default().push(id);
        }
        let ends = shared_ends(&names.core.keys().map(Vec::as_slice).collect::<Vec<_>>());
        for (words, ids) in &names.core {
            names.short.entry(without_ends(words, ends).to_vec()).or_default().extend(ids.iter().cloned());
        }
        names
    }

    /// Returns the case of a file, by the name without its ending.
    pub fn find(&self, stem: &str, align: Align) -> NameMatch<'_> {
        match align {
            Align::Strict => self.find_written(stem).unwrap_or_else(|| self.find_words(stem, &[], align)),
            Align::Free => self.find_words(stem, &[], align),
        }
    }

    /// Like [`Self::find`] with [`Align::Free`], for a file in the folder of a rater, whose words its name may repeat.
    pub fn find_of_rater(&self, stem: &str, rater: &[String]) -> NameMatch<'_> {
        self.find_words(stem, rater, Align::Free)
    }

    /// Returns the case whose text starts or ends the name next to a separator, the longest first.
    fn find_written(&self, stem: &str) -> Option<NameMatch<'_>> {
        let lower = stem.to_lowercase();
        let mut parts = vec![(lower.as_str(), 0..0)];
        for (before, after) in cuts(&lower, SEPARATORS) {
            parts.push((before, before.len()..lower.len()));
            parts.push((after, 0..lower.len() - after.len()));
        }
        parts.sort_by_key(|(part, _)| std::cmp::Reverse(part.len()));
        let mut found =
            parts.into_iter().filter_map(|(part, rest)| Some((part, rest, self.written.get(part)?)));
        let (first, rest, ids) = found.next()?;
        let others = found.take_while(|(part, ..)| part.len() == first.len() && *part != first);
        let ids: Vec<&str> = ids.iter().chain(others.flat_map(|(.., ids)| ids)).map(String::as_str).collect();
        // The rest as it is written, where lower case has the same length.
        let rest = stem.get(rest.clone()).filter(|_| lower.len() == stem.len()).unwrap_or(&lower[rest]);
        Some(match ids[..] {
            [id] => NameMatch::Case(id, if rest.is_empty() { vec![] } else { vec![rest.to_owned()] }),
            _ => NameMatch::Several(ids),
        })
    }

    /// Returns the case by words: all of them, or the most at the start or at the end of the name.
    fn find_words(&self, stem: &str, rater: &[String], align: Align) -> NameMatch<'_> {
        let all = words(stem);
        let plain = core(&all);
        let own = plain.strip_prefix(rater).or_else(|| plain.strip_suffix(rater)).map(core);
        let own = own.filter(|own| !own.is_empty()).unwrap_or(plain);
        let tables = if align == Align::Free { &[&self.core, &self.short][..] } else { &[&self.core] };
        let whole = [(&self.whole, &all[..]), (&self.core, plain)].into_iter();
        let whole = whole.chain(tables.iter().map(|table| (*table, own)));
        for (table, case) in whole {
            if let Some(ids) = table.get(case) {
                let same = ids.iter().find(|id| *id == stem);
                return match same.or_else(|| ids.iter().find(|id| id.eq_ignore_ascii_case(stem))) {
                    Some(id) => NameMatch::Case(id, vec![]),
                    None => one_of(ids, &[]),
                };
            }
        }
        let places = tables.iter().flat_map(|table| (1..own.len()).rev().map(move |n| (table, n)));
        for (table, n) in places {
            let (start, end) = (own.split_at(n), own.split_at(own.len() - n));
            match (table.get(start.0), table.get(end.1)) {
                (Some(first), Some(second)) if align == Align::Strict && first != second => {
                    return NameMatch::Several(first.iter().chain(second).map(String::as_str).collect());
                }
                (Some(ids), _) if align == Align::Free => return one_of(ids, without_kinds(start.1)),
                (None, Some(ids)) if align == Align::Free => return one_of(ids, without_kinds(end.0)),
                (Some(ids), _) => return one_of(ids, start.1),
                (None, Some(ids)) => return one_of(ids, end.0),
                (None, None) => {}
            }
        }
        NameMatch::None
    }
}

fn one_of<'a>(ids: &'a [String], rest: &[String]) -> NameMatch<'a> {
    match ids {
        [id] => NameMatch::Case(id, rest.to_vec()),
        several => NameMatch::Several(several.iter().map(String::as_str).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::texts;

    #[test]
    fn files_find_their_images() {
        let names = CaseNames::of(["case_01", "case_02", "case_02_left", "case_11"]);
        let rater = words("Rater1");
        for (stem, expected) in [
            ("case_01", Some(("case_01", ""))),
            ("Seg_CASE1_gt", Some(("case_01", ""))),
            ("mask-case-2-left", Some(("case_02_left", ""))),
            ("case_02_cup", Some(("case_02", "cup"))),
            ("cup_mask_case02", Some(("case_02", "cup"))),
            ("Rater1_case_11", Some(("case_11", ""))),
            ("case_11_rater1_seg", Some(("case_11", ""))),
            ("11", Some(("case_11", ""))),
            ("case_3", None),
            ("case", None),
        ] {
            let expected = expected.map_or(NameMatch::None, |(id, rest)| {
                NameMatch::Case(id, rest.split_whitespace().map(str::to_owned).collect())
            });
            assert_eq!(names.find_of_rater(stem, &rater), expected, "{stem}");
        }
    }

    #[test]
    fn a_name_may_fit_several_cases() {
        let names = CaseNames::of(["Case1", "case_1"]);
        assert_eq!(names.find("case_1", Align::Free), NameMatch::Case("case_1", vec![]));
        assert_eq!(names.find("case1", Align::Free), NameMatch::Case("Case1", vec![]));
        assert_eq!(names.find("case-1_seg", Align::Free), NameMatch::Several(vec!["Case1", "case_1"]));
        let names = CaseNames::of(["ab", "cd"]);
        assert_eq!(names.find("ab_cd", Align::Strict), NameMatch::Several(vec!["ab", "cd"]));
    }

    #[test]
    fn strict_names_have_the_text_or_all_words_of_an_id() {
        let rest = |stem: &str, ids: &[&str]| match CaseNames::of(ids).find(stem, Align::Strict) {
            NameMatch::Case(case, rest) => Some(format!("{case}: {}", rest.join("_"))),
            _ => None,
        };
        assert_eq!(rest("ab_cd", &["ab", "ab_cd"]).as_deref(), Some("ab_cd: "));
        assert_eq!(rest("Ä1_Sample2", &["ä1"]).as_deref(), Some("ä1: _Sample2"));
        // Words count if the text is missing.
        assert_eq!(rest("pred_case01", &["Seg_Case_1", "Seg_Case_2"]).as_deref(), Some("Seg_Case_1: pred"));
        assert_eq!(rest("control_1", &["case_1", "case_2"]), None);
        let names = CaseNames::of(["Seg_case1", "case1_mask"]);
        assert_eq!(names.find("case_1", Align::Strict), NameMatch::Several(vec!["Seg_case1", "case1_mask"]));
        assert_eq!(CaseNames::of(texts(&[])).find("a", Align::Free), NameMatch::None);
    }
}
