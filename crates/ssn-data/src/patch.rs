//! Where patches are cut and which rater is their target.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{DataError, Result};
use crate::gather::Window;
use crate::prepared::{Index, Prepared};
use crate::random::Stream;

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
    /// All of them, as separate targets.
    All,
}

/// Where a patch is cut.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Place {
    /// The whole image; all images must have the same size.
    #[default]
    Whole,
    /// A patch in the middle of the image, for images that differ a little in size.
    Middle {
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
        lesion_probability: f64,
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
    pub place: Place,
    /// The size of targets and masks, `[d, h, w]`, around the same center; nothing means that of the image.
    pub target_size: Option<[usize; 3]>,
    /// Which label map of a case is learnt from.
    pub rater: RaterChoice,
}

/// A patch that was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen {
    /// The part of the image.
    pub window: Window,
    /// The part of the label maps.
    pub target: Window,
    /// The voxel at the center, `[d, h, w]`.
    pub center: [usize; 3],
    /// The rater, by its place in the case, or nothing for all.
    pub rater: Option<usize>,
}

impl PatchConfig {
    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        let size = match self.place {
            Place::Whole => None,
            Place::Middle { size } | Place::Random { size, .. } => Some(size),
        };
        for (field, size) in [("patch.size", size), ("patch.target_size", self.target_size)] {
            if let Some(size) = size.filter(|size| size.contains(&0)) {
                return Err(setting(field, format!("{size:?}"), "at least 1 along every axis"));
            }
        }
        if let (Some(size), Some(target)) = (size, self.target_size) {
            fits(size, target)?;
        }
        match self.place {
            Place::Random { lesion_probability: p, .. } if !(0.0..=1.0).contains(&p) => {
                Err(setting("patch.lesion_probability", p.to_string(), "between 0 and 1"))
            }
            _ => Ok(()),
        }
    }

    /// The indices that cases need for this.
    pub fn index(&self) -> Index {
        match (self.place, self.rater) {
            (Place::Whole | Place::Middle { .. }, _) => Index::None,
            (Place::Random { .. }, RaterChoice::All) => Index::AnyRater,
            (Place::Random { .. }, _) => Index::EachRater,
        }
    }

    /// Chooses the patch of one item.
    pub fn choose(&self, case: &Prepared, stream: &mut Stream) -> Result<Chosen> {
        let raters = case.raters.len();
        let rater = match self.rater {
            RaterChoice::All => None,
            RaterChoice::Random => Some(stream.below(raters as u64) as usize),
            RaterChoice::Fixed { rater } => Some(case.rater_place(rater).ok_or_else(|| {
                let present: Vec<String> =
                    (0..raters).map(|place| case.rater_number(place).to_string()).collect();
                DataError::Case {
                    id: case.id.clone(),
                    reason: format!(
                        "rater {rater} is asked for, but those of this case are {}, counted from 0",
                        present.join(", ")
                    ),
                    advice: "choose another rater, or a random one, or leave the case out",
                }
            })?),
        };
        let shape = case.shape();
        let middle = shape.map(|n| n / 2);
        let (center, size) = match self.place {
            Place::Whole => (middle, shape),
            Place::Middle { size } => (middle, size),
            Place::Random { size, lesion_probability } => {
                let lesion = stream.chance(lesion_probability);
                (random_voxel(case, rater, lesion, stream).unwrap_or(middle), size)
            }
        };
        let target = self.target_size.unwrap_or(size);
        // A setting for most places; for whole images it depends on the case, which is then named.
        fits(size, target).map_err(|error| match self.place {
            Place::Whole => DataError::Load { id: case.id.clone(), source: Box::new(error) },
            _ => error,
        })?;
        let window = Window::around(center, size);
        Ok(Chosen { window, target: window.shrunk(target), center, rater })
    }
}

/// A voxel of the lesion or of the background; of the other if there is none; nothing if the mask is empty.
fn random_voxel(
    case: &Prepared,
    rater: Option<usize>,
    lesion: bool,
    stream: &mut Stream,
) -> Option<[usize; 3]> {
    let places = case.places(rater)?;
    let (wanted, other) = match lesion {
        true => (&places.lesion, &places.background),
        false => (&places.background, &places.lesion),
    };
    let set = if wanted.is_empty() { other } else { wanted };
    if set.is_empty() {
        return None;
    }
    let voxel = set.nth(stream.below(set.len() as u64) as usize)?;
    let [_, h, w] = case.shape();
    Some([voxel / (h * w), voxel / w % h, voxel % w])
}

/// Targets must fit into the image with equal borders on both sides.
fn fits(size: [usize; 3], target: [usize; 3]) -> Result<()> {
    if (0..3).all(|k| target[k] <= size[k] && (size[k] - target[k]).is_multiple_of(2)) {
        return Ok(());
    }
    let expected = format!("smaller than or equal to {size:?}, by an even number along every axis");
    Err(setting("patch.target_size", format!("{target:?}"), &expected))
}

fn setting(field: &'static str, value: String, expected: &str) -> DataError {
    DataError::Setting { field, value, expected: expected.to_owned() }
}

#[cfg(test)]
mod tests;
