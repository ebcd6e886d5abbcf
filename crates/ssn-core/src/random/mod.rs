//! Random numbers that are a function of their address.
//!
//! Every normal number of the project is `normal(seed, stream, draw, index)`: no state, no order, the same on
//! every platform, with any number of threads, and in the browser. `docs/reference/sampling.md` specifies it
//! with test vectors; this module is that page in Rust.

mod elementary;
mod keep;
mod normal;
mod philox;
mod words;

pub use elementary::{exp_nonpositive, ln_lanes};
pub use keep::fill_kept_from;
pub use normal::{RANK_STREAM, TILE, fill_normals, fill_normals_from, normal_tile};
pub use philox::{LANES, philox4x32};
pub use words::word_tile;

/// A seed for one purpose, so that noise, shuffles and splits that share a user's seed stay independent.
///
/// The two output words are those of Philox with the seed as key and `(purpose, index)` as counter.
pub fn derive_seed(seed: u64, purpose: u32, index: u64) -> u64 {
    let words = philox4x32([purpose, DERIVE_TAG, low(index), high(index)], [low(seed), high(seed)]);
    u64::from(words[0]) | u64::from(words[1]) << 32
}

/// The stream of the words that choose labels of independent categoricals.
pub const CATEGORICAL_STREAM: u32 = 0xFFFF_FFFD;

/// Second counter word of [`derive_seed`]; no stream of normals may use it.
const DERIVE_TAG: u32 = 0xFFFF_FFFE;

/// The low half of a 64-bit number.
pub(crate) fn low(x: u64) -> u32 {
    x as u32
}

/// The high half of a 64-bit number.
pub(crate) fn high(x: u64) -> u32 {
    (x >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_seeds_differ_by_purpose_and_index() {
        let seeds = [derive_seed(1, 0, 0), derive_seed(1, 1, 0), derive_seed(1, 0, 1), derive_seed(2, 0, 0)];
        for (i, a) in seeds.iter().enumerate() {
            assert!(seeds[i + 1..].iter().all(|b| a != b));
        }
    }
}
