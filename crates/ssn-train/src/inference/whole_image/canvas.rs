//! What tiles are added up on: mean, diagonal and factor of a region, on the host.

use half::f16;
use half::slice::HalfFloatSliceExt;
use serde::{Deserialize, Serialize};
use ssn_core::distribution::{MAX_PARAMETER, Values};
use ssn_eval::Region;

use crate::error::{ImageProblem, Result};

use crate::inference::tiles::Tile;

/// The precision in which numbers are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Storage {
    /// Single precision.
    #[default]
    F32,
    /// Half precision, for numbers up to 65504.
    F16,
}

/// One of mean, diagonal and factor: `rows` numbers for each voxel of a region, classes running faster than ranks.
#[derive(Debug)]
pub(super) struct Canvas {
    part: &'static str,
    classes: usize,
    rows: usize,
    region: Region,
    values: Values,
    /// A row of one tile, weighted.
    line: Vec<f32>,
    /// The same row as it stands in half precision.
    wide: Vec<f32>,
}

impl Canvas {
    /// Zeros for `ranks` × `classes` rows.
    pub(super) fn new(
        part: &'static str,
        [ranks, classes]: [usize; 2],
        region: Region,
        storage: Storage,
    ) -> Result<Self> {
        let rows = ranks * classes;
        let count = rows.saturating_mul(region.voxels());
        let values = match storage {
            Storage::F32 => Values::F32(zeros(part, count)?),
            Storage::F16 => Values::F16(zeros(part, count)?),
        };
        Ok(Self { part, classes, rows, region, values, line: vec![], wide: vec![] })
    }

    /// Adds what a tile says, times its weights.
    ///
    /// # Shapes
    /// `values` `[rows, d, h, w]`, where `d, h, w` is the size of the tile's output.
    pub(super) fn add(&mut self, tile: &Tile, values: &[f32]) -> Result<()> {
        let ([_, th, tw], [d, h, w]) = (tile.output().size, tile.spans);
        let tile_voxels = tile.output().size.iter().product::<usize>();
        let [_, rh, rw] = self.region.size;
        for (row, values) in values.chunks_exact(tile_voxels).enumerate().take(self.rows) {
            for (z, dw) in (d.first..).zip(&d.weights) {
                for (y, hw) in (h.first..).zip(&h.weights) {
                    let line = &values[(z * th + y) * tw + w.first..][..w.weights.len()];
                    let voxel = [d.start + z, h.start + y, w.start + w.first];
                    self.check(row, voxel, line)?;
                    self.line.clear();
                    self.line.extend(line.iter().zip(&w.weights).map(|(value, ww)| value * (dw * hw * ww)));
                    let [z, y, x] = [0, 1, 2].map(|axis| voxel[axis] - self.region.start[axis]);
                    self.add_line(row * self.region.voxels() + (z * rh + y) * rw + x);
                }
            }
        }
        Ok(())
    }

    /// Adds the weighted line to the numbers from `place` on.
    fn add_line(&mut self, place: usize) {
        let n = self.line.len();
        match &mut self.values {
            Values::F32(values) => {
                for (sum, value) in values[place..place + n].iter_mut().zip(&self.line) {
                    *sum += value;
                }
            }
            Values::F16(values) => {
                let sums = &mut values[place..place + n];
                self.wide.resize(n, 0.0);
                sums.convert_to_f32_slice(&mut self.wide);
                for (sum, value) in self.wide.iter_mut().zip(&self.line) {
                    *sum += value;
                }
                sums.convert_from_f32_slice(&self.wide);
            }
        }
    }

    /// Refuses numbers that cannot be kept; `voxel` is that of the line's first.
    fn check(&self, row: usize, voxel: [usize; 3], line: &[f32]) -> Result<()> {
        let largest = match self.values {
            Values::F32(_) => MAX_PARAMETER,
            Values::F16(_) => f16::MAX.to_f32(),
        };
        let fits = |value: &f32| value.abs() <= largest;
        // Without a way out of the loop it is vectorized.
        if line.iter().fold(true, |all, value| all & fits(value)) {
            return Ok(());
        }
        let Some(x) = line.iter().position(|value| !fits(value)) else { return Ok(()) };
        let (value, [d, h, w]) = (line[x], voxel);
        let rule = match self.values {
            Values::F16(_) if value.abs() <= MAX_PARAMETER => "be within ± 65504 to be kept as f16",
            _ => "be within ± 1e20",
        };
        let (part, class) = (self.part, row % self.classes);
        Err(ImageProblem::Output { part, class, voxel: [d, h, w + x], value, rule }.into())
    }

    /// The sums `[rows, v]`.
    pub(super) fn into_values(self) -> Values {
        self.values
    }
}

/// So many zeros, or an error where there is no memory for them.
fn zeros<T: Clone + Default>(part: &'static str, count: usize) -> Result<Vec<T>> {
    let mut values = vec![];
    values.try_reserve_exact(count).map_err(|_| ImageProblem::Memory { part, values: count })?;
    values.resize(count, T::default());
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::tiles::{TileConfig, Tiles};
    use ssn_nn::backbones::BackboneConfig;
    use ssn_nn::model::ModelConfig;

    fn unet() -> BackboneConfig {
        ModelConfig::lidc().backbone
    }

    #[test]
    fn a_constant_stays_constant() {
        let region = Region { start: [0; 3], size: [1, 150, 200] };
        let config = TileConfig { tile: Some([1, 64, 128]), ..TileConfig::default() };
        let tiles = Tiles::new(region.size, region, &unet(), &config).unwrap();
        assert!(tiles.count() > 6);
        for (storage, tolerance) in [(Storage::F32, 1e-6), (Storage::F16, 2e-3)] {
            let mut canvas = Canvas::new("factor", [2, 1], region, storage).unwrap();
            for tile in tiles.batches().flatten() {
                let voxels = 64 * 128;
                let values: Vec<f32> = (0..2 * voxels).map(|i| if i < voxels { 1.0 } else { -3.0 }).collect();
                canvas.add(&tile, &values).unwrap();
            }
            let values = canvas.into_values().to_f32();
            let (first, second) = values.split_at(region.voxels());
            assert!(first.iter().all(|value| (value - 1.0).abs() <= tolerance), "{storage:?}");
            assert!(second.iter().all(|value| (value + 3.0).abs() <= 3.0 * tolerance), "{storage:?}");
        }
    }

    #[test]
    fn numbers_that_cannot_be_kept_are_named() {
        let region = Region { start: [0, 2, 3], size: [1, 5, 6] };
        let tiles = Tiles::new([1, 60, 60], region, &unet(), &TileConfig::default()).unwrap();
        let tile = tiles.batches().flatten().next().unwrap();
        let message = |storage, value: f32| {
            let mut canvas = Canvas::new("factor", [2, 3], region, storage).unwrap();
            let mut values = vec![0.0; 6 * 64 * 64];
            values[0] = f32::NAN; // outside the region: it does not matter
            values[(4 * 64 + 5) * 64 + 7] = value;
            canvas.add(&tile, &values).map_err(|error| error.to_string())
        };
        assert_eq!(
            message(Storage::F32, f32::NAN).unwrap_err(),
            "the network's factor is NaN for class 1 at voxel [0, 5, 7] (d, h, w), but must be within ± 1e20"
        );
        assert_eq!(
            message(Storage::F16, 1e5).unwrap_err(),
            "the network's factor is 100000 for class 1 at voxel [0, 5, 7] (d, h, w), but must be within ± 65504 to be \
             kept as f16"
        );
        assert!(message(Storage::F16, f32::INFINITY).unwrap_err().ends_with("1e20"));
        assert_eq!(message(Storage::F32, 1e5), Ok(()));
    }

    #[test]
    fn what_does_not_fit_into_memory_is_an_error() {
        assert_eq!(
            zeros::<f32>("factor", usize::MAX / 2).unwrap_err().to_string(),
            "there is no memory for 9223372036854775807 numbers of the factor; keep the factor as f16, or give \
             a smaller image or a mask"
        );
    }
}
