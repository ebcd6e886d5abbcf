//! Patch sampling: where patches are cut, and which rater is their target.

use std::mem::take;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssn_core::Window;
use ssn_io::{Error, Result};

use crate::augment::ChannelsLastImage;
use crate::dataset::Case;
use crate::random::RandomStream;

/// Which label maps are the target of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RaterChoice {
    /// One of the case's raters, each equally often.
    #[default]
    Random,
    /// Always the same.
    Fixed {
        /// The number of the rater in the dataset, from 0; a case that this rater did not look at is refused.
        rater: usize,
    },
    /// All of them, as separate targets. A case with fewer raters than others has its raters repeated in turn, from a
    /// random one on.
    All,
}

/// Where a patch is cut.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum PatchSampler {
    /// The whole image; all images must have the same size.
    #[default]
    Whole,
    /// A patch in the middle of the image, for images that differ a little in size.
    CenterCrop {
        /// `[d, h, w]`.
        size: [usize; 3],
    },
    /// A patch around a random voxel inside the mask.
    Random {
        /// `[d, h, w]`.
        size: [usize; 3],
        /// How often that voxel is one of the target's lesion (any label but 0), if it has one; otherwise, and if
        /// possible, it is a voxel of the background.
        #[serde(default = "half")]
        foreground_probability: f64,
    },
}

fn half() -> f64 {
    0.5
}

/// How patches are cut.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PatchConfig {
    /// Where patches are cut.
    pub sampler: PatchSampler,
    /// The size of targets and masks, `[d, h, w]`, around the same center; if absent, that of the image.
    pub target_size: Option<[usize; 3]>,
    /// Which label map of a case is the target.
    pub rater: RaterChoice,
}

/// A patch that was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchLocation {
    /// The part of the image.
    pub window: Window,
    /// The part of the label maps.
    pub target: Window,
    /// The voxel at the center, `[d, h, w]`.
    pub center: [usize; 3],
    /// The indices of the case's raters whose label maps are targets.
    pub targets: Vec<usize>,
}

impl PatchConfig {
    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        let size = match self.sampler {
            PatchSampler::Whole => None,
            PatchSampler::CenterCrop { size } | PatchSampler::Random { size, .. } => Some(size),
        };
        for (field, size) in [("patch.size", size), ("patch.target_size", self.target_size)] {
            if let Some(size) = size.filter(|size| size.contains(&0)) {
                return Err(Error::setting(field, format!("{size:?}"), "at least 1 along every axis"));
            }
            let voxels = |size: &[usize; 3]| {
                size.iter().try_fold(1i32, |n, &side| n.checked_mul(i32::try_from(side).ok()?))
            };
            if let Some(size) = size.filter(|size| voxels(size).is_none()) {
                return Err(Error::setting(field, format!("{size:?}"), "of at most 2³¹ - 1 voxels"));
            }
        }
        if let (Some(size), Some(target)) = (size, self.target_size) {
            fits(size, target)?;
        }
        match self.sampler {
            PatchSampler::Random { foreground_probability: p, .. } if !(0.0..=1.0).contains(&p) => {
                Err(Error::setting("patch.foreground_probability", p, "between 0 and 1"))
            }
            _ => Ok(()),
        }
    }

    /// Chooses the patch of one item; `all` is how many targets it has where all raters are targets.
    pub(crate) fn choose(
        &self,
        indexed: &IndexedCase,
        all: usize,
        stream: &mut RandomStream,
    ) -> Result<PatchLocation> {
        let case = &indexed.case;
        let raters = case.raters.len();
        let mut first = 0;
        let rater = match self.rater {
            RaterChoice::All => {
                if raters < all {
                    first = stream.below(raters as u64) as usize;
                }
                None
            }
            RaterChoice::Random => Some(stream.below(raters as u64) as usize),
            RaterChoice::Fixed { rater } => {
                let numbers: Vec<usize> = (0..raters).map(|place| case.rater_number(place)).collect();
                let place = numbers.iter().position(|number| *number == rater);
                Some(place.ok_or_else(|| {
                    let present = numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
                    let reason = format!(
                        "rater {rater} is asked for, but those of this case are {present}, counted from 0"
                    );
                    let advice = "choose another rater, or a random one, or leave the case out";
                    Error::case(&case.id, reason).advise(advice)
                })?)
            }
        };
        let shape = case.shape;
        let middle = shape.map(|n| n / 2);
        let (center, size) = match self.sampler {
            PatchSampler::Whole => (middle, shape),
            PatchSampler::CenterCrop { size } => (middle, size),
            PatchSampler::Random { size, foreground_probability } => {
                let foreground = stream.chance(foreground_probability);
                (random_voxel(indexed, rater, foreground, stream).unwrap_or(middle), size)
            }
        };
        let target = self.target_size.unwrap_or(size);
        // A setting for most centers; for whole images it depends on the case, which is then named.
        fits(size, target).map_err(|error| match self.sampler {
            PatchSampler::Whole => error.in_case(&case.id),
            _ => error,
        })?;
        let window = Window::around(center, size);
        let targets = match rater {
            Some(rater) => vec![rater],
            None => (first..first + all).map(|place| place % raters).collect(),
        };
        Ok(PatchLocation { window, target: window.shrunk(target), center, targets })
    }
}

/// A random voxel of the foreground or of the background, or of the other if it is empty; `None` if the mask is empty.
fn random_voxel(
    indexed: &IndexedCase,
    rater: Option<usize>,
    foreground: bool,
    stream: &mut RandomStream,
) -> Option<[usize; 3]> {
    let target = rater.unwrap_or(0);
    let [marked, unmarked] = indexed.counts(target)?;
    let foreground = if foreground { marked > 0 } else { unmarked == 0 };
    let count = if foreground { marked } else { unmarked };
    if count == 0 {
        return None;
    }
    let voxel = indexed.nth(target, foreground, stream.below(count as u64) as usize);
    let [_, h, w] = indexed.case.shape;
    Some([voxel / (h * w), voxel / w % h, voxel % w])
}

/// Targets must fit into the image with equal borders on both sides.
fn fits(size: [usize; 3], target: [usize; 3]) -> Result<()> {
    if (0..3).all(|k| target[k] <= size[k] && (size[k] - target[k]).is_multiple_of(2)) {
        return Ok(());
    }
    let expected = format!("smaller than or equal to {size:?}, by an even number along every axis");
    Err(Error::setting("patch.target_size", format!("{target:?}"), expected))
}

/// A case ready for cutting patches.
///
/// Patches are cut around voxels of the foreground, those inside the mask that the target marks as something other
/// than 0, or of the background, the others inside the mask.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedCase {
    /// Without its image.
    pub case: Case,
    pub image: ChannelsLastImage,
    /// The voxels inside the mask, ascending; `None` where all are.
    inside: Option<Vec<u32>>,
    /// For each choice of target.
    parts: Vec<ForegroundIndex>,
}

/// The smaller one of foreground and background.
#[derive(Debug, Clone, PartialEq)]
struct ForegroundIndex {
    is_foreground: bool,
    /// For each of its voxels, ascending: how many voxels of the other one come before it.
    others_before: Vec<u32>,
}

impl ForegroundIndex {
    /// Of voxels in their order, each of which is foreground or background.
    fn new(is_foreground: impl Iterator<Item = bool> + Clone) -> Self {
        let [foreground, all] =
            is_foreground.clone().fold([0, 0], |[n, all], is| [n + usize::from(is), all + 1]);
        let smaller = foreground <= all - foreground;
        let mut others_before = Vec::with_capacity(foreground.min(all - foreground));
        let mut others = 0;
        for is in is_foreground {
            match is == smaller {
                true => others_before.push(others),
                false => others += 1,
            }
        }
        Self { is_foreground: smaller, others_before }
    }
}

impl IndexedCase {
    /// Checks a case and prepares it for patches that are cut as `patch` says.
    pub fn new(mut case: Case, patch: &PatchConfig) -> Result<Self> {
        check(&case)?;
        let (mut inside, mut parts) = (None, vec![]);
        if matches!(patch.sampler, PatchSampler::Random { .. }) {
            let voxels = case.voxels() as u32;
            let in_mask = |mask: &Vec<u8>| {
                let mut inside: Vec<u32> = (0..voxels).filter(|&voxel| mask[voxel as usize] != 0).collect();
                inside.shrink_to_fit();
                inside
            };
            inside = case.mask.as_ref().map(in_mask);
            let part = |is_marked: &dyn Fn(usize) -> bool| match &inside {
                None => ForegroundIndex::new((0..voxels as usize).map(is_marked)),
                Some(inside) => ForegroundIndex::new(inside.iter().map(|&voxel| is_marked(voxel as usize))),
            };
            parts = match patch.rater {
                RaterChoice::All => vec![part(&|voxel| case.raters.iter().any(|labels| labels[voxel] != 0))],
                _ => case.raters.iter().map(|labels| part(&|voxel| labels[voxel] != 0)).collect(),
            };
        }
        let image = ChannelsLastImage::new(take(&mut case.image), case.channels, case.shape);
        Ok(Self { case, image, inside, parts })
    }

    pub fn bytes(&self) -> usize {
        let lists = self.inside.iter().chain(self.parts.iter().map(|part| &part.others_before));
        self.image.bytes() + self.case.bytes() + 4 * lists.map(Vec::capacity).sum::<usize>()
    }

    /// The voxels of the foreground and of the background of a choice of target.
    fn counts(&self, target: usize) -> Option<[usize; 2]> {
        let part = self.parts.get(target)?;
        let smaller = part.others_before.len();
        let larger = self.inside.as_ref().map_or(self.case.voxels(), Vec::len) - smaller;
        Some(if part.is_foreground { [smaller, larger] } else { [larger, smaller] })
    }

    /// Voxel `k` of the foreground, or of the background.
    fn nth(&self, target: usize, foreground: bool, k: usize) -> usize {
        let ForegroundIndex { is_foreground, others_before } = &self.parts[target];
        let before = match foreground == *is_foreground {
            true => others_before[k] as usize,
            // Voxels of the listed part with at most k others before them come before number k of the others.
            false => others_before.partition_point(|&others| others as usize <= k),
        };
        self.inside.as_ref().map_or(k + before, |inside| inside[k + before] as usize)
    }
}

/// Arrays that agree, so that nothing later can read beyond them.
fn check(case: &Case) -> Result<()> {
    let voxels = case.shape.iter().try_fold(1usize, |n, &side| n.checked_mul(side));
    let voxels = voxels.filter(|&n| n > 0 && i32::try_from(n).is_ok());
    let wrong = |reason: String, advice| Err(Error::case(&case.id, reason).advise(advice));
    let Some(voxels) = voxels else {
        let reason = format!("its shape is {:?}", case.shape);
        return wrong(reason, "images have between 1 and 2³¹ - 1 voxels");
    };
    if case.channels == 0 || case.image.len() != case.channels * voxels {
        let reason = format!(
            "the image has {} values for {} channels of {voxels} voxels",
            case.image.len(),
            case.channels
        );
        return wrong(reason, "check the case's files");
    }
    let maps = case.raters.iter().chain(&case.mask);
    if let Some(map) = maps.into_iter().find(|map| map.len() != voxels) {
        let reason = format!("a label map or mask has {} values for {voxels} voxels", map.len());
        return wrong(reason, "check the case's files");
    }
    if ![0, case.raters.len()].contains(&case.rater_numbers.len()) {
        let reason = format!("{} raters have {} numbers", case.raters.len(), case.rater_numbers.len());
        return wrong(reason, "give each rater a number, or none any");
    }
    if case.raters.is_empty() {
        return wrong("it has no label map".to_owned(), "remove the case, or add its labels");
    }
    if !case.geometry.spacing.iter().all(|x| *x > 0.0 && x.is_finite()) {
        let reason = format!("its voxels are {:?} mm apart", case.geometry.spacing);
        return wrong(reason, "correct the header of its files");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::random::Purpose;

    proptest! {
        #[test]
        fn voxels_are_found_in_order(
            marks in prop::collection::vec((prop::bool::weighted(0.2), prop::bool::weighted(0.7)), 1..3000),
            masked: bool,
            mostly_foreground: bool,
        ) {
            let marks: Vec<_> = marks.into_iter().map(|(label, inside)| (label != mostly_foreground, inside)).collect();
            let labels = marks.iter().map(|(label, _)| u8::from(*label)).collect();
            let mask = masked.then(|| marks.iter().map(|(_, inside)| u8::from(*inside)).collect());
            let case = case([1, 1, marks.len()], vec![labels], mask);
            let indexed = IndexedCase::new(case, &config([1, 1, 1], 0.5, RaterChoice::Random)).unwrap();
            for (foreground, count) in [true, false].into_iter().zip(indexed.counts(0).unwrap()) {
                let is_member = |voxel: &usize| marks[*voxel].0 == foreground && (!masked || marks[*voxel].1);
                let expected: Vec<usize> = (0..marks.len()).filter(is_member).collect();
                let found: Vec<usize> = (0..count).map(|k| indexed.nth(0, foreground, k)).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }

    fn case(shape: [usize; 3], raters: Vec<Vec<u8>>, mask: Option<Vec<u8>>) -> Case {
        let voxels: usize = shape.iter().product();
        let image = (0..2 * voxels).map(|i| i as f32 * 0.5 - 7.0).collect();
        Case { id: "a".to_owned(), channels: 2, shape, image, raters, mask, ..Case::default() }
    }

    fn config(size: [usize; 3], foreground_probability: f64, rater: RaterChoice) -> PatchConfig {
        PatchConfig {
            sampler: PatchSampler::Random { size, foreground_probability },
            target_size: None,
            rater,
        }
    }

    /// How often each voxel is the center of 2,000 patches.
    fn count_centers(case: Case, config: PatchConfig) -> Vec<usize> {
        let [_, h, w] = case.shape;
        let mut counts = vec![0; case.voxels()];
        let case = &IndexedCase::new(case, &config).unwrap();
        for q in 0..2000 {
            let chosen = config.choose(case, 3, &mut RandomStream::new(1, Purpose::Patch, q)).unwrap();
            let [z, y, x] = chosen.center;
            counts[(z * h + y) * w + x] += 1;
        }
        counts
    }

    #[test]
    fn centers_are_lesion_or_background_inside_the_mask_as_often_as_asked() {
        let raters = vec![vec![1, 0, 0, 0, 0, 2, 0, 0], vec![0, 0, 0, 3, 0, 0, 0, 0]];
        let mask = Some(vec![1, 1, 1, 1, 1, 0, 1, 0]);
        let case = |raters| case([2, 2, 2], raters, mask.clone());
        let size = [3, 3, 3];
        let first = count_centers(case(raters.clone()), config(size, 0.5, RaterChoice::Fixed { rater: 0 }));
        // Voxel 5 is marked, but outside of the mask.
        assert!((870..1130).contains(&first[0]) && first[5] == 0 && first[7] == 0, "{first:?}");
        assert!(first[1..5].iter().all(|&n| (120..280).contains(&n)), "{first:?}");
        let always = count_centers(case(raters), config(size, 1.0, RaterChoice::Fixed { rater: 1 }));
        assert_eq!(always[3], 2000);
        // Without a lesion, patches are cut around the background, and the other way round.
        let none = count_centers(case(vec![vec![0; 8]]), config(size, 1.0, RaterChoice::Random));
        assert!(none[0] > 200 && none[5] == 0);
        let full = count_centers(case(vec![vec![1; 8]]), config(size, 0.0, RaterChoice::Random));
        assert!(full[0] > 200 && full[5] == 0);
    }

    /// What the patch of a case is, or why there is none.
    fn choose(case: Case, config: PatchConfig) -> Result<PatchLocation> {
        config.choose(&IndexedCase::new(case, &config)?, 3, &mut RandomStream::new(0, Purpose::Patch, 0))
    }

    #[test]
    fn an_empty_mask_gives_the_middle_and_all_raters_share_an_index() {
        let empty = case([1, 4, 4], vec![vec![1; 16]], Some(vec![0; 16]));
        assert_eq!(choose(empty, config([1, 2, 2], 0.5, RaterChoice::Random)).unwrap().center, [0, 2, 2]);
        let mut raters = vec![vec![0; 16]; 3];
        raters[2][9] = 1;
        let shared = case([1, 4, 4], raters, None);
        assert_eq!(count_centers(shared, config([1, 2, 2], 1.0, RaterChoice::All))[9], 2000);
    }

    #[test]
    fn a_case_with_fewer_raters_repeats_them_in_turn_and_each_equally_often() {
        let two = case([1, 2, 2], vec![vec![0; 4], vec![1; 4]], None);
        let config = PatchConfig { rater: RaterChoice::All, ..PatchConfig::default() };
        let two = &IndexedCase::new(two, &config).unwrap();
        let mut counts = [0; 2];
        for q in 0..2000 {
            let chosen = config.choose(two, 3, &mut RandomStream::new(1, Purpose::Patch, q)).unwrap();
            assert!(chosen.targets == [0, 1, 0] || chosen.targets == [1, 0, 1], "{:?}", chosen.targets);
            counts[chosen.targets[0]] += 1;
        }
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
    }

    #[test]
    fn settings_that_cannot_work_are_refused() {
        let target =
            |target| PatchConfig { target_size: Some(target), ..config([9, 9, 9], 0.5, RaterChoice::All) };
        assert!(target([3, 3, 3]).check().is_ok());
        assert!(target([4, 3, 3]).check().is_err() && target([11, 9, 9]).check().is_err());
        assert!(config([0, 3, 3], 0.5, RaterChoice::All).check().is_err());
        assert!(config([3, 3, 3], 1.5, RaterChoice::All).check().is_err());
        for size in [[1, 1_000_000, 1_000_000], [usize::MAX, 2, 2], [1, 1, 1 << 31]] {
            let error = config(size, 0.5, RaterChoice::All).check().unwrap_err().to_string();
            assert!(error.contains("patch.size") && error.contains("at most 2³¹ - 1 voxels"), "{error}");
        }
        assert!(config([1, 1, (1 << 31) - 1], 0.5, RaterChoice::All).check().is_ok());
        for raters in [vec![vec![0; 3]], vec![]] {
            assert!(choose(case([1, 2, 2], raters, None), PatchConfig::default()).is_err());
        }
    }

    #[test]
    fn a_fixed_rater_is_known_by_number() {
        let mut two = case([1, 1, 2], vec![vec![0, 0], vec![1, 1]], None);
        two.rater_numbers = vec![0, 2];
        let fixed = |rater| PatchConfig { rater: RaterChoice::Fixed { rater }, ..PatchConfig::default() };
        assert_eq!(choose(two.clone(), fixed(2)).unwrap().targets, [1]);
        insta::assert_snapshot!(choose(two, fixed(1)).unwrap_err().to_string());
    }

    #[test]
    fn a_whole_image_that_is_too_small_is_named() {
        let config = PatchConfig { target_size: Some([1, 4, 4]), ..PatchConfig::default() };
        let error = choose(case([1, 2, 2], vec![vec![0; 4]], None), config).unwrap_err();
        insta::assert_snapshot!(error.to_string());
    }
}
