//! The links of a group, in whichever of three ways they are stored.

use super::btree2;
use super::bytes::{Cursor, File, NOWHERE};
use super::fractal_heap::FractalHeap;
use super::header::{Header, kind};
use super::symbols;
use crate::error::Problem;
use crate::limits::Limits;

/// Where a link leads.
#[derive(Clone, Copy)]
pub(super) enum Target<'a> {
    /// The address of an object's header.
    Object(u64),
    /// A path, from the root where it starts with `/`, otherwise from the group of the link.
    Path(&'a str),
}

#[derive(Clone, Copy)]
pub(super) struct Link<'a> {
    pub(super) name: &'a str,
    pub(super) target: Target<'a>,
}

/// Links on their way into a list that is never longer than the limit.
pub(super) struct Links<'a> {
    found: Vec<Link<'a>>,
    limit: u64,
}

impl<'a> Links<'a> {
    pub(super) fn push(&mut self, name: &'a str, target: Target<'a>) -> Result<(), Problem> {
        self.found.push(Link { name, target });
        check_members(self.found.len() as u64, self.limit)
    }
}

/// Refuses more members than allowed.
pub(super) fn check_members(found: u64, limit: u64) -> Result<(), Problem> {
    match found <= limit {
        true => Ok(()),
        false => {
            Err(Problem::Limit { what: "the number of groups and datasets", found, limit, name: "members" })
        }
    }
}

/// All links of a group but those into other files, which count as absent.
pub(super) fn read<'a>(
    file: &File<'a>,
    header: &Header<'a>,
    limits: &Limits,
) -> Result<Vec<Link<'a>>, Problem> {
    let mut links = Links { found: vec![], limit: limits.members };
    if let Some(message) = header.find(kind::SYMBOL_TABLE) {
        symbols::read(file, message.body("a symbol table"), &mut links)?;
    }
    for message in header.all(kind::LINK) {
        link(message.body("a link"), &mut links)?;
    }
    if let Some(message) = header.find(kind::LINK_INFO) {
        dense(file, message.body("the link info of a group"), &mut links)?;
    }
    Ok(links.found)
}

/// One link, from its message.
fn link<'a>(mut message: Cursor<'a>, links: &mut Links<'a>) -> Result<(), Problem> {
    message.version(1)?;
    let flags = message.u8()?;
    let kind = if flags & 0x08 == 0 { 0 } else { message.u8()? };
    let order = if flags & 0x04 == 0 { 0 } else { 8 };
    let encoding = if flags & 0x10 == 0 { 0 } else { 1 };
    message.skip(order + encoding)?;
    let length = message.number(1 << (flags & 0b11))?;
    let name = message.text(usize::try_from(length).unwrap_or(usize::MAX))?;
    let target = match kind {
        0 => Target::Object(message.u64()?),
        1 => {
            let length = message.u16()?;
            Target::Path(message.text(length.into())?)
        }
        _ => return Ok(()),
    };
    links.push(name, target)
}

/// The links of a large group: messages in a heap, found by a B-tree of their names.
fn dense<'a>(file: &File<'a>, mut message: Cursor<'a>, links: &mut Links<'a>) -> Result<(), Problem> {
    /// Records of the tree that sorts links by their names: a hash, and a place in the heap.
    const BY_NAME: u8 = 5;
    message.version(0)?;
    let ordered = message.u8()? & 1 != 0;
    message.skip(if ordered { 8 } else { 0 })?;
    let (heap, tree) = (message.u64()?, message.u64()?);
    if heap == NOWHERE {
        return Ok(());
    }
    let heap = FractalHeap::read(file, heap)?;
    btree2::walk(file, tree, &[BY_NAME], &mut |mut record| {
        record.skip(4)?;
        let object = heap.object(file, record)?;
        link(Cursor { rest: object, part: "a link" }, links)
    })
}
