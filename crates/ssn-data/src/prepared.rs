//! A case as the loader keeps it: checked, ready for gathering, and with its voxels indexed for patches.

use crate::case::Case;
use crate::error::{DataError, Result};
use crate::gather::Interleaved;
use crate::voxel_set::VoxelSet;

/// The voxels around which patches may be cut, for one choice of target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Voxels inside the mask that the target marks as something other than 0.
    pub lesion: VoxelSet,
    /// The others inside the mask.
    pub background: VoxelSet,
}

/// Which indices of voxels a case needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// None: patches do not depend on labels.
    None,
    /// One for every rater.
    EachRater,
    /// One for the voxels that any rater marks.
    AnyRater,
}

/// A case ready for cutting patches.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// The name of the case.
    pub id: String,
    /// The image.
    pub image: Interleaved,
    /// One label map `[d, h, w]` per rater.
    pub raters: Vec<Vec<u8>>,
    rater_numbers: Vec<usize>,
    /// The region of interest `[d, h, w]`.
    pub mask: Option<Vec<u8>>,
    /// The distances of neighboring voxels, `[d, h, w]`.
    pub spacing: [f64; 3],
    places: Vec<Places>,
}

impl Prepared {
    /// Checks a case and prepares it.
    pub fn new(case: Case, index: Index) -> Result<Self> {
        check(&case)?;
        let shape = case.shape;
        let voxels = case.voxels();
        let places = {
            let inside = |voxel: usize| case.mask.as_ref().is_none_or(|mask| mask[voxel] != 0);
            let places = |marked: &dyn Fn(usize) -> bool| Places {
                lesion: VoxelSet::new(voxels, |voxel| inside(voxel) && marked(voxel)),
                background: VoxelSet::new(voxels, |voxel| inside(voxel) && !marked(voxel)),
            };
            match index {
                Index::None => vec![],
                Index::EachRater => {
                    case.raters.iter().map(|labels| places(&|voxel| labels[voxel] != 0)).collect()
                }
                Index::AnyRater => {
                    vec![places(&|voxel| case.raters.iter().any(|labels| labels[voxel] != 0))]
                }
            }
        };
        let [w, h, d] = case.geometry.spacing;
        Ok(Self {
            id: case.id,
            image: Interleaved::new(case.image, case.channels, shape),
            raters: case.raters,
            rater_numbers: case.rater_numbers,
            mask: case.mask,
            spacing: [d, h, w],
            places,
        })
    }

    /// `[d, h, w]`.
    pub fn shape(&self) -> [usize; 3] {
        self.image.shape()
    }

    /// The number of the rater at a place of `raters`.
    pub fn rater_number(&self, place: usize) -> usize {
        self.rater_numbers.get(place).copied().unwrap_or(place)
    }

    /// The place in `raters` of the rater with a number.
    pub fn rater_place(&self, number: usize) -> Option<usize> {
        (0..self.raters.len()).find(|&place| self.rater_number(place) == number)
    }

    /// The places of a rater's patches, or of those of all raters.
    pub fn places(&self, rater: Option<usize>) -> Option<&Places> {
        self.places.get(rater.unwrap_or(0))
    }

    /// The bytes that the case takes.
    pub fn bytes(&self) -> usize {
        let maps = self.raters.len() + usize::from(self.mask.is_some());
        let index = self.places.iter().map(|places| places.lesion.bytes() + places.background.bytes());
        self.image.bytes() + maps * self.shape().iter().product::<usize>() + index.sum::<usize>()
    }
}

/// Arrays that agree, so that nothing later can read beyond them.
fn check(case: &Case) -> Result<()> {
    let voxels = case.shape.iter().try_fold(1usize, |n, &side| n.checked_mul(side));
    let voxels = voxels.filter(|&n| n > 0 && i32::try_from(n).is_ok());
    let wrong = |reason: String, advice| Err(DataError::Case { id: case.id.clone(), reason, advice });
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
