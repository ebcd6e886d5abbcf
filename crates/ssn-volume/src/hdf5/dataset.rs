//! A dataset: its shape, its type, and its values wherever they lie.

use super::bytes::{Cursor, File, NOWHERE, unknown};
use super::chunks::{Chunks, Index, Place};
use super::filters::Filters;
use super::header::{Header, Message, kind};
use crate::error::Problem;
use crate::limits::Limits;

/// Axes of a dataset; the format allows as many.
const MOST_AXES: u8 = 32;

/// Where the values lie.
enum Layout<'a> {
    /// In one piece, in the header or elsewhere; nothing where none were ever written.
    Whole(Option<&'a [u8]>),
    Chunked(Chunks),
}

pub(super) struct Dataset<'a> {
    /// Lengths of the axes.
    pub(super) dims: Vec<u64>,
    /// The most they may become.
    most: Vec<u64>,
    /// The message about the type.
    pub(super) datatype: &'a [u8],
    /// Bytes of an element.
    pub(super) element: usize,
    /// What elements are that were never written; zeros where this is empty.
    pub(super) fill: &'a [u8],
    layout: Layout<'a>,
}

impl<'a> Dataset<'a> {
    pub(super) fn read(file: &File<'a>, header: &Header<'a>, limits: &Limits) -> Result<Self, Problem> {
        if header.has(&[kind::EXTERNAL_FILES]) {
            return Err(unknown("a dataset with its values in another file".to_owned()));
        }
        let (dims, most) = extent(body(header, kind::DATASPACE, "a dataspace")?)?;
        let datatype = datatype(file, header, limits)?;
        let mut fields = Cursor { rest: datatype, part: "a datatype" };
        fields.skip(4)?;
        let element = fields.u32()? as usize;
        if element == 0 {
            return Err(fields.damaged("its elements have no bytes"));
        }
        let layout = layout(file, header, &dims, element)?;
        Ok(Self { dims, most, datatype, element, fill: fill(header)?, layout })
    }

    /// Bytes of a chunk that has to be expanded.
    pub(super) fn expanded_chunk(&self) -> u64 {
        match &self.layout {
            Layout::Chunked(chunks) if !chunks.filters.is_empty() => chunks.bytes,
            _ => 0,
        }
    }

    /// Calls `place` with runs of elements, of which there must be some.
    pub(super) fn runs(&self, file: &File<'a>, place: &mut Place) -> Result<(), Problem> {
        match &self.layout {
            Layout::Whole(None) => Ok(()),
            Layout::Whole(Some(bytes)) => place(0, bytes),
            Layout::Chunked(chunks) => chunks.rows(file, &self.dims, &self.most, place),
        }
    }
}

/// The body of a message that a dataset must have in its own header.
fn body<'a>(header: &Header<'a>, kind: u16, part: &'static str) -> Result<Cursor<'a>, Problem> {
    match header.find(kind) {
        Some(message) => own(message, part),
        None => Err(Problem::Damaged { part: "a dataset", reason: format!("it lacks {part}") }),
    }
}

fn own<'a>(message: &Message<'a>, part: &'static str) -> Result<Cursor<'a>, Problem> {
    match message.shared {
        true => Err(unknown(format!("{part} that is shared between objects"))),
        false => Ok(message.body(part)),
    }
}

/// Lengths of the axes and what they may become; one axis of length 0 where there is no value at all.
fn extent(mut message: Cursor) -> Result<(Vec<u64>, Vec<u64>), Problem> {
    const NULL: u8 = 2;
    let (version, rank, flags) = (message.u8()?, message.u8()?, message.u8()?);
    match version {
        1 => message.skip(5)?,
        2 if message.u8()? == NULL => return Ok((vec![0], vec![0])),
        2 => {}
        version => return Err(unknown(format!("version {version} of a dataspace"))),
    }
    if rank > MOST_AXES {
        return Err(message.damaged("it has more than 32 axes"));
    }
    let mut lengths = || (0..rank).map(|_| message.u64()).collect::<Result<Vec<u64>, _>>();
    let dims = lengths()?;
    let most = if flags & 1 == 0 { dims.clone() } else { lengths()? };
    Ok((dims, most))
}

/// The datatype, which may be that of another object.
fn datatype<'a>(file: &File<'a>, header: &Header<'a>, limits: &Limits) -> Result<&'a [u8], Problem> {
    const PART: &str = "a datatype";
    const IN_AN_OBJECT: [u8; 2] = [0, 2];
    let Some(message) = header.find(kind::DATATYPE).filter(|message| message.shared) else {
        return Ok(body(header, kind::DATATYPE, PART)?.rest);
    };
    let mut place = message.body(PART);
    let (version, stored) = (place.u8()?, place.u8()?);
    if !(1..=3).contains(&version) || !IN_AN_OBJECT.contains(&stored) {
        return Err(unknown("a datatype that is shared between objects".to_owned()));
    }
    place.skip(if version == 1 { 6 } else { 0 })?;
    let named = Header::read(file, place.u64()?, limits)?;
    Ok(body(&named, kind::DATATYPE, PART)?.rest)
}

/// The fill value; nothing where it is zero.
fn fill<'a>(header: &Header<'a>) -> Result<&'a [u8], Problem> {
    const PART: &str = "a fill value";
    let mut message = match (header.find(kind::FILL), header.find(kind::FILL_OLD)) {
        (Some(message), _) => own(message, PART)?,
        (None, Some(message)) => {
            let mut message = own(message, PART)?;
            let length = message.u32()?;
            return message.bytes(length as usize);
        }
        (None, None) => return Ok(&[]),
    };
    let defined = match message.u8()? {
        1..=2 => {
            message.skip(2)?;
            message.u8()? != 0
        }
        3 => message.u8()? & 0x20 != 0,
        version => return Err(unknown(format!("version {version} of a fill value"))),
    };
    let length = if defined { message.u32()? } else { 0 };
    message.bytes(length as usize)
}

fn layout<'a>(
    file: &File<'a>,
    header: &Header<'a>,
    dims: &[u64],
    element: usize,
) -> Result<Layout<'a>, Problem> {
    let mut message = body(header, kind::LAYOUT, "a data layout")?;
    let (version, class) = (message.u8()?, message.u8()?);
    // Where the sizes do not fit into a number, the limits refuse them later.
    let needed = dims.iter().fold(element as u64, |product, &n| product.saturating_mul(n));
    match (version, class) {
        (3..=5, 0) => {
            let length = message.u16()?;
            let values = message.bytes(length.into())?;
            match values.get(..needed as usize) {
                None if length > 0 => Err(message.damaged("values are missing")),
                values => Ok(Layout::Whole(values.filter(|_| length > 0))),
            }
        }
        (3..=5, 1) => match message.u64()? {
            NOWHERE => Ok(Layout::Whole(None)),
            address => Ok(Layout::Whole(Some(file.values(address, needed, "a dataset")?))),
        },
        (3..=5, 2) => {
            let filters = match header.find(kind::FILTERS) {
                Some(message) => Filters::read(own(message, "a list of filters")?)?,
                None => Filters::none(),
            };
            let chunks = if version == 3 { older(message, filters) } else { newer(message, filters) }?;
            checked(chunks, dims.len(), element).map(Layout::Chunked)
        }
        _ => Err(unknown(format!("a dataset with the layout {class} of version {version}"))),
    }
}

/// Chunks found by a B-tree of version 1. The last of the lengths is that of an element.
fn older(mut message: Cursor, filters: Filters) -> Result<Chunks, Problem> {
    let axes = message.u8()?;
    let address = message.u64()?;
    let shape = (0..axes).map(|_| message.number(4)).collect::<Result<_, _>>()?;
    Ok(Chunks { index: Index::OlderTree, address, shape, bytes: 0, filters, plain_edges: false })
}

/// Chunks found by one of five newer indexes.
fn newer(mut message: Cursor, filters: Filters) -> Result<Chunks, Problem> {
    let (flags, axes, size) = (message.u8()?, message.u8()?, message.u8()?);
    let shape = (0..axes).map(|_| message.number(size.into())).collect::<Result<_, _>>()?;
    let index = match message.u8()? {
        1 if flags & 2 != 0 => Index::Single(Some((message.u64()?, message.u32()?))),
        1 => Index::Single(None),
        2 => Index::Implicit,
        // How the index was made stands in its header again.
        3 => message.skip(1).map(|()| Index::FixedArray)?,
        4 => message.skip(5).map(|()| Index::GrowingArray)?,
        5 => message.skip(6).map(|()| Index::NewerTree)?,
        index => return Err(unknown(format!("index {index} of chunks"))),
    };
    Ok(Chunks { index, address: message.u64()?, shape, bytes: 0, filters, plain_edges: flags & 1 != 0 })
}

/// Chunks with as many axes as their dataset, and elements of the same size.
fn checked(mut chunks: Chunks, axes: usize, element: usize) -> Result<Chunks, Problem> {
    let bytes = chunks.shape.iter().try_fold(1u64, |product, &n| product.checked_mul(n));
    let last = chunks.shape.pop();
    match bytes.filter(|&bytes| bytes > 0 && bytes <= u32::MAX.into()) {
        Some(bytes) if axes > 0 && chunks.shape.len() == axes && last == Some(element as u64) => {
            Ok(Chunks { bytes, ..chunks })
        }
        _ => Err(Problem::Damaged {
            part: "a data layout",
            reason: "its chunks do not fit the dataset".to_owned(),
        }),
    }
}
