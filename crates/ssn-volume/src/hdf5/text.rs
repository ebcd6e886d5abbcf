//! Text of fixed and variable length.

use hdf5_reader::{Dataset, Datatype, StringSize, VarLenKind};

use super::{Budget, damaged};
use crate::error::Problem;

/// The least that an allocator takes for the text of an entry, however short.
const SMALLEST: u64 = 32;
/// Bytes charged for an entry beside its text.
const ENTRY: u64 = size_of::<String>() as u64 + SMALLEST;

/// Whether a datatype is text.
pub(super) fn is_text(datatype: &Datatype) -> bool {
    matches!(datatype, Datatype::String { .. } | Datatype::VarLen { kind: VarLenKind::String, .. })
}

/// All entries of a dataset of text.
pub(super) fn read(dataset: &Dataset, path: &str, budget: &mut Budget) -> Result<Vec<String>, Problem> {
    let count = dataset.num_elements().map_err(|e| damaged(path, e))?;
    let stored = dataset.raw_element_size().map_err(|e| damaged(path, e))? as u64;
    budget.take(path, count.saturating_mul(stored.saturating_add(ENTRY)))?;
    if let Datatype::String { size: StringSize::Fixed(_), .. } = dataset.dtype() {
        return dataset.read_strings().map_err(|e| damaged(path, e));
    }
    let references = dataset.read_raw_bytes().map_err(|e| damaged(path, e))?;
    let size = dataset.vlen_reference_size();
    references.chunks_exact(size).map(|reference| entry(dataset, reference, path, budget)).collect()
}

/// The text that a reference names. Many references may name one long text, so each is charged for its own.
fn entry(dataset: &Dataset, reference: &[u8], path: &str, budget: &mut Budget) -> Result<String, Problem> {
    let length = reference.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    budget.take(path, u64::from(length))?;
    let mut bytes = dataset.resolve_vlen_reference_bytes(reference, 1).map_err(|e| damaged(path, e))?;
    if bytes.len() != length as usize {
        let reason = format!("a text of `{path}` has {} bytes instead of {length}", bytes.len());
        return Err(Problem::Damaged { part: "the HDF5 file", reason });
    }
    // Some writers count the zero that ends a text in C.
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    String::from_utf8(bytes).map_err(|_| Problem::Field {
        field: "a text",
        found: format!("not UTF-8, in `{path}`"),
        allowed: "UTF-8 or ASCII",
        advice: "write the file again with h5py's string type",
    })
}
