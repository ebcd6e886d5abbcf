//! Which case a file belongs to, by the words of its name: `Seg_Case01_cup.png` is of the image `case_1.jpg`.

use std::collections::BTreeMap;

/// Words at the ends of names that say what a file is, not which case it is of.
const KINDS: [&str; 27] = [
    "seg",
    "segs",
    "segmentation",
    "segmentations",
    "mask",
    "masks",
    "gt",
    "groundtruth",
    "ground",
    "truth",
    "label",
    "labels",
    "lbl",
    "annotation",
    "annotations",
    "annot",
    "anno",
    "manual",
    "binary",
    "img",
    "im",
    "image",
    "images",
    "scan",
    "photo",
    "pic",
    "picture",
];

/// The words of a name in lower case. Letters and numbers are words of their own, and numbers have no leading zeros:
/// `Case_007a` is `case`, `7`, `a`.
pub fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![];
    let mut before = None;
    for letter in name.chars() {
        let kind = letter.is_alphanumeric().then(|| letter.is_numeric());
        match words.last_mut() {
            Some(word) if kind.is_some() && kind == before => word.extend(letter.to_lowercase()),
            _ if kind.is_some() => words.push(letter.to_lowercase().collect()),
            _ => {}
        }
        before = kind;
    }
    let significant = |word: String| match word.trim_start_matches('0') {
        "" => "0".to_owned(),
        rest => rest.to_owned(),
    };
    words.into_iter().map(significant).collect()
}

/// Words without those at their ends that say what a file is; none may be left.
fn without_kinds(words: &[String]) -> &[String] {
    let is_kind = |word: &String| KINDS.contains(&word.as_str());
    let start = words.iter().take_while(|word| is_kind(word)).count();
    let end = words.iter().rev().take_while(|word| is_kind(word)).count();
    words.get(start..words.len() - end).unwrap_or(&[])
}

/// The same, or all words where none would be left.
pub fn core(words: &[String]) -> &[String] {
    Some(without_kinds(words)).filter(|core| !core.is_empty()).unwrap_or(words)
}

/// How many words all names share at their starts and at their ends, if there are several names.
pub fn shared_ends(names: &[&[String]]) -> [usize; 2] {
    let [first, others @ ..] = names else { return [0; 2] };
    let shared = |same: &dyn Fn(&[String], usize) -> bool| {
        (0..first.len()).take_while(|&place| others.iter().all(|other| same(other, place))).count()
    };
    let start = shared(&|other, place| other.get(place) == first.get(place));
    let end = shared(&|other, place| other.iter().rev().nth(place) == first.iter().rev().nth(place));
    if others.is_empty() { [0; 2] } else { [start, end] }
}

/// Words without so many at their start and end; all of them if nothing would be left.
pub fn without_ends(words: &[String], [start, end]: [usize; 2]) -> &[String] {
    let inner = words.get(start..words.len().saturating_sub(end));
    inner.filter(|inner| !inner.is_empty()).unwrap_or(words)
}

type Table = BTreeMap<Vec<String>, Vec<String>>;

/// The names of cases, to be found in the names of their files.
pub struct CaseNames {
    /// Ids by all their words.
    whole: Table,
    /// Without words that say what a file is.
    core: Table,
    /// And without what all of them share.
    short: Table,
}

/// The case that a file is of.
#[derive(Debug, PartialEq, Eq)]
pub enum NameMatch<'a> {
    /// One, and what else the name says.
    Case(&'a str, Vec<String>),
    /// The name fits several.
    Several(&'a [String]),
    None,
}

impl CaseNames {
    pub fn of<'a>(ids: impl Iterator<Item = &'a String>) -> Self {
        let (mut whole, mut cores, mut short) = (Table::new(), Table::new(), Table::new());
        for id in ids {
            let words = words(id);
            cores.entry(core(&words).to_vec()).or_default().push(id.clone());
            whole.entry(words).or_default().push(id.clone());
        }
        let ends = shared_ends(&cores.keys().map(Vec::as_slice).collect::<Vec<_>>());
        for (words, ids) in &cores {
            short.entry(without_ends(words, ends).to_vec()).or_default().extend(ids.iter().cloned());
        }
        Self { whole, core: cores, short }
    }

    /// The case of a file, by the name without its ending. `rater` are the words of its folder, which names may repeat.
    pub fn find(&self, stem: &str, rater: &[String]) -> NameMatch<'_> {
        let all = words(stem);
        let plain = core(&all);
        let own = plain.strip_prefix(rater).or_else(|| plain.strip_suffix(rater)).map(core);
        let own = own.filter(|own| !own.is_empty()).unwrap_or(plain);
        let whole = [(&self.whole, &all[..]), (&self.core, plain), (&self.core, own), (&self.short, own)];
        let whole = whole.into_iter().map(|(table, case)| (table, case, &[][..]));
        // The longest name of a case at the start or at the end.
        let within = [&self.core, &self.short].into_iter().flat_map(|table| {
            (1..own.len()).rev().flat_map(move |n| {
                let (start, end) = (own.split_at(n), own.split_at(own.len() - n));
                [(table, start.0, start.1), (table, end.1, end.0)]
            })
        });
        for (table, case, rest) in whole.chain(within) {
            let Some(ids) = table.get(case) else { continue };
            let same = ids.iter().find(|id| *id == stem);
            return match (same.or_else(|| ids.iter().find(|id| id.eq_ignore_ascii_case(stem))), &ids[..]) {
                (Some(id), _) | (None, [id]) => NameMatch::Case(id, without_kinds(rest).to_vec()),
                (None, several) => NameMatch::Several(several),
            };
        }
        NameMatch::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::texts;

    #[test]
    fn names_have_words() {
        assert_eq!(words("Case_007a"), texts(&["case", "7", "a"]));
        assert_eq!(words("IMG000-Ä.b"), texts(&["img", "0", "ä", "b"]));
        assert_eq!(core(&words("Seg_Case1_GT")), texts(&["case", "1"]));
        assert_eq!(core(&words("mask")), texts(&["mask"]));
    }

    #[test]
    fn files_find_their_images() {
        let names = CaseNames::of(texts(&["case_01", "case_02", "case_02_left", "case_11"]).iter());
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
            assert_eq!(names.find(stem, &rater), expected, "{stem}");
        }
    }

    #[test]
    fn a_name_may_fit_several_cases() {
        let ids = texts(&["Case1", "case_1"]);
        let names = CaseNames::of(ids.iter());
        assert_eq!(names.find("case_1", &[]), NameMatch::Case("case_1", vec![]));
        assert_eq!(names.find("case1", &[]), NameMatch::Case("Case1", vec![]));
        assert_eq!(names.find("case-1_seg", &[]), NameMatch::Several(&ids));
    }
}
