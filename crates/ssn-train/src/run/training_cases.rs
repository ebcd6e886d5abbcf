//! The cases that a model trained on, by which predictions tell them from new ones.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ssn_data::{DataConfig, SplitAssignment, SplitFile};
use ssn_nn::error::Result;

use super::inputs::RunInputs;

/// Digits of hashes that tell the images of a training set apart.
const IMAGE_DIGITS: usize = 16;

/// The cases that a model trained on.
#[derive(Debug, Clone, Default)]
pub struct TrainingCases {
    /// The dataset of a run; nothing for a bundle.
    dataset: Option<PathBuf>,
    /// The ids of its cases for training.
    ids: BTreeSet<String>,
    /// The first digits of the SHA-256 of their images.
    images: BTreeSet<String>,
}

impl TrainingCases {
    /// Reads those of a run, and returns them with the number of cases for training, validation and test.
    pub(super) fn of_run(run: &Path, data: &DataConfig) -> Result<(Self, [usize; 3])> {
        let lists = match SplitFile::read(&data.split.file)?.assignment {
            SplitAssignment::Parts(lists) => lists,
            SplitAssignment::Folds(_) => Default::default(),
        };
        let counts = lists.each_ref().map(Vec::len);
        let [train, ..] = lists;
        let ids: BTreeSet<String> = train.into_iter().collect();
        let images = RunInputs::images(run, &ids);
        let images = images.iter().filter_map(|hash| hash.get(..IMAGE_DIGITS)).map(str::to_owned).collect();
        Ok((Self { dataset: data.path.canonicalize().ok(), ids, images }, counts))
    }

    /// Those of a bundle, which has hashes alone.
    pub(super) fn of_bundle(images: &[String]) -> Self {
        Self { images: images.iter().cloned().collect(), ..Self::default() }
    }

    /// Returns the first digits of the hashes of their images, as a bundle keeps them.
    pub(super) fn images(&self) -> Vec<String> {
        self.images.iter().cloned().collect()
    }

    /// Returns `true` for a case of the run's own dataset with the id of a training case, and for a case of another dataset
    /// with the image of one.
    ///
    /// `image_sha256` is called only if there are hashes to compare with.
    pub fn contain(&self, dataset: &Path, id: &str, image_sha256: impl FnOnce() -> Option<String>) -> bool {
        if self.dataset.as_ref().is_some_and(|own| dataset.canonicalize().is_ok_and(|other| other == *own)) {
            return self.ids.contains(id);
        }
        let is_known =
            |hash: String| hash.get(..IMAGE_DIGITS).is_some_and(|digits| self.images.contains(digits));
        !self.images.is_empty() && image_sha256().is_some_and(is_known)
    }
}
