//! Text of fixed and variable length.

use super::budget::Budget;
use super::bytes::Cursor;
use super::dataset::Dataset;
use super::global_heap::GlobalHeap;
use crate::error::Problem;

/// The least that an allocator takes for the text of an entry, however short.
const SMALLEST: u64 = 32;
/// Bytes charged for an entry beside its text.
const ENTRY: u64 = size_of::<String>() as u64 + SMALLEST;
/// Bytes of a reference to a text of variable length: its length, and its place in a heap.
const REFERENCE: usize = 4 + 8 + 4;

/// The two kinds of text.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Fixed(Padding),
    Variable,
}

/// What stands behind a text of fixed length.
#[derive(Clone, Copy)]
pub(super) enum Padding {
    /// A zero, and then anything.
    Ended,
    Zeros,
    Spaces,
}

/// The kind of text that a datatype message describes, where it is text.
pub(super) fn of_text(message: &[u8]) -> Option<Kind> {
    const TEXT: u8 = 3;
    const VARIABLE: u8 = 9;
    let [class, flags, ..] = message else { return None };
    match (class & 0xf, flags & 0xf) {
        (TEXT, 0) => Some(Kind::Fixed(Padding::Ended)),
        (TEXT, 1) => Some(Kind::Fixed(Padding::Zeros)),
        (TEXT, 2) => Some(Kind::Fixed(Padding::Spaces)),
        // Other sequences than text have 0 here.
        (VARIABLE, 1) => Some(Kind::Variable),
        _ => None,
    }
}

/// All `count` entries of a dataset of text.
pub(super) fn read<'a>(
    dataset: &Dataset<'a>,
    kind: Kind,
    count: u64,
    path: &str,
    heap: &mut GlobalHeap<'_, 'a>,
    budget: &mut Budget,
) -> Result<Vec<String>, Problem> {
    let (file, element) = (heap.file, dataset.element);
    if matches!(kind, Kind::Variable) && element != REFERENCE {
        return Err(Cursor { rest: &[], part: "a datatype" }.damaged("references to text have 16 bytes"));
    }
    budget.take(path, count.saturating_mul((element as u64).saturating_add(ENTRY)))?;
    let mut entry = |bytes: &[u8]| match kind {
        Kind::Fixed(padding) => text(padding.trimmed(bytes), path),
        Kind::Variable => variable(bytes, heap, path, budget),
    };
    let unwritten = match kind {
        Kind::Fixed(_) => entry(dataset.fill)?,
        Kind::Variable => String::new(),
    };
    let mut entries = vec![unwritten; count as usize];
    if count > 0 {
        dataset.runs(file, &mut |first, bytes| {
            for (to, from) in entries[first..].iter_mut().zip(bytes.chunks_exact(element)) {
                *to = entry(from)?;
            }
            Ok(())
        })?;
    }
    Ok(entries)
}

impl Padding {
    fn trimmed(self, bytes: &[u8]) -> &[u8] {
        let length = match self {
            Self::Ended => bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len()),
            Self::Zeros => bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1),
            Self::Spaces => bytes.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1),
        };
        &bytes[..length]
    }
}

/// The text that a reference names. Many references may name one long text, so each is charged for its own.
fn variable(
    reference: &[u8],
    heap: &mut GlobalHeap,
    path: &str,
    budget: &mut Budget,
) -> Result<String, Problem> {
    let mut reference = Cursor { rest: reference, part: "a reference to text" };
    let length = reference.u32()?;
    if length == 0 {
        return Ok(String::new());
    }
    budget.take(path, length.into())?;
    let object = heap.object(reference.u64()?, reference.u32()?)?;
    let Some(bytes) = object.get(..length as usize) else {
        return Err(reference.damaged("it is longer than the text that it names"));
    };
    // Some writers count the zero that ends a text in C.
    text(Padding::Zeros.trimmed(bytes), path)
}

fn text(bytes: &[u8], path: &str) -> Result<String, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|_| Problem::Field {
        field: "a text",
        found: format!("not UTF-8, in `{path}`"),
        allowed: "UTF-8 or ASCII",
        advice: "write the file again with h5py's string type",
    })?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_where_their_padding_starts() {
        let trimmed = |padding: Padding| padding.trimmed(b"a \0b \0 ");
        assert_eq!(trimmed(Padding::Ended), b"a ");
        assert_eq!(trimmed(Padding::Zeros), b"a \0b \0 ");
        assert_eq!(trimmed(Padding::Spaces), b"a \0b \0");
        assert_eq!(Padding::Zeros.trimmed(b"a\0b\0\0"), b"a\0b");
        for padding in [Padding::Ended, Padding::Zeros, Padding::Spaces] {
            assert_eq!(padding.trimmed(b""), b"");
        }
    }
}
