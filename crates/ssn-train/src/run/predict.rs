//! The prediction of one case: prepared as in training, computed in tiles, described for its file.

use ssn_core::modes::canonicalise;
use ssn_data::{Case, Preprocessing};
use ssn_eval::{Description, DistributionFile, Kind, ModelId, case_seed};

use super::trained::Trained;
use crate::error::Result;
use crate::inference::whole_image::{Draws, Image, Says, Timing, WholeImage, WholeImageConfig, predict};

impl Trained {
    /// How a model is called in files.
    pub fn id(&self) -> ModelId {
        let provenance = &self.about.provenance;
        let name = format!("{}, step {}", provenance.run, provenance.step);
        ModelId { sha256: self.sha256.clone(), name }
    }

    /// The distribution of a case as its files have it, and how long the network took. `progress` gets the tiles done and their number.
    ///
    /// The columns of its factor are the modes of variation, orthogonal and ordered by the variance that they explain.
    ///
    /// The distribution lies on the grid of the case, or on one with the spacing of the network if that is fixed. Cases with a
    /// region of interest are predicted in the box around it.
    pub fn predict(
        &self,
        case: Case,
        config: &WholeImageConfig,
        progress: impl FnMut(usize, usize),
    ) -> Result<(DistributionFile, Timing)> {
        // Cutting to the mask is the region's business, so that the file keeps the size of the image.
        let preprocessing = Preprocessing {
            spacing: self.about.spacing,
            crop_to_mask: false,
            normalization: self.about.normalization,
        };
        let case = preprocessing.apply(case)?;
        let image = Image::new(&case.image, case.channels, case.shape, case.mask.as_deref())?;
        // Cases of one seed share no noise.
        let seed = case_seed(config.draws.seed, &case.id);
        let config = WholeImageConfig { draws: Draws { seed, ..config.draws }, ..*config };
        let mut prediction = predict(&self.model, &image, &config, progress)?;
        let timing = prediction.timing;
        if let Says::Distribution(distribution) = &mut prediction.says {
            // In files, the columns of the factor are modes, so that steering one of them means something.
            *distribution = canonicalise(distribution)?.distribution;
        }
        Ok((describe(case, prediction, &self.about.classes, self.id())?, timing))
    }
}

/// What a network said about a case, with what its file needs.
pub(super) fn describe(
    case: Case,
    prediction: WholeImage,
    classes: &[String],
    model: ModelId,
) -> Result<DistributionFile> {
    let WholeImage { size, region, says, timing: _ } = prediction;
    let kind = match &says {
        Says::Distribution(_) => Kind::Stochastic,
        Says::Logits(_) => Kind::Deterministic,
        Says::Samples { .. } => Kind::Sampled,
    };
    let mask = case.mask.map(|mask| region.cut(&mask, size));
    let (classes, geometry) = (classes.to_vec(), case.geometry);
    let description = Description { case: case.id, classes, kind, size, geometry, region, model };
    Ok(match says {
        Says::Distribution(distribution) | Says::Logits(distribution) => {
            DistributionFile::new(description, distribution, mask)?
        }
        Says::Samples { mean, labels } => DistributionFile::sampled(description, mean, labels, mask)?,
    })
}
