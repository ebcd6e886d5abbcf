//! Figures of a dataset: sizes, spacings, intensities, volumes of classes, and how far raters agree.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use ssn_core::labels::{BitPlanes, LabelMap};
use ssn_core::metrics::foreground_distance;

use crate::case::Case;
use crate::dataset::Entry;
use crate::split::Split;

/// What the statistics keep of one case.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseFacts {
    /// The patient or series.
    pub group: String,
    /// The part of the dataset.
    pub split: Option<Split>,
    /// `[d, h, w]`.
    pub shape: [usize; 3],
    /// Along w, h, d; nothing where the files do not say it.
    pub spacing: Option<[f64; 3]>,
    /// Smallest and largest value of each channel.
    pub ranges: Vec<[f32; 2]>,
    /// Voxels of each class, summed over raters.
    pub volumes: Vec<u64>,
    /// How many raters there are.
    pub raters: usize,
    /// How many of them marked nothing.
    pub empty: usize,
    /// Mean of 1 − IoU over all ordered pairs of raters, self pairs included, two empty maps at distance 0.
    pub diversity: f64,
}

impl CaseFacts {
    /// Looks at a case whose labels are below `classes`.
    pub fn of(case: &Case, classes: usize, entry: &Entry, split: Option<Split>) -> Self {
        let range = |channel: &[f32]| {
            channel
                .iter()
                .fold([f32::INFINITY, f32::NEG_INFINITY], |[low, high], &x| [low.min(x), high.max(x)])
        };
        let maps: Vec<BitPlanes> = case
            .raters
            .iter()
            .filter_map(|rater| LabelMap::new(rater.clone(), classes).ok().map(|map| BitPlanes::new(&map)))
            .collect();
        let mut volumes = vec![0u64; classes];
        for map in &maps {
            volumes.iter_mut().zip(map.volumes()).for_each(|(sum, &volume)| *sum += volume as u64);
        }
        Self {
            group: entry.group.clone(),
            split,
            shape: case.shape,
            spacing: entry.source.has_geometry().then_some(case.geometry.spacing),
            ranges: case.image.chunks(case.voxels().max(1)).map(range).collect(),
            volumes,
            raters: maps.len(),
            empty: maps.iter().filter(|map| map.volume(0) == map.voxels()).count(),
            diversity: diversity(&maps),
        }
    }
}

/// Mean distance over all ordered pairs, self pairs included.
fn diversity(maps: &[BitPlanes]) -> f64 {
    let mut sum = 0.0;
    for (i, first) in maps.iter().enumerate() {
        sum += maps[i + 1..].iter().filter_map(|second| foreground_distance(first, second).ok()).sum::<f64>();
    }
    2.0 * sum / (maps.len() * maps.len()).max(1) as f64
}

/// Figures of a dataset.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Statistics {
    /// Cases that could be read.
    pub cases: usize,
    /// Patients or series.
    pub groups: usize,
    /// Sizes `[d, h, w]`, with how many cases have each; the most frequent first.
    pub sizes: Vec<([usize; 3], usize)>,
    /// Smallest and largest spacing along w, h, d, of the cases whose files say it.
    pub spacing: Option<[[f64; 2]; 3]>,
    /// The channels.
    pub channels: Vec<ChannelFigures>,
    /// The classes.
    pub classes: Vec<ClassFigures>,
    /// Fewest and most raters of a case.
    pub raters: [usize; 2],
    /// The raters of all cases.
    pub agreement: Agreement,
    /// The same for each part of the dataset, if it has parts.
    pub parts: Vec<PartFigures>,
}

/// Figures of a channel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChannelFigures {
    /// Its name.
    pub name: String,
    /// The smallest and the largest value in any case.
    pub range: [f32; 2],
}

/// Figures of a class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassFigures {
    /// Its name.
    pub name: String,
    /// Its share of all voxels of all raters.
    pub share: f64,
    /// Cases in which a rater marked it.
    pub cases: usize,
}

/// How far raters agree.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Agreement {
    /// The share of raters' maps that are empty.
    pub empty_fraction: f64,
    /// Mean over cases of the mean of 1 − IoU over all ordered pairs of raters, self pairs included.
    pub expert_diversity: f64,
}

/// Figures of a part of the dataset.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartFigures {
    /// The part.
    pub split: Split,
    /// Its cases.
    pub cases: usize,
    /// Its patients or series.
    pub groups: usize,
    /// Its raters.
    pub agreement: Agreement,
}

impl Agreement {
    fn of<'a>(facts: impl Iterator<Item = &'a CaseFacts>) -> Self {
        let (mut cases, mut maps, mut empty, mut diversity) = (0usize, 0usize, 0usize, 0.0);
        for fact in facts {
            (cases, maps, empty) = (cases + 1, maps + fact.raters, empty + fact.empty);
            diversity += fact.diversity;
        }
        let mean = |sum: f64, count: usize| sum / count.max(1) as f64;
        Self { empty_fraction: mean(empty as f64, maps), expert_diversity: mean(diversity, cases) }
    }
}

impl Statistics {
    /// Sums up the facts of all cases.
    pub fn of(facts: &[CaseFacts], channels: &[String], classes: &[String]) -> Self {
        let mut sizes = BTreeMap::<[usize; 3], usize>::new();
        facts.iter().for_each(|fact| *sizes.entry(fact.shape).or_default() += 1);
        let mut sizes: Vec<_> = sizes.into_iter().collect();
        sizes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let voxels: u64 = facts.iter().flat_map(|fact| &fact.volumes).sum();
        let class = |(c, name): (usize, &String)| {
            let of_case = |fact: &CaseFacts| fact.volumes.get(c).copied().unwrap_or(0);
            ClassFigures {
                name: name.clone(),
                share: facts.iter().map(of_case).sum::<u64>() as f64 / voxels.max(1) as f64,
                cases: facts.iter().filter(|fact| of_case(fact) > 0).count(),
            }
        };
        let channel = |(c, name): (usize, &String)| {
            let ranges = facts.iter().filter_map(|fact| fact.ranges.get(c));
            let range = ranges
                .fold([f32::INFINITY, f32::NEG_INFINITY], |[a, b], [low, high]| [a.min(*low), b.max(*high)]);
            ChannelFigures { name: name.clone(), range }
        };
        let raters = || facts.iter().map(|fact| fact.raters);
        Self {
            cases: facts.len(),
            groups: groups(facts.iter()),
            sizes,
            spacing: spacing(facts),
            channels: channels.iter().enumerate().map(channel).collect(),
            classes: classes.iter().enumerate().map(class).collect(),
            raters: [raters().min().unwrap_or(0), raters().max().unwrap_or(0)],
            agreement: Agreement::of(facts.iter()),
            parts: Split::ALL.iter().filter_map(|&split| part(facts, split)).collect(),
        }
    }
}

fn groups<'a>(facts: impl Iterator<Item = &'a CaseFacts>) -> usize {
    facts.map(|fact| fact.group.as_str()).collect::<BTreeSet<_>>().len()
}

fn spacing(facts: &[CaseFacts]) -> Option<[[f64; 2]; 3]> {
    let mut all = facts.iter().filter_map(|fact| fact.spacing);
    let first = all.next()?.map(|x| [x, x]);
    Some(all.fold(first, |limits, spacing| {
        std::array::from_fn(|axis| [limits[axis][0].min(spacing[axis]), limits[axis][1].max(spacing[axis])])
    }))
}

fn part(facts: &[CaseFacts], split: Split) -> Option<PartFigures> {
    let of_part = || facts.iter().filter(move |fact| fact.split == Some(split));
    let cases = of_part().count();
    (cases > 0).then(|| PartFigures {
        split,
        cases,
        groups: groups(of_part()),
        agreement: Agreement::of(of_part()),
    })
}

#[cfg(test)]
mod tests {
    use ssn_io::Geometry;

    use super::*;

    fn entry() -> Entry {
        let files = crate::source::Files { images: vec![Some("a.nii".into())], ..Default::default() };
        Entry { id: "a".into(), group: "p".into(), split: None, source: crate::source::Source::Files(files) }
    }

    fn case(raters: &[&[u8]]) -> Case {
        Case {
            id: "a".into(),
            channels: 1,
            shape: [1, 1, 4],
            image: vec![0.0, 1.0, -2.0, 3.0],
            raters: raters.iter().map(|rater| rater.to_vec()).collect(),
            rater_numbers: vec![],
            mask: None,
            geometry: Geometry::default(),
        }
    }

    #[test]
    fn agreement_by_hand() {
        // Distances: two empty maps 0; an empty and another 1; {0, 1} and {1} ½.
        let case = case(&[&[0; 4], &[0; 4], &[1, 1, 0, 0], &[0, 1, 0, 0]]);
        let facts = CaseFacts::of(&case, 2, &entry(), Some(Split::Train));
        assert_eq!((facts.empty, facts.raters, facts.volumes.as_slice()), (2, 4, &[13, 3][..]));
        assert_eq!(facts.diversity, 2.0 * 4.5 / 16.0);
        assert_eq!(facts.ranges, [[-2.0, 3.0]]);
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let statistics = Statistics::of(&[facts.clone(), facts], &names(&["ct"]), &names(&["no", "yes"]));
        assert_eq!(statistics.agreement, Agreement { empty_fraction: 0.5, expert_diversity: 0.5625 });
        assert_eq!((statistics.cases, statistics.groups, statistics.parts.len()), (2, 1, 1));
        assert_eq!((statistics.classes[1].share, statistics.classes[1].cases), (3.0 / 16.0, 2));
    }

    #[test]
    fn one_rater_and_no_case_are_no_trouble() {
        assert_eq!(CaseFacts::of(&case(&[&[1; 4]]), 2, &entry(), None).diversity, 0.0);
        let nothing = Statistics::of(&[], &[], &[]);
        assert_eq!((nothing.cases, nothing.agreement), (0, Agreement::default()));
    }
}
