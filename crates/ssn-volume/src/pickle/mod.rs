//! Pickles and PyTorch files, as data.
//!
//! A pickle is a program for a small stack machine, and Python's own reader lets that program call anything.
//! The machine here builds numbers, text, containers and NumPy arrays and nothing else: a name is looked up
//! in a short table (`globals`), and one that is not in the table refuses the file. Nothing is imported and
//! nothing is called.
//!
//! Protocols 0 to 5 are read, plain or inside gzip. Memory grows with the bytes that arrive, and what a file
//! may build is bounded by the size of the file itself ([`budget`]), so that neither a decompression bomb nor
//! a web of references that share each other grows beyond it.

mod array;
pub mod budget;
mod containers;
mod encode;
mod finish;
mod globals;
mod heap;
mod machine;
mod memo;
mod opcodes;
mod scalars;
mod source;
pub mod torch_file;
mod value;

pub use encode::encode;
pub use value::{MAX_DEPTH, Value};

use crate::error::Problem;
use crate::gzip::is_gzip;
use crate::limits::Limits;
use budget::Budget;
use finish::finish;
use machine::{Dialect, Machine};
use source::Source;

/// Reads a pickle, plain or gzipped.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Value, Problem> {
    limits.check_file_bytes(bytes.len() as u64)?;
    let budget = Budget::new(bytes.len(), limits);
    if !is_gzip(bytes) {
        return read(Source::plain(bytes), budget);
    }
    match read(Source::gzip(bytes, limits), budget.before_verification()) {
        Err(Problem::Field { field: budget::UNVERIFIED, .. }) => {
            // More content than such a small file should hold: before it gets memory, its check sums must be
            // right.
            let expanded = source::verify_gzip(bytes, limits)?;
            read(
                Source::gzip(bytes, limits),
                Budget::new(bytes.len(), limits).with_verified_content(expanded),
            )
        }
        result => result,
    }
}

fn read(mut source: Source<'_>, budget: Budget) -> Result<Value, Problem> {
    let (heap, root) = Machine::new(Dialect::Plain, budget).run(&mut source)?;
    source.expect_end()?;
    let (value, _) = finish(heap, root, &mut |_, _| Err(globals::torch_outside()))?;
    Ok(value)
}
