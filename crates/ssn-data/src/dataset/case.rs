//! One image with its raters: the one type that every dataset becomes.

use ssn_io::Geometry;

use crate::error::{DataError, Result};

/// An image with the label maps of its raters, in memory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Case {
    /// The name of the case in its dataset.
    pub id: String,
    /// The number of channels `c`.
    pub channels: usize,
    /// `[d, h, w]`; a 2D image has depth 1.
    pub shape: [usize; 3],
    /// The image `[c, d, h, w]`, `w` running fastest.
    pub image: Vec<f32>,
    /// One label map `[d, h, w]` per rater, at least one for training.
    pub raters: Vec<Vec<u8>>,
    /// Which of the dataset's raters each of them is, where not all raters looked at every case; empty means
    /// 0, 1, 2, …
    pub rater_numbers: Vec<usize>,
    /// The region of interest `[d, h, w]`, 1 inside and 0 outside; `None` means everywhere.
    pub mask: Option<Vec<u8>>,
    /// Spacing, origin and direction of the voxels.
    pub geometry: Geometry,
}

impl Case {
    /// The number of voxels, d·h·w.
    pub fn voxels(&self) -> usize {
        self.shape.iter().product()
    }

    /// The bytes that the arrays of this case take.
    pub fn bytes(&self) -> usize {
        4 * self.image.len() + self.voxels() * (self.raters.len() + usize::from(self.mask.is_some()))
    }
}

/// A set of cases that can be loaded one by one, from any thread, in any order.
pub trait Cases: Send + Sync {
    /// How many cases there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of a case.
    fn id(&self, index: usize) -> &str;

    /// Loads a case: the same values every time.
    fn load(&self, index: usize) -> Result<Case>;
}

/// A set of cases held in memory, for tests and for sets that a program makes itself.
#[derive(Debug, Clone, Default)]
pub struct MemoryCases(pub Vec<Case>);

impl Cases for MemoryCases {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn id(&self, index: usize) -> &str {
        self.0.get(index).map_or("", |case| &case.id)
    }

    fn load(&self, index: usize) -> Result<Case> {
        self.0.get(index).cloned().ok_or_else(|| {
            DataError::case(
                format!("number {index}"),
                format!("the set has only {} cases", self.0.len()),
                "ask for a smaller number",
            )
        })
    }
}
