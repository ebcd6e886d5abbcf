//! The grid of a case, and images brought onto it.

use std::path::{Path, PathBuf};

use ssn_io::{Format, Geometry, Image, Volume, Voxels};

/// The grid of a case, and the file that defined it.
pub(super) struct Place {
    pub path: PathBuf,
    pub shape: [usize; 3],
    pub geometry: Geometry,
}

/// Whether a file is of a kind that has no geometry.
pub(super) fn is_picture(path: &Path) -> bool {
    matches!(Format::of(path), Ok(Format::Png | Format::Jpeg | Format::Tiff | Format::Npy))
}

/// A picture in gray that was stored in color, as one channel; anything else as it is.
pub(super) fn gray(image: Image) -> Image {
    let [channels, d, h, w] = image.shape;
    let Voxels::U8(values) = &image.voxels else { return image };
    let voxels = d * h * w;
    let same = channels > 1 && values.chunks(voxels.max(1)).all(|channel| channel == &values[..voxels]);
    if !same {
        return image;
    }
    let first = values[..voxels].to_vec();
    Image { voxels: Voxels::U8(first), shape: [1, d, h, w], ..image }
}

/// The middle of `side` pixels along height and width; a shorter side stays as it is.
pub(super) fn center<T: Copy>(volume: Volume<T>, side: usize) -> Volume<T> {
    let [c, d, h, w] = volume.shape;
    let (new_h, new_w) = (h.min(side), w.min(side));
    let (top, left) = ((h - new_h) / 2, (w - new_w) / 2);
    let planes = volume.data.chunks_exact(h * w);
    let rows = planes.flat_map(|plane| plane.chunks_exact(w).skip(top).take(new_h));
    let data = rows.flat_map(|row| row[left..left + new_w].iter().copied()).collect();
    Volume { data, shape: [c, d, new_h, new_w], geometry: volume.geometry }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_center_is_in_the_middle() {
        let volume = Volume { data: (0..40).collect(), shape: [2, 1, 4, 5], geometry: Geometry::default() };
        let part = center(volume.clone(), 2);
        assert_eq!((part.shape, part.data), ([2, 1, 2, 2], vec![6, 7, 11, 12, 26, 27, 31, 32]));
        assert_eq!(center(volume.clone(), 9), volume);
    }
}
