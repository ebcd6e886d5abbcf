//! Pictures of synthetic cases and of augmented patches: `contact_sheet DIR` writes PNG files to look at.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ssn_data::{
    AugmentPreset, BatchConfig, CaseOrder, Cases, DataLoader, LoaderConfig, PatchConfig, PatchSampler,
    RaterChoice, Synthetic, SyntheticConfig,
};
use ssn_io::raster::encode_png;
use ssn_io::{Geometry, Image, Limits, Voxels};

/// Every voxel is a square of so many pixels.
const ZOOM: usize = 2;
const GAP: usize = 4;

/// Tiles of equal size in rows, as one picture.
struct Sheet {
    side: [usize; 2],
    rows: Vec<Vec<Vec<[u8; 3]>>>,
}

impl Sheet {
    fn write(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let [h, w] = self.side.map(|n| n * ZOOM + GAP);
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let (height, width) = (self.rows.len() * h, columns * w);
        let mut planes = vec![40u8; 3 * height * width];
        for (i, row) in self.rows.iter().enumerate() {
            for (j, tile) in row.iter().enumerate() {
                for y in 0..self.side[0] * ZOOM {
                    for x in 0..self.side[1] * ZOOM {
                        let pixel = tile[y / ZOOM * self.side[1] + x / ZOOM];
                        for c in 0..3 {
                            planes[(c * height + i * h + y) * width + j * w + x] = pixel[c];
                        }
                    }
                }
            }
        }
        let shape = [3, 1, height, width];
        let image = Image::new(Voxels::U8(planes), shape, Geometry::default(), &Limits::default())?;
        std::fs::write(path, encode_png(&image)?)?;
        Ok(())
    }
}

fn gray(image: &[f32]) -> Vec<[u8; 3]> {
    image.iter().map(|x| [(x.clamp(0.0, 1.0) * 255.0) as u8; 3]).collect()
}

/// The image with the label in color on it.
fn overlay(image: &[f32], labels: &[u8]) -> Vec<[u8; 3]> {
    let colors = [[0, 0, 0], [255, 120, 40], [60, 160, 255]];
    let mix = |gray: u8, color: u8| ((u16::from(gray) + u16::from(color)) / 2) as u8;
    let pixel = |(gray, &label): ([u8; 3], &u8)| match label {
        0 => gray,
        _ => [0, 1, 2].map(|c| mix(gray[c], colors[usize::from(label).min(2)][c])),
    };
    gray(image).into_iter().zip(labels).map(pixel).collect()
}

fn cases(path: &Path, config: SyntheticConfig) -> Result<(), Box<dyn Error>> {
    let [d, h, w] = config.size;
    let set = Synthetic::new(config)?;
    let mut rows = vec![];
    for index in 0..10 {
        // The slice through the first lesion.
        let z = set.scene(index).lesions.first().map_or(d / 2, |lesion| lesion.center[0].round() as usize);
        let slice = z * h * w..(z + 1) * h * w;
        let case = set.load(index)?;
        let image = &case.image[slice.clone()];
        let mut row = vec![gray(image)];
        row.extend(set.label_maps(index, 0..7).iter().map(|labels| overlay(image, &labels[slice.clone()])));
        let marginal: Vec<f32> =
            set.scene(index).marginal()[slice.clone()].iter().map(|&p| p as f32).collect();
        row.push(gray(&marginal));
        rows.push(row);
    }
    Sheet { side: [h, w], rows }.write(path)
}

/// Rows of one case, changed anew in every tile.
fn augmented(
    path: &Path,
    config: SyntheticConfig,
    place: PatchSampler,
    preset: AugmentPreset,
) -> Result<(), Box<dyn Error>> {
    let config = SyntheticConfig { cases: 1, ..config };
    let patch = PatchConfig { sampler: place, target_size: None, rater: RaterChoice::Fixed { rater: 0 } };
    let batches = BatchConfig {
        batch_size: 10,
        order: CaseOrder::Shuffled,
        patch,
        augment: preset.config(),
        input_grids: None,
    };
    let loader = DataLoader::new(Arc::new(Synthetic::new(config)?), 3, batches, &LoaderConfig::default())?;
    let (mut rows, mut side) = (vec![], [0, 0]);
    for batch in loader.take(4) {
        let batch = batch?;
        let [b, _, d, h, w] = batch.image_shape;
        side = [h, w];
        let tile = |item: usize| {
            let start = (item * d + d / 2) * h * w;
            overlay(&batch.images[start..start + h * w], &batch.targets[start..start + h * w])
        };
        rows.push((0..b).map(tile).collect());
    }
    Sheet { side, rows }.write(path)
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("which folder for the pictures?")?);
    let flat = SyntheticConfig::default();
    let volume = SyntheticConfig::volume();
    cases(&folder.join("synthetic-2d.png"), flat.clone())?;
    cases(&folder.join("synthetic-3-classes.png"), SyntheticConfig { classes: 3, ..flat.clone() })?;
    cases(&folder.join("synthetic-3d.png"), volume.clone())?;
    let large = SyntheticConfig { size: [1, 128, 128], ..flat };
    augmented(&folder.join("augmented-lidc.png"), large.clone(), PatchSampler::Whole, AugmentPreset::Lidc)?;
    augmented(
        &folder.join("augmented-lidc-as-coded.png"),
        large,
        PatchSampler::Whole,
        AugmentPreset::LidcAsCoded,
    )?;
    let place = PatchSampler::Random { size: [64, 64, 64], foreground_probability: 0.5 };
    let large = SyntheticConfig { size: [96, 96, 96], ..volume };
    augmented(&folder.join("augmented-brats.png"), large, place, AugmentPreset::Brats)
}
