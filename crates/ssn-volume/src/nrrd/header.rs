//! A header as checked values.

use super::axes;
use super::encoding::{self, Encoding, Skip};
use super::fields::{self, Field, Fields};
use super::space::{self, World};
use super::types;
use crate::error::Problem;
use crate::geometry::Geometry;
use crate::limits::Limits;
use crate::text_header::sibling;
use crate::text_header::stored::Stored;
use crate::text_header::words::{missing, number, refused};

/// A header whose values are understood and agree with one another.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    pub(super) stored: Stored,
    pub(super) encoding: Encoding,
    pub(super) skip: Skip,
    pub(super) geometry: Geometry,
    data_file: Option<String>,
    end: usize,
}

impl Header {
    /// The name of the file with the data, beside the header; nothing where the data follows the header.
    pub fn data_file(&self) -> Option<&str> {
        self.data_file.as_deref()
    }

    /// `[c, d, h, w]` of the image.
    pub fn shape(&self) -> [usize; 4] {
        self.stored.shape
    }

    /// What follows the header in its own file.
    pub(super) fn inline_data<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(self.end..).unwrap_or_default()
    }
}

/// Reads a header.
pub(super) fn parse(bytes: &[u8], limits: &Limits) -> Result<Header, Problem> {
    let fields = fields::split(bytes, limits)?;
    let kind = types::named(needed(&fields, Field::Type, "type")?)?;
    let dimension = dimension(&fields)?;
    let world = World::parse(&fields)?;
    let directions = match fields.get(Field::SpaceDirections) {
        Some(text) => Some(space::directions(text, world, dimension)?),
        None => None,
    };
    let directed: Option<Vec<bool>> =
        directions.as_ref().map(|vectors| vectors.iter().map(Option::is_some).collect());
    let sizes = needed(&fields, Field::Sizes, "sizes")?;
    let axes = axes::parse(sizes, fields.get(Field::Kinds), directed.as_deref(), dimension)?;
    let geometry = space::geometry(&fields, world, directions.as_deref(), &axes.in_space)?;
    encoding::check_units(&fields, &axes.in_space)?;

    let encoding = encoding::encoding(&fields)?;
    let order = encoding::byte_order(&fields, kind)?;
    let stored = Stored { kind, order, shape: axes.shape, channels: axes.channels };
    stored.bytes(limits)?;
    let data_file = match fields.get(Field::DataFile) {
        Some(text) => Some(sibling::plain_name("data file", text)?),
        None => None,
    };
    let skip = encoding::skip(&fields, encoding)?;
    Ok(Header { stored, encoding, skip, geometry, data_file, end: fields.end })
}

fn needed<'a>(fields: &Fields<'a>, field: Field, name: &'static str) -> Result<&'a str, Problem> {
    let advice = "the header is incomplete: export the image again";
    fields.get(field).ok_or_else(|| missing(name, "given in every header", advice))
}

fn dimension(fields: &Fields<'_>) -> Result<usize, Problem> {
    let (text, allowed) = (needed(fields, Field::Dimension, "dimension")?, "2, 3 or 4");
    let dimension = number("dimension", text, allowed)?;
    if (2..=4).contains(&dimension) {
        return Ok(dimension);
    }
    Err(refused("dimension", text, allowed, "store each part of the image in a file of its own"))
}
