//! The samples of a case, packed as they are drawn: label maps of a hundred samples would not fit.

use ssn_core::metrics::LabelFrequencies;
use ssn_core::{BitPlanes, LabelMap};

use super::config::ScoreConfig;
use crate::error::Result;
use crate::predictions::description::Kind;
use crate::predictions::distribution_file::DistributionFile;
use crate::predictions::draw::{Draw, blocks};

/// The samples of a case on the whole image.
pub(super) struct Samples {
    pub(super) planes: Vec<BitPlanes>,
    /// How often each class occurs, where that is asked for.
    pub(super) frequencies: Option<LabelFrequencies>,
}

impl Samples {
    /// Draws them, or takes those that the network drew itself. A deterministic network has one, its prediction, unless its categoricals are asked for.
    pub(super) fn draw(file: &DistributionFile, prediction: &LabelMap, config: &ScoreConfig) -> Result<Self> {
        let mut samples = Self { planes: vec![], frequencies: None };
        if file.description().kind == Kind::Deterministic && !config.categorical {
            samples.add(prediction, config)?;
            return Ok(samples);
        }
        let source = Draw::new(file, config.seed_of(&file.description().case), &config.steering())?;
        for block in blocks(0..config.samples as u64, file.description().voxels()) {
            for map in source.labels(block)? {
                let map = LabelMap::new(file.labels_on_image(&map)?, file.labels())?;
                samples.add(&map, config)?;
            }
        }
        Ok(samples)
    }

    fn add(&mut self, map: &LabelMap, config: &ScoreConfig) -> Result<()> {
        self.planes.push(BitPlanes::new(map));
        match &mut self.frequencies {
            Some(frequencies) => frequencies.push(map)?,
            None if config.voxelwise => self.frequencies = Some(LabelFrequencies::new(map)),
            None => {}
        }
        Ok(())
    }
}
