//! A case as bytes: a header that says what it is, and sections of numbers that the page reads in place.
//!
//! `docs/reference/viewer.md` describes the format; this module is that section in Rust.

mod header;
mod sections;

use rayon::prelude::*;
use ssn_core::LowRankNormal;
use ssn_eval::{Kind, Region};

use crate::case::{Packing, ViewCase};
use crate::error::{Result, ViewError};
use crate::image::{self, Data};
use crate::keep::KeptVoxels;
use crate::shown::marked_box;
use header::Header;
use sections::{Content, Section};

/// What every package begins with.
pub const MAGIC: &[u8; 8] = b"SSNVIEW1";
/// The largest package. Browsers hold little more in one buffer.
pub const MAX_BYTES: u64 = 2_000_000_000;
/// Header and sections begin at multiples of this.
const ALIGNMENT: usize = 8;

/// Packs a case.
///
/// Means, variances and factors are the very numbers of the file, in its precision.
///
/// # Errors
/// An image or raters of another size than the distribution, and a case that no browser could hold.
pub fn package(case: &ViewCase, packing: &Packing) -> Result<Vec<u8>> {
    case.check()?;
    let (file, about) = (&case.file, case.file.description());
    let kept = KeptVoxels::of(file);
    let prediction = file.labels_on_image(&file.prediction()?)?;
    let shown = shown(case, packing, &prediction, &kept);
    let cut = |labels: &[u8]| shown.cut(labels, about.size);
    let picture = case.picture.as_ref().map(|picture| {
        let cut = |channel: &[f32]| shown.cut(channel, about.size);
        let values: Vec<f32> = picture.values.chunks(about.voxels()).flat_map(cut).collect();
        image::levels(&values, shown.voxels())
    });
    let raters: Vec<u8> = case.raters.iter().flat_map(|rater| cut(&rater.labels)).collect();
    let prediction = cut(&prediction);

    let (d, n) = (file.distribution(), kept.count(file.distribution().voxels()));
    let (c, r) = (d.classes(), d.rank());
    let row = |leading: &[usize], last: &[usize]| [leading, last].concat();
    let voxels = kept.voxels.as_deref();
    let mut sections = vec![];
    if let Some(voxels) = voxels {
        sections.push(Section::new("voxels", vec![n], Content::Numbers(voxels)));
    }
    let rows = |values| Content::Rows { values, voxels };
    sections.push(Section::new("mean", vec![c, n], rows(d.mean())));
    if about.kind == Kind::Stochastic {
        sections.push(Section::new("diagonal", vec![c, n], rows(d.diagonal())));
        sections.push(Section::new("factor", vec![r, c, n], rows(d.factor())));
    }
    if let Some(labels) = file.samples() {
        let content = Content::LabelRows { labels, voxels, row: d.voxels() };
        sections.push(Section::new("samples", vec![file.sample_count(), n], content));
    }
    if let Some(picture) = &picture {
        let content = match &picture.data {
            Data::Bytes(bytes) => Content::Bytes(bytes),
            Data::Words(words) => Content::Words(words),
        };
        sections.push(Section::new("image", row(&[picture.ranges.len()], &shown.size), content));
    }
    if !case.raters.is_empty() {
        let shape = row(&[case.raters.len()], &shown.size);
        sections.push(Section::new("raters", shape, Content::Bytes(&raters)));
    }
    sections.push(Section::new("prediction", shown.size.to_vec(), Content::Bytes(&prediction)));

    let ranges = picture.as_ref().map_or(&[][..], |picture| &picture.ranges);
    let header = Header::new(case, packing, &kept, shown, ranges, shares(d, voxels), &sections);
    sections::write(case.name(), &header, &sections)
}

/// The part of the image that is shown.
fn shown(case: &ViewCase, packing: &Packing, prediction: &[u8], kept: &KeptVoxels) -> Region {
    let about = case.file.description();
    if !packing.crop {
        return Region::whole(about.size);
    }
    let mut maps: Vec<&[u8]> = case.raters.iter().map(|rater| rater.labels.as_slice()).collect();
    maps.push(prediction);
    let region = about.region;
    let numbers: Box<dyn Iterator<Item = usize>> = match &kept.voxels {
        Some(voxels) => Box::new(voxels.iter().map(|&x| x as usize)),
        // The corners of the box.
        None => Box::new([0, region.voxels() - 1].into_iter()),
    };
    marked_box(about.size, &maps, numbers.map(|x| region.voxel(x)))
}

/// The share of each column of the factor in Σ_q |P_q|² over the voxels of the package; zeros where there is none.
fn shares(distribution: &LowRankNormal, voxels: Option<&[u32]>) -> Vec<f64> {
    let (v, r, factor) = (distribution.voxels(), distribution.rank(), distribution.factor());
    // Sums of rows in their order, so that the thread count changes nothing.
    let rows: Vec<f64> = (0..r * distribution.classes())
        .into_par_iter()
        .map(|row| {
            let square = |x: usize| f64::from(factor.get(row * v + x)).powi(2);
            match voxels {
                Some(voxels) => voxels.iter().map(|&x| square(x as usize)).sum(),
                None => (0..v).map(square).sum(),
            }
        })
        .collect();
    let squares: Vec<f64> = rows.chunks(distribution.classes()).map(|rows| rows.iter().sum()).collect();
    let total: f64 = squares.iter().sum();
    squares.iter().map(|x| if total > 0.0 { x / total } else { 0.0 }).collect()
}

/// Refuses a package that no browser could hold.
fn check_bytes(case: &str, bytes: usize) -> Result<()> {
    match bytes as u64 {
        bytes if bytes > MAX_BYTES => {
            Err(ViewError::TooLarge { case: case.to_owned(), bytes, most: MAX_BYTES })
        }
        _ => Ok(()),
    }
}
