//! The numbers of a package, each kind in one piece.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Serialize;
use ssn_core::Values;

use super::header::Header;
use super::{ALIGNMENT, MAGIC, check_bytes};
use crate::error::{Result, ViewError};

/// A named array.
pub(super) struct Section<'a> {
    name: &'static str,
    shape: Vec<usize>,
    content: Content<'a>,
}

/// Where its numbers come from.
pub(super) enum Content<'a> {
    /// Rows of the numbers of a region, of which the chosen voxels are taken; all if none are named.
    Rows { values: &'a Values, voxels: Option<&'a [u32]> },
    /// The same of labels, with `row` of them in a row.
    LabelRows { labels: &'a [u8], voxels: Option<&'a [u32]>, row: usize },
    /// Numbers of 32 bits.
    Numbers(&'a [u32]),
    /// Numbers of 16 bits.
    Words(&'a [u16]),
    /// Numbers of 8 bits.
    Bytes(&'a [u8]),
}

/// Where a section lies, counted from the end of the header.
#[derive(Debug, Serialize)]
pub(super) struct Place {
    #[serde(rename = "type")]
    kind: &'static str,
    shape: Vec<usize>,
    offset: usize,
    bytes: usize,
}

impl<'a> Section<'a> {
    pub(super) fn new(name: &'static str, shape: Vec<usize>, content: Content<'a>) -> Self {
        Self { name, shape, content }
    }

    /// The name of its type, and the bytes of a number.
    fn kind(&self) -> (&'static str, usize) {
        match self.content {
            Content::Rows { values: Values::F32(_), .. } => ("f32", 4),
            Content::Rows { values: Values::F16(_), .. } => ("f16", 2),
            Content::Numbers(_) => ("u32", 4),
            Content::Words(_) => ("u16", 2),
            Content::LabelRows { .. } | Content::Bytes(_) => ("u8", 1),
        }
    }

    fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.kind().1
    }

    /// Writes its numbers, little endian.
    fn fill(&self, out: &mut [u8]) {
        match &self.content {
            Content::Rows { values, voxels } => {
                // The last axis is that of voxels; a package without any has no rows to fill.
                let rows: usize = self.shape[..self.shape.len() - 1].iter().product();
                let row = values.len() / rows.max(1);
                match values {
                    Values::F32(values) => fill_rows(values, row, *voxels, out, |x| x.to_le_bytes()),
                    Values::F16(values) => fill_rows(values, row, *voxels, out, |x| x.to_le_bytes()),
                }
            }
            Content::LabelRows { labels, voxels, row } => fill_rows(labels, *row, *voxels, out, |x| [x]),
            Content::Numbers(values) => fill(out, values, u32::to_le_bytes),
            Content::Words(values) => fill(out, values, u16::to_le_bytes),
            Content::Bytes(values) => out.copy_from_slice(values),
        }
    }
}

/// Writes rows of `row` values, each cut to the chosen voxels.
fn fill_rows<T: Copy + Sync, const N: usize>(
    values: &[T],
    row: usize,
    voxels: Option<&[u32]>,
    out: &mut [u8],
    bytes: impl Fn(T) -> [u8; N] + Sync,
) {
    let count = voxels.map_or(row, <[u32]>::len);
    if count == 0 || row == 0 {
        return;
    }
    out.par_chunks_mut(N * count).zip(values.par_chunks(row)).for_each(|(out, values)| {
        let places = out.as_chunks_mut::<N>().0.iter_mut();
        match voxels {
            Some(voxels) => places.zip(voxels).for_each(|(place, &x)| *place = bytes(values[x as usize])),
            None => places.zip(values).for_each(|(place, &x)| *place = bytes(x)),
        }
    });
}

fn fill<T: Copy, const N: usize>(out: &mut [u8], values: &[T], bytes: impl Fn(T) -> [u8; N]) {
    let places = out.as_chunks_mut::<N>().0.iter_mut();
    places.zip(values).for_each(|(place, &x)| *place = bytes(x));
}

/// Where each section lies.
pub(super) fn places(sections: &[Section<'_>]) -> BTreeMap<&'static str, Place> {
    let mut offset = 0;
    let mut place = |section: &Section<'_>| {
        let (kind, bytes) = (section.kind().0, section.bytes());
        let place = Place { kind, shape: section.shape.clone(), offset, bytes };
        offset = (offset + bytes).next_multiple_of(ALIGNMENT);
        (section.name, place)
    };
    sections.iter().map(&mut place).collect()
}

/// Header and sections as one array of bytes.
pub(super) fn write(case: &str, header: &Header<'_>, sections: &[Section<'_>]) -> Result<Vec<u8>> {
    let text = serde_json::to_string(header)
        .map_err(|error| ViewError::Parts { case: case.to_owned(), reason: error.to_string() })?;
    let length = text.len().next_multiple_of(ALIGNMENT);
    let start = MAGIC.len() + 8 + length;
    let places = places(sections);
    let end = places.values().map(|place| place.offset + place.bytes).max().unwrap_or(0);
    check_bytes(case, start + end)?;
    // The sections are cut out of zeros, which the system gives without touching them.
    let mut out = vec![0; start + end];
    out[..8].copy_from_slice(MAGIC);
    out[8..12].copy_from_slice(&(length as u32).to_le_bytes());
    out[16..16 + text.len()].copy_from_slice(text.as_bytes());
    out[16 + text.len()..start].fill(b' ');
    for section in sections {
        let place = &places[section.name];
        section.fill(&mut out[start + place.offset..][..place.bytes]);
    }
    Ok(out)
}
