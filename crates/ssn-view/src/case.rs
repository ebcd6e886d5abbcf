//! What is known of a case before it becomes a package.

use ssn_eval::DistributionFile;

use crate::error::{Result, ViewError};

/// A case to be shown: its distribution and, as far as they are known, its image and what raters marked.
#[derive(Debug, Clone)]
pub struct ViewCase {
    /// The distribution.
    pub file: DistributionFile,
    /// The image.
    pub picture: Option<Picture>,
    /// What raters marked.
    pub raters: Vec<Rater>,
}

/// An image in the intensities in which it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// The names of the channels.
    pub channels: Vec<String>,
    /// Whether they are red, green and blue.
    pub color: bool,
    /// `[channels, d, h, w]`.
    pub values: Vec<f32>,
}

/// One rater.
#[derive(Debug, Clone, PartialEq)]
pub struct Rater {
    /// The name.
    pub name: String,
    /// `[d, h, w]`.
    pub labels: Vec<u8>,
}

/// How cases are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Packing {
    /// The seed that the page starts with.
    pub seed: u64,
    /// Whether image, raters and prediction are cut to the box of what can change or is marked.
    pub crop: bool,
}

impl ViewCase {
    /// The id of the case.
    pub fn name(&self) -> &str {
        &self.file.description().case
    }

    /// Refuses an image or raters of another size than the distribution's.
    pub(crate) fn check(&self) -> Result<()> {
        let voxels = self.file.description().voxels();
        let refuse = |reason: String| Err(ViewError::Parts { case: self.name().to_owned(), reason });
        if let Some(picture) = &self.picture
            && picture.values.len() != picture.channels.len() * voxels
        {
            return refuse(format!(
                "the image has {} values, but {} channels of {voxels} voxels were expected",
                picture.values.len(),
                picture.channels.len()
            ));
        }
        match self.raters.iter().find(|rater| rater.labels.len() != voxels) {
            Some(Rater { name, labels }) => refuse(format!(
                "the label map of {name} has {} voxels, but {voxels} were expected",
                labels.len()
            )),
            None => Ok(()),
        }
    }
}
