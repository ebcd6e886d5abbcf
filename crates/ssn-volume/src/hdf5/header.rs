//! Object headers: the messages that say what a group or a dataset is.

use super::bytes::{Cursor, File};
use crate::error::Problem;
use crate::limits::Limits;

/// Kinds of messages, by the names of the specification.
pub(super) mod kind {
    pub const DATASPACE: u16 = 0x01;
    pub const LINK_INFO: u16 = 0x02;
    pub const DATATYPE: u16 = 0x03;
    pub const FILL_OLD: u16 = 0x04;
    pub const FILL: u16 = 0x05;
    pub const LINK: u16 = 0x06;
    pub const EXTERNAL_FILES: u16 = 0x07;
    pub const LAYOUT: u16 = 0x08;
    pub const GROUP_INFO: u16 = 0x0a;
    pub const FILTERS: u16 = 0x0b;
    pub const CONTINUATION: u16 = 0x10;
    pub const SYMBOL_TABLE: u16 = 0x11;
}

const PART: &str = "an object header";
const NEWER: &[u8; 4] = b"OHDR";
const SHARED: u8 = 0b10;

#[derive(Clone, Copy)]
pub(super) struct Message<'a> {
    kind: u16,
    /// The message is stored elsewhere, and the body says where.
    pub(super) shared: bool,
    body: &'a [u8],
}

impl<'a> Message<'a> {
    pub(super) fn body(&self, part: &'static str) -> Cursor<'a> {
        Cursor { rest: self.body, part }
    }
}

/// The messages of an object, in their order.
pub(super) struct Header<'a>(Vec<Message<'a>>);

impl<'a> Header<'a> {
    pub(super) fn read(file: &File<'a>, address: u64, limits: &Limits) -> Result<Self, Problem> {
        let newer = file.part(address, 4, PART)?.rest == NEWER;
        let (form, first) = if newer { newer_form(file, address)? } else { older_form(file, address)? };
        let mut messages = vec![];
        let (mut blocks, mut total) = (vec![first], 0);
        while let Some(block) = blocks.pop() {
            total += block.rest.len() as u64;
            check_length(file, total, limits)?;
            let known = messages.len();
            form.messages(block, &mut messages)?;
            for message in messages[known..].iter().filter(|message| message.kind == kind::CONTINUATION) {
                let mut body = message.body("the continuation of an object header");
                blocks.push(form.block(file, body.u64()?, body.u64()?)?);
            }
        }
        Ok(Self(messages))
    }

    pub(super) fn all(&self, kind: u16) -> impl Iterator<Item = &Message<'a>> {
        self.0.iter().filter(move |message| message.kind == kind)
    }

    pub(super) fn find(&self, kind: u16) -> Option<&Message<'a>> {
        self.all(kind).next()
    }

    pub(super) fn has(&self, kinds: &[u16]) -> bool {
        self.0.iter().any(|message| kinds.contains(&message.kind))
    }
}

/// Refuses a header that is too long, or longer than the file: then its blocks overlap, and there is no end of them.
fn check_length(file: &File, found: u64, limits: &Limits) -> Result<(), Problem> {
    if found > file.length() {
        return Err(Problem::Damaged { part: PART, reason: "it is longer than the file".to_owned() });
    }
    let (limit, name) = (limits.header_bytes, "header_bytes");
    match found <= limit {
        true => Ok(()),
        false => Err(Problem::Limit { what: "the size of an object header", found, limit, name }),
    }
}

/// The two ways to write messages.
enum Form {
    Older,
    Newer { ordered: bool },
}

fn older_form<'a>(file: &File<'a>, address: u64) -> Result<(Form, Cursor<'a>), Problem> {
    let mut prefix = file.part(address, 16, PART)?;
    prefix.version(1)?;
    prefix.skip(1 + 2 + 4)?;
    let length = prefix.u32()?;
    Ok((Form::Older, file.part(address.saturating_add(16), length.into(), PART)?))
}

fn newer_form<'a>(file: &File<'a>, address: u64) -> Result<(Form, Cursor<'a>), Problem> {
    let mut prefix = file.part(address, 6, PART)?;
    prefix.signature(NEWER)?;
    prefix.version(2)?;
    let flags = prefix.u8()?;
    let times = if flags & 0x20 == 0 { 0 } else { 16 };
    let phases = if flags & 0x10 == 0 { 0 } else { 4 };
    let size = 1 << (flags & 0b11);
    let before = 6 + times + phases;
    let length = file.part(address.saturating_add(before), size, PART)?.number(size as usize)?;
    let mut block = file.sealed(address, length.saturating_add(before + size + 4), NEWER, PART)?;
    block.skip((before + size - 4) as usize)?;
    Ok((Form::Newer { ordered: flags & 0x04 != 0 }, block))
}

impl Form {
    /// A block to which the header continues.
    fn block<'a>(&self, file: &File<'a>, address: u64, length: u64) -> Result<Cursor<'a>, Problem> {
        match self {
            Self::Older => file.part(address, length, PART),
            Self::Newer { .. } => file.sealed(address, length, b"OCHK", PART),
        }
    }

    /// The messages of a block; a rest that is too short for one is padding.
    fn messages<'a>(&self, mut block: Cursor<'a>, into: &mut Vec<Message<'a>>) -> Result<(), Problem> {
        let before = match self {
            Self::Older => 8,
            Self::Newer { ordered } => 4 + 2 * usize::from(*ordered),
        };
        while block.rest.len() >= before {
            let kind = match self {
                Self::Older => block.u16()?,
                Self::Newer { .. } => block.u8()?.into(),
            };
            let length = block.u16()?;
            let shared = block.u8()? & SHARED != 0;
            match self {
                Self::Older => block.skip(3)?,
                Self::Newer { ordered } => block.skip(2 * usize::from(*ordered))?,
            }
            into.push(Message { kind, shared, body: block.bytes(length.into())? });
        }
        Ok(())
    }
}
