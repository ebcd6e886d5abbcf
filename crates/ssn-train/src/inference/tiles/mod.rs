//! Where the tiles of a whole image lie: geometry alone, no tensors.
//!
//! A network without padding gives the same values for a part of an image as for the whole, as long as the part begins
//! at a multiple of its scales: tiles lie side by side on that grid, and nothing shows where one ends. A padded
//! network sees its own border: tiles overlap, and weights that fall towards the border of a tile and sum to 1 at
//! every voxel blend them.

mod cover;

use serde::{Deserialize, Serialize};
use ssn_data::Window;
use ssn_eval::Region;

pub use cover::Span;

use crate::error::{Result, refused, require};
use ssn_nn::backbones::{BackboneConfig, Seams};
use ssn_nn::space::Size;

/// How an image is divided.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TileConfig {
    /// The size of a tile's output, `[d, h, w]`, rounded up to what the network accepts; as a rule that of the patches
    /// of training. Nothing means the whole image, halved until it has no more voxels than `voxels_at_once`.
    pub tile: Option<[usize; 3]>,
    /// How many voxels of output are computed at once. So many tiles go through the network together; it is
    /// always one at least.
    pub voxels_at_once: usize,
    /// The part of a tile along each axis that it shares at least with the next, for padded networks.
    pub overlap: f64,
}

impl Default for TileConfig {
    /// 64³ or 512² voxels at once. In single precision the paper's U-Net needs 3 kB for each, its DeepMedic 6 kB.
    fn default() -> Self {
        Self { tile: None, voxels_at_once: 1 << 18, overlap: 0.5 }
    }
}

impl TileConfig {
    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        if let Some(tile) = self.tile
            && tile.contains(&0)
        {
            return refused("tile", format!("{tile:?}"), "at least 1 along every axis");
        }
        require(self.voxels_at_once > 0, "voxels_at_once", self.voxels_at_once, "at least 1")?;
        require((0.0..=0.9).contains(&self.overlap), "overlap", self.overlap, "from 0 to 0.9")
    }

    /// The size of the tiles of an extent, a multiple of `unit`.
    fn tile_size(&self, extent: [usize; 3], unit: [usize; 3]) -> [usize; 3] {
        let whole = [0, 1, 2].map(|axis| extent[axis].next_multiple_of(unit[axis]));
        if let Some(tile) = self.tile {
            return [0, 1, 2].map(|axis| tile[axis].next_multiple_of(unit[axis]).min(whole[axis]));
        }
        let mut tile = whole;
        while voxels(tile) > self.voxels_at_once {
            let divisible = (0..3).filter(|&axis| tile[axis] > unit[axis]);
            let Some(axis) = divisible.max_by_key(|&axis| tile[axis]) else { break };
            tile[axis] = tile[axis].div_ceil(2).next_multiple_of(unit[axis]);
        }
        tile
    }
}

/// The tiles that cover a region of an image.
#[derive(Debug, Clone, PartialEq)]
pub struct Tiles {
    output: [usize; 3],
    input: [usize; 3],
    /// How many voxels of the input lie before the output along each axis.
    margin: [usize; 3],
    /// A tile is one span of each axis, and its weights are the products of theirs.
    spans: [Vec<Span>; 3],
    at_once: usize,
}

impl Tiles {
    /// The tiles of a network for a region of an image of a size. Where tiles blend, they are those of the whole image
    /// that touch the region, so that values do not depend on it.
    pub fn new(
        image: [usize; 3],
        region: Region,
        backbone: &BackboneConfig,
        config: &TileConfig,
    ) -> Result<Self> {
        config.check()?;
        let wanted = |axis: usize| region.start[axis]..region.start[axis] + region.size[axis];
        let (output, spans) = match backbone.seams()? {
            Seams::None(unit) => {
                let unit = from_torch(unit);
                let extent =
                    [0, 1, 2].map(|axis| wanted(axis).end - wanted(axis).start / unit[axis] * unit[axis]);
                let largest = config.tile_size(extent, unit);
                // As many tiles, but none larger than they must be.
                let tile = [0, 1, 2].map(|axis| {
                    let count = extent[axis].div_ceil(largest[axis]);
                    extent[axis].div_ceil(count).next_multiple_of(unit[axis])
                });
                (tile, [0, 1, 2].map(|axis| cover::side_by_side(wanted(axis), unit[axis], tile[axis])))
            }
            Seams::Padded(unit) => {
                // A network that does not say which sizes it accepts surely accepts that of the tile.
                let unit = unit.map(from_torch).or(config.tile).unwrap_or([1; 3]);
                let tile = config.tile_size(image, unit);
                let overlapping =
                    |axis| cover::overlapping(image[axis], tile[axis], config.overlap, wanted(axis));
                (tile, [0, 1, 2].map(overlapping))
            }
        };
        let input = from_torch(backbone.input_size(output.map(|n| n as i64))?);
        // Multiples of the unit have even margins: every path of a network is centerd on its output.
        let margin = [0, 1, 2].map(|axis| (input[axis] - output[axis]) / 2);
        Ok(Self { output, input, margin, spans, at_once: (config.voxels_at_once / voxels(output)).max(1) })
    }

    /// The size of every tile's output.
    pub fn output(&self) -> [usize; 3] {
        self.output
    }

    /// The size of the part of the image that a tile needs.
    pub fn input(&self) -> [usize; 3] {
        self.input
    }

    /// How many tiles there are.
    pub fn count(&self) -> usize {
        self.spans.iter().map(Vec::len).product()
    }

    /// All tiles, in the groups that go through the network together.
    pub fn batches(&self) -> impl Iterator<Item = Vec<Tile<'_>>> {
        let [d, h, w] = &self.spans;
        let mut tiles = (d.iter().flat_map(move |d| h.iter().map(move |h| [d, h])))
            .flat_map(move |[d, h]| w.iter().map(move |w| Tile { spans: [d, h, w], tiles: self }));
        std::iter::from_fn(move || {
            let batch: Vec<_> = tiles.by_ref().take(self.at_once).collect();
            (!batch.is_empty()).then_some(batch)
        })
    }
}

/// One tile.
#[derive(Debug, Clone, Copy)]
pub struct Tile<'a> {
    /// Where it lies along `d`, `h` and `w`, which of its voxels are used, and how much they count.
    pub spans: [&'a Span; 3],
    tiles: &'a Tiles,
}

impl Tile<'_> {
    /// The part of the image that it needs, which may reach beyond the image.
    pub fn input(&self) -> Window {
        let start = |axis: usize| self.spans[axis].start as isize - self.tiles.margin[axis] as isize;
        Window { start: [0, 1, 2].map(start), size: self.tiles.input }
    }

    /// The part of the image that it predicts, which may reach beyond the image.
    pub fn output(&self) -> Window {
        Window { start: self.spans.map(|span| span.start as isize), size: self.tiles.output }
    }
}

fn from_torch(size: Size) -> [usize; 3] {
    size.map(|n| n as usize)
}

fn voxels(size: [usize; 3]) -> usize {
    size.iter().product()
}

#[cfg(test)]
mod tests;
