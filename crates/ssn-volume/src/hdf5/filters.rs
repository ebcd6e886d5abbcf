//! Filters of chunks: what was done to the values before they were stored, undone.

use std::borrow::Cow;
use std::io::Read;

use flate2::bufread::ZlibDecoder;

use super::bytes::{Cursor, File, unknown};
use super::checksum::{agree, fletcher32};
use crate::error::Problem;

/// Filters of one chunk; the format allows as many.
const MOST: u8 = 32;
const SUM: usize = 4;
/// Bytes that a filter makes cost this part of bytes that are looked at.
const QUICKER: u64 = 4;
/// Filters from this number on are not the format's own, and have a name.
const FOREIGN: u16 = 256;

#[derive(Clone, Copy)]
enum Filter {
    Deflate,
    /// The first bytes of all elements, then all second ones, of elements of so many bytes.
    Shuffle(usize),
    Fletcher32,
}

/// Filters in the order in which they were applied.
pub(super) struct Filters(Vec<Filter>);

impl Filters {
    pub(super) fn none() -> Self {
        Self(vec![])
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn read(mut message: Cursor) -> Result<Self, Problem> {
        let (version, count) = (message.u8()?, message.u8()?);
        if !(1..=2).contains(&version) || count > MOST {
            return Err(unknown(format!("version {version} of a list of {count} filters")));
        }
        message.skip(if version == 1 { 6 } else { 0 })?;
        let filters = (0..count).map(|_| filter(&mut message, version));
        filters.collect::<Result<_, _>>().map(Self)
    }

    /// The `length` bytes of a chunk. A bit of the mask stands for a filter that was left out.
    pub(super) fn undo<'a>(
        &self,
        file: &File,
        stored: &'a [u8],
        mask: u32,
        length: usize,
    ) -> Result<Cow<'a, [u8]>, Problem> {
        let mut bytes = Cow::Borrowed(stored);
        // Check sums make a chunk longer on the way.
        let longest = length + SUM * self.0.len();
        let applied = self.0.iter().enumerate().rev().filter(|(at, _)| mask >> at & 1 == 0);
        for (_, filter) in applied {
            file.count(longest as u64 / QUICKER)?;
            bytes = match filter {
                Filter::Deflate => Cow::Owned(expand(&bytes, longest)?),
                Filter::Shuffle(element) => Cow::Owned(gather(&bytes, *element)),
                Filter::Fletcher32 => verified(bytes)?,
            };
        }
        match bytes.len() == length {
            true => Ok(bytes),
            false => Err(damaged(format!("it has {} bytes instead of {length}", bytes.len()))),
        }
    }
}

fn filter(message: &mut Cursor, version: u8) -> Result<Filter, Problem> {
    let id = message.u16()?;
    let named = version == 1 || id >= FOREIGN;
    let name_length = if named { message.u16()?.into() } else { 0 };
    message.skip(2)?;
    let count = usize::from(message.u16()?);
    // Version 1 fills names and values up to 8 bytes.
    message.skip(if version == 1 { usize::next_multiple_of(name_length, 8) } else { name_length })?;
    let mut values = Cursor { rest: message.bytes(4 * count)?, part: message.part };
    message.skip(if version == 1 { 4 * (count % 2) } else { 0 })?;
    Ok(match id {
        1 => Filter::Deflate,
        // Text of variable length has no element to shuffle.
        2 => Filter::Shuffle(if count == 0 { 0 } else { values.u32()? as usize }),
        3 => Filter::Fletcher32,
        id => {
            return Err(Problem::Unsupported {
                what: format!("filter {id} of a dataset"),
                advice: "write the file again with gzip (`h5repack -f GZIP=4`)",
            });
        }
    })
}

/// Expanded bytes, verified to the end; more than `longest` are not kept.
fn expand(bytes: &[u8], longest: usize) -> Result<Vec<u8>, Problem> {
    let mut expanded = Vec::with_capacity(longest);
    let mut decoder = ZlibDecoder::new(bytes).take(longest as u64);
    decoder.read_to_end(&mut expanded).map_err(|error| damaged(error.to_string()))?;
    // The check sum lies behind the last byte: it is compared when one more is asked for.
    match decoder.into_inner().read(&mut [0]) {
        Ok(0) => Ok(expanded),
        Ok(_) => Err(damaged("it is longer than its header says".to_owned())),
        Err(error) => Err(damaged(error.to_string())),
    }
}

/// Elements from their first, second, … bytes; a rest that is no element stands at the end.
fn gather(bytes: &[u8], element: usize) -> Vec<u8> {
    let count = bytes.len().checked_div(element).unwrap_or(0);
    if element <= 1 || count == 0 {
        return bytes.to_vec();
    }
    let (shuffled, rest) = bytes.split_at(count * element);
    let mut gathered = vec![0; shuffled.len()];
    for (place, plane) in shuffled.chunks_exact(count).enumerate() {
        gathered.iter_mut().skip(place).step_by(element).zip(plane).for_each(|(to, from)| *to = *from);
    }
    gathered.extend(rest);
    gathered
}

/// Bytes without the check sum at their end, which must be right.
fn verified(mut bytes: Cow<[u8]>) -> Result<Cow<[u8]>, Problem> {
    let Some((content, sum)) = bytes.split_last_chunk::<SUM>() else {
        return Err(damaged("it has no check sum".to_owned()));
    };
    if !agree(fletcher32(content), u32::from_le_bytes(*sum)) {
        return Err(damaged("its check sum is wrong".to_owned()));
    }
    let length = content.len();
    match &mut bytes {
        Cow::Borrowed(bytes) => *bytes = &bytes[..length],
        Cow::Owned(bytes) => bytes.truncate(length),
    }
    Ok(bytes)
}

fn damaged(reason: String) -> Problem {
    Problem::Damaged { part: "a chunk", reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_gathered_from_their_bytes() {
        assert_eq!(gather(&[1, 2, 3, 11, 12, 13, 99], 2), [1, 11, 2, 12, 3, 13, 99]);
        for element in [0, 1, 8] {
            assert_eq!(gather(&[1, 2, 3], element), [1, 2, 3]);
        }
    }
}
