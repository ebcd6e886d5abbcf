//! Reading TIFF.

use std::collections::HashSet;

use half::f16;

use super::super::canvas::{Canvas, not_opaque};
use super::super::field;
use super::directory::{self, Tiff};
use super::page::{Kind, Page};
use super::{chunk, stack};
use crate::error::Problem;
use crate::geometry::Geometry;
use crate::gzip::must_be_proven;
use crate::limits::{Limits, memory_of};
use crate::volume::Image;
use crate::voxels::{ByteOrder, Voxels};

/// The tag of the description (TIFF 6.0, section 8).
const DESCRIPTION: u16 = 270;

/// Reads a TIFF or BigTIFF file in either byte order: its pages are the depth, `[c, d, h, w]`.
///
/// Grey of 8 to 64 bit whole or floating-point numbers (half precision is widened to single, which is exact),
/// RGB of 8 or 16 bit, and palettes, of which the *indices* are read. Strips and tiles, together or by
/// channel, without compression or with LZW, deflate or PackBits, with any predictor. Samples keep their
/// stored values. Opacity is dropped where all pixels are opaque. All pages must have the same size and type.
/// LZW, PackBits and data without compression have no check sums: that their lengths are right is all that
/// can be verified.
pub fn parse_tiff(bytes: &[u8], limits: &Limits) -> Result<Image, Problem> {
    limits.check_file_bytes(bytes.len() as u64)?;
    let tiff = Tiff::open(bytes)?;
    let pages = read_pages(&tiff)?;
    let kind = pages[0].kind;
    let shape = [kind.channels, pages.len(), kind.height, kind.width];
    let values = limits.check_values(&shape)?;
    limits.check_memory(memory(&pages, values as u64), bytes.len() as u64)?;
    let expanded = (values * kind.sample.bytes()) as u64;
    if must_be_proven(expanded, bytes.len() as u64) {
        fill(&tiff, &pages, shape, false)?;
    }
    let canvas = fill(&tiff, &pages, shape, true)?;
    if kind.half {
        return half_image(&canvas.into_bytes(), tiff.order, shape, limits);
    }
    canvas.finish(kind.sample, tiff.order, limits)
}

/// The most memory that pages with so many values in all cost: beside the values, the places of their strips or tiles,
/// and a row with its copy.
fn memory(pages: &[Page], values: u64) -> u64 {
    let chunks: usize = pages.iter().map(|page| page.places.len()).sum();
    let row = pages.iter().map(Page::row_bytes).max().unwrap_or(0);
    let Kind { sample, half, .. } = pages[0].kind;
    let size = if half { size_of::<f32>() } else { sample.bytes() };
    memory_of(values, size).saturating_add((chunks * size_of::<[u64; 2]>() + 2 * row) as u64)
}

/// Reads the chain of directories, which may neither turn back nor overlap, nor share data.
fn read_pages(tiff: &Tiff<'_>) -> Result<Vec<Page>, Problem> {
    let mut pages: Vec<Page> = vec![];
    let mut seen = HashSet::new();
    let mut used = 0u64;
    let mut description = None;
    let mut next = tiff.first;
    while next != 0 {
        let again = "the file is damaged: export it again";
        if !seen.insert(next) {
            return Err(field("the chain of directories", "a circle", "one with an end", again));
        }
        let directory = directory::read(tiff, next)?;
        let page = Page::new(tiff, &directory)?;
        used += directory.bytes + page.places.iter().map(|[_, length]| length).sum::<u64>();
        if used > tiff.bytes.len() as u64 {
            let found = "more bytes than the file has, so some are shared";
            return Err(field("the data of all pages", found, "each in a place of its own", again));
        }
        if let Some(first) = pages.first()
            && page.kind != first.kind
        {
            return Err(different(pages.len(), &page.kind, &first.kind));
        }
        description = description.or_else(|| directory.text(tiff, DESCRIPTION));
        pages.push(page);
        next = directory.next;
    }
    let Some(first) = pages.first() else {
        return Err(field(
            "the number of pages",
            0,
            "at least 1",
            "the file holds no picture: export it again",
        ));
    };
    stack::check(description.unwrap_or_default(), pages.len(), first.kind.channels)?;
    Ok(pages)
}

fn different(page: usize, kind: &Kind, first: &Kind) -> Problem {
    let show = |kind: &Kind| {
        let Kind { width, height, channels, sample, .. } = kind;
        format!("{width} × {height} with {channels} channels of {sample:?}")
    };
    field(
        "a page",
        format!("{} (page {}, while the first is {})", show(kind), page + 1, show(first)),
        "of the size and type of the first",
        "save the pages that belong together as a file of their own",
    )
}

/// Expands all pages.
fn fill(tiff: &Tiff<'_>, pages: &[Page], shape: [usize; 4], keep: bool) -> Result<Canvas, Problem> {
    let kind = pages[0].kind;
    let mut canvas = Canvas::new(shape, kind.sample.bytes(), kind.alpha, keep);
    for (d, page) in pages.iter().enumerate() {
        fill_page(tiff, page, d, &mut canvas)?;
    }
    Ok(canvas)
}

fn fill_page(tiff: &Tiff<'_>, page: &Page, d: usize, canvas: &mut Canvas) -> Result<(), Problem> {
    let Kind { height, width, channels, sample, .. } = page.kind;
    let [chunk_width, chunk_height] = page.chunk;
    let (across, down) = (width.div_ceil(chunk_width), height.div_ceil(chunk_height));
    let samples = page.samples();
    let mut row = vec![0; page.row_bytes()];
    let mut scratch = vec![];
    for (index, &[start, length]) in page.places.iter().enumerate() {
        let (plane, y, x) = (index / (across * down), index / across % down, index % across);
        let (top, left) = (y * chunk_height, x * chunk_width);
        // Tiles are padded to their size; the last strip is as high as what is left.
        let rows = if page.tiled { chunk_height } else { chunk_height.min(height - top) };
        let mut reader = page.compression.reader(&tiff.bytes[start as usize..(start + length) as usize])?;
        for y in 0..rows {
            if !chunk::fill_row(&mut *reader, &mut row)? {
                return Err(Problem::Truncated {
                    part: "a strip or tile of the TIFF file",
                    needed: (rows * row.len()) as u64,
                    found: (y * row.len()) as u64,
                });
            }
            if top + y >= height {
                continue;
            }
            page.predictor.undo(&mut row, samples, sample.bytes(), tiff.order, &mut scratch);
            let place = [d, top + y, left];
            // What pads a tile is not part of the picture.
            let row = &row[..chunk_width.min(width - left) * samples * sample.bytes()];
            match page.planar {
                false => canvas.put_pixels(place, 1, row)?,
                true if plane < channels => canvas.put_plane(plane, place, row),
                true if row.iter().all(|&b| b == u8::MAX) => {}
                true => return Err(not_opaque()),
            }
        }
        if !chunk::at_end(&mut *reader)? {
            return Err(field(
                "a strip or tile",
                "longer than its part of the picture",
                "exactly as long",
                "size and data do not belong together: export the picture again",
            ));
        }
    }
    Ok(())
}

/// Half precision as single precision.
fn half_image(bytes: &[u8], order: ByteOrder, shape: [usize; 4], limits: &Limits) -> Result<Image, Problem> {
    let read = match order {
        ByteOrder::Little => f16::from_le_bytes,
        ByteOrder::Big => f16::from_be_bytes,
    };
    let values = bytes.as_chunks().0.iter().map(|&pair| read(pair).to_f32()).collect();
    Image::new(Voxels::F32(values), shape, Geometry::default(), limits)
}
