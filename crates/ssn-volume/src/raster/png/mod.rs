//! PNG, 8 and 16 bit.

mod data;
mod read;
mod write;

pub use read::parse_png;
pub use write::encode_png;
pub(super) use write::interleave;
