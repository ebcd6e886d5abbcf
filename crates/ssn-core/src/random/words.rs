//! Random words by address, in the order in which normal numbers use theirs.

use super::normal::TILE;
use super::philox::{LANES, philox_lanes};
use super::{high, low};

/// The words with indices `64·tile … 64·tile + 63` of a stream of one draw.
///
/// Word `16·j + lane` of the tile is word `j` of the four that come from the counter `(16·tile + lane, stream, draw)`.
#[inline(always)]
pub fn word_tile(seed: u64, stream: u32, draw: u64, tile: u32) -> [u32; TILE] {
    let counter = [tile * LANES as u32, stream, low(draw), high(draw)];
    let words: [[u32; LANES]; 4] = philox_lanes(counter, [low(seed), high(seed)]);
    let mut out = [0; TILE];
    for j in 0..4 {
        out[j * LANES..(j + 1) * LANES].copy_from_slice(&words[j]);
    }
    out
}
