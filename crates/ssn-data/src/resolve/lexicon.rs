//! Words in the names of files and folders, and their meanings.

/// Meaning of a word in a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// Name of a folder of images.
    Images,
    /// Name of a folder of label maps.
    Labels,
    /// Name of a folder of regions of interest.
    Regions,
    /// Word at an end of a name for the kind of a file, as opposed to its case.
    Kind,
    /// Person who draws label maps; with an s, the folder above the folders of persons.
    Person,
    /// Word for files made of the label maps of persons, such as a consensus or a preview.
    Made,
    /// Word for labels drawn by hand, as opposed to regions of interest.
    Manual,
    /// Word for a share of a dataset, before its number.
    Share,
    /// Group of persons, as the name of the folder above theirs.
    Group,
    /// Word before the number of a rater, behind the name of an image.
    Rater,
    /// Word before the number of a sample or rater, behind the name of a case.
    Sample,
    /// Word before the number of a sample or rater in the name of a folder.
    Source,
    /// Part of the name of a label map in the folder of a case.
    MapPart,
    /// Whole word in the name of a label map in the folder of a case.
    MapWord,
    /// Word before the number of a rater, behind the name of a label map in the folder of a case.
    MapRater,
    /// Part of the name of a region of interest in the folder of a case.
    RegionPart,
    /// Whole word in the name of a region of interest in the folder of a case.
    RegionWord,
}

use Hint::{
    Group, Images, Kind, Labels, Made, Manual, MapPart, MapRater, MapWord, Person, Rater, RegionPart,
    RegionWord, Regions, Sample, Share, Source,
};

/// All words with their meanings. If a folder has several children with one meaning, the first word here decides.
const LEXICON: &[(&str, &[Hint])] = &[
    ("images", &[Images, Kind]),
    ("image", &[Images, Kind]),
    ("imgs", &[Images]),
    ("img", &[Images, Kind]),
    ("imagesTr", &[Images]),
    ("scans", &[Images]),
    ("original", &[Images]),
    ("originals", &[Images]),
    ("pictures", &[Images]),
    ("photos", &[Images]),
    ("input", &[Images]),
    ("inputs", &[Images]),
    ("raw", &[Images]),
    ("im", &[Kind]),
    ("scan", &[Kind]),
    ("photo", &[Kind]),
    ("pic", &[Kind]),
    ("picture", &[Kind]),
    ("labels", &[Labels, Kind]),
    ("label", &[Labels, Kind, MapPart]),
    ("labelsTr", &[Labels]),
    ("segmentations", &[Labels, Kind]),
    ("segmentation", &[Labels, Kind]),
    ("segs", &[Labels, Kind]),
    ("seg", &[Labels, Kind, Rater, Sample, MapPart]),
    ("annotations", &[Labels, Kind]),
    ("annotation", &[Labels, Kind, Sample, MapPart]),
    ("gt", &[Labels, Kind, MapWord]),
    ("gts", &[Labels]),
    ("groundtruth", &[Labels, Kind]),
    ("ground_truth", &[Labels]),
    ("ground truth", &[Labels]),
    ("masks", &[Labels, Regions, Kind]),
    ("mask", &[Labels, Regions, Kind, Sample, MapWord]),
    ("ground", &[Kind]),
    ("truth", &[Kind, MapPart]),
    ("lbl", &[Kind]),
    ("annot", &[Kind]),
    ("anno", &[Kind]),
    ("manual", &[Kind, Manual, MapWord]),
    ("binary", &[Kind]),
    ("lesion", &[MapPart]),
    ("tumor", &[MapPart]),
    ("tumour", &[MapPart]),
    ("multiclass", &[MapPart]),
    ("ot", &[MapWord]),
    ("rois", &[Regions]),
    ("roi", &[Regions, RegionWord]),
    ("fov", &[Regions]),
    ("sampling_masks", &[Regions]),
    ("sampling_mask", &[RegionPart]),
    ("brainmask", &[RegionPart]),
    ("brain_mask", &[RegionPart]),
    ("bodymask", &[RegionPart]),
    ("rater", &[Person, Rater, Sample, Source, MapWord, MapRater]),
    ("reader", &[Person, Rater, Sample, Source]),
    ("expert", &[Person, Rater, Sample, Source]),
    ("annotator", &[Person, Source]),
    ("observer", &[Person]),
    ("grader", &[Person]),
    ("person", &[Person]),
    ("worker", &[Person]),
    ("batch", &[Share]),
    ("part", &[Share]),
    ("fold", &[Share]),
    ("site", &[Share]),
    ("center", &[Share]),
    ("centre", &[Share]),
    ("crowd", &[Group]),
    ("novices", &[Group]),
    ("students", &[Group]),
    ("residents", &[Group]),
    ("radiologists", &[Group]),
    ("clinicians", &[Group]),
    ("sample", &[Sample, Source]),
    ("r", &[Rater, Sample, Source, MapRater]),
    ("s", &[Sample, Source]),
    ("l", &[Rater]),
    ("consensus", &[Made, MapPart]),
    ("staple", &[Made]),
    ("majority", &[Made]),
    ("vote", &[Made]),
    ("voting", &[Made]),
    ("union", &[Made]),
    ("intersection", &[Made]),
    ("merged", &[Made]),
    ("combined", &[Made]),
    ("gold", &[Made]),
    ("fused", &[Made]),
    ("mean", &[Made]),
    ("average", &[Made]),
    ("prediction", &[Made]),
    ("predictions", &[Made]),
    ("pred", &[Made]),
    ("preds", &[Made]),
    ("results", &[Made]),
    ("agreement", &[Made]),
    ("overlay", &[Made]),
    ("overlays", &[Made]),
    ("preview", &[Made]),
];

impl Hint {
    /// Returns the words with this meaning.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        LEXICON.iter().filter(move |(_, hints)| hints.contains(&self)).map(|(word, _)| *word)
    }

    /// Returns `true` if a word or whole name has this meaning, in upper or lower case.
    pub fn fits(self, word: &str) -> bool {
        self.words().any(|known| known.eq_ignore_ascii_case(word))
    }

    /// Returns `true` if one of the words of a name has this meaning.
    pub fn fits_one(self, words: &[String]) -> bool {
        words.iter().any(|word| self.fits(word))
    }

    /// Returns `true` if one of the words of a name is the plural of a word with this meaning.
    pub fn fits_plural(self, words: &[String]) -> bool {
        words.iter().any(|word| word.strip_suffix('s').is_some_and(|word| self.fits(word)))
    }

    /// Returns the number in text such as `r2` or `2`: digits alone, or behind a word with this meaning.
    pub fn number(self, text: &str) -> Option<usize> {
        let lower = text.to_lowercase();
        let digits = self.words().filter_map(|word| lower.strip_prefix(word)).chain([lower.as_str()]);
        let is_number =
            |digits: &&str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.filter(is_number).find_map(|digits| digits.parse().ok())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_word_has_one_row() {
        let words: BTreeSet<String> = LEXICON.iter().map(|(word, _)| word.to_lowercase()).collect();
        assert_eq!(words.len(), LEXICON.len());
    }

    #[test]
    fn numbers_stand_behind_words() {
        for (text, expected) in
            [("2", Some(2)), ("R02", Some(2)), ("reader1", Some(1)), ("x1", None), ("r", None)]
        {
            assert_eq!(Rater.number(text), expected, "{text}");
        }
        assert_eq!((Sample.number("s3"), Sample.number("l3")), (Some(3), None));
    }
}
