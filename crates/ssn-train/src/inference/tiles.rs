//! Where the tiles of a whole image lie: geometry alone, no tensors.
//!
//! A network without padding gives the same values for a part of an image as for the whole, as long as the part begins
//! at a multiple of its scales: tiles lie side by side on that grid, and nothing shows where one ends. A padded
//! network sees its own border: tiles overlap, and weights that fall towards the border of a tile and sum to 1 at
//! every voxel blend them.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use ssn_core::{Region, Window};
use ssn_nn::backbones::{BackboneConfig, ConvPadding};
use ssn_nn::error::{Result, refused, require};
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
    /// A size of which the network accepts every multiple, if it does not say itself which it accepts; as a rule that of
    /// the patches of training.
    pub unit: Option<[usize; 3]>,
}

impl Default for TileConfig {
    /// 64³ or 512² voxels at once. In single precision the paper's U-Net needs 3 kB for each, its DeepMedic 6 kB.
    fn default() -> Self {
        Self { tile: None, voxels_at_once: 1 << 18, overlap: 0.5, unit: None }
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
    /// The size of every tile's output.
    output: [usize; 3],
    /// The size of the part of the image that a tile needs.
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
        let (output, spans) = match backbone.plan().conv_padding() {
            ConvPadding::Valid(unit) => {
                let unit = from_torch(unit);
                let extent =
                    [0, 1, 2].map(|axis| wanted(axis).end - wanted(axis).start / unit[axis] * unit[axis]);
                let largest = config.tile_size(extent, unit);
                // As many tiles, but none larger than they must be.
                let tile = [0, 1, 2].map(|axis| {
                    let count = extent[axis].div_ceil(largest[axis]);
                    extent[axis].div_ceil(count).next_multiple_of(unit[axis])
                });
                (tile, [0, 1, 2].map(|axis| side_by_side(wanted(axis), unit[axis], tile[axis])))
            }
            ConvPadding::Same(unit) => {
                // A network that does not say which sizes it accepts surely accepts that of the tile.
                let unit = unit.map(from_torch).or(config.tile).or(config.unit).unwrap_or([1; 3]);
                let tile = config.tile_size(image, unit);
                let overlapping = |axis| overlapping(image[axis], tile[axis], config.overlap, wanted(axis));
                (tile, [0, 1, 2].map(overlapping))
            }
        };
        let input = from_torch(backbone.input_size(output.map(|n| n as i64))?);
        // Multiples of the unit have even margins: every path of a network is centered on its output.
        let margin = [0, 1, 2].map(|axis| (input[axis] - output[axis]) / 2);
        Ok(Self { output, input, margin, spans, at_once: (config.voxels_at_once / voxels(output)).max(1) })
    }

    /// How many tiles there are.
    pub fn count(&self) -> usize {
        self.spans.iter().map(Vec::len).product()
    }

    /// All tiles, in the groups that go through the network together.
    pub fn batches(&self) -> impl Iterator<Item = Vec<ImageTile<'_>>> {
        let [d, h, w] = &self.spans;
        let mut tiles = (d.iter().flat_map(move |d| h.iter().map(move |h| [d, h])))
            .flat_map(move |[d, h]| w.iter().map(move |w| ImageTile { spans: [d, h, w], tiles: self }));
        std::iter::from_fn(move || {
            let batch: Vec<_> = tiles.by_ref().take(self.at_once).collect();
            (!batch.is_empty()).then_some(batch)
        })
    }
}

/// One tile.
#[derive(Debug, Clone, Copy)]
pub struct ImageTile<'a> {
    /// Where it lies along `d`, `h` and `w`, which of its voxels are used, and how much they count.
    pub spans: [&'a Span; 3],
    tiles: &'a Tiles,
}

impl ImageTile<'_> {
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

/// A tile along one axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// The first voxel of the tile in the image.
    pub start: usize,
    /// The first voxel that is used, counted from `start`.
    pub first: usize,
    /// How much each voxel that is used counts. Over all spans of an axis the weights of a voxel sum to 1.
    pub weights: Vec<f32>,
}

impl Span {
    /// The part of a tile that lies inside `wanted`; nothing if none of it does.
    fn within(wanted: &Range<usize>, start: usize, weights: &[f32]) -> Option<Self> {
        let from = start.max(wanted.start);
        let to = (start + weights.len()).min(wanted.end);
        (from < to).then(|| {
            let (first, last) = (from - start, to - start);
            Self { start, first, weights: weights[first..last].to_vec() }
        })
    }
}

/// Tiles side by side, the first at a multiple of `unit`; the last may reach beyond what is wanted.
pub fn side_by_side(wanted: Range<usize>, unit: usize, tile: usize) -> Vec<Span> {
    let starts = (wanted.start / unit * unit..wanted.end).step_by(tile);
    starts.filter_map(|start| Span::within(&wanted, start, &vec![1.0; tile])).collect()
}

/// Tiles of an axis of `length` that share at least the part `overlap` of themselves with the next, those of them
/// that touch what is wanted.
///
/// They are spread evenly and end with the axis; only a tile longer than the axis reaches beyond it. Weights fall
/// linearly from the middle of a tile to its ends.
pub fn overlapping(length: usize, tile: usize, overlap: f64, wanted: Range<usize>) -> Vec<Span> {
    let tent = |x: usize| (x + 1).min(tile - x) as f64;
    let starts = starts(length, tile, overlap);
    let mut total = vec![0.0; length.max(tile)];
    for start in &starts {
        for x in 0..tile {
            total[start + x] += tent(x);
        }
    }
    let span = |start: usize| {
        let weights: Vec<f32> = (0..tile).map(|x| (tent(x) / total[start + x]) as f32).collect();
        Span::within(&wanted, start, &weights)
    };
    starts.into_iter().filter_map(span).collect()
}

fn starts(length: usize, tile: usize, overlap: f64) -> Vec<usize> {
    let room = length.saturating_sub(tile);
    let step = ((tile as f64 * (1.0 - overlap)) as usize).max(1);
    let gaps = room.div_ceil(step);
    (0..=gaps).map(|i| (i * room + gaps / 2) / gaps.max(1)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ssn_nn::backbones::{DeepMedicConfig, TorchScriptConfig, UNetConfig};

    use super::*;

    fn deepmedic() -> BackboneConfig {
        BackboneConfig::Deepmedic(DeepMedicConfig::brats())
    }

    fn unet() -> BackboneConfig {
        let unet = UNetConfig { strides: vec![[1, 2, 2], [2, 2, 2]], ..UNetConfig::lidc() };
        BackboneConfig::Unet(UNetConfig {
            widths: vec![8; 3],
            kernels: vec![[3; 3]; 3],
            decoder_widths: vec![8; 2],
            ..unet
        })
    }

    fn foreign() -> BackboneConfig {
        BackboneConfig::Torchscript(TorchScriptConfig { torchscript: "net.pt".into(), features: 4 })
    }

    fn tiles(image: [usize; 3], backbone: &BackboneConfig, config: TileConfig) -> Tiles {
        Tiles::new(image, Region { start: [0; 3], size: image }, backbone, &config).unwrap()
    }

    fn with_tile(tile: [usize; 3]) -> TileConfig {
        TileConfig { tile: Some(tile), ..TileConfig::default() }
    }

    #[test]
    fn deepmedic_tiles_lie_on_the_grid_of_its_scales() {
        let tiles = tiles([155, 240, 100], &deepmedic(), with_tile([60, 50, 90]));
        // 100 voxels by tiles of at most 90 are two of 60: the least multiple of 15 that covers 50.
        assert_eq!((tiles.output, tiles.input, tiles.count()), ([60; 3], [140; 3], 3 * 4 * 2));
        let first = tiles.batches().flatten().next().unwrap();
        assert_eq!(first.input(), Window { start: [-40; 3], size: [140; 3] });
        assert_eq!(first.output(), Window { start: [0; 3], size: [60; 3] });
        let last = tiles.batches().flatten().last().unwrap();
        assert_eq!(last.output().start, [120, 180, 60]);
        assert_eq!(last.spans.map(|span| span.weights.len()), [35, 60, 40]);
    }

    #[test]
    fn a_region_needs_only_its_own_tiles() {
        let region = Region { start: [50, 16, 0], size: [20, 10, 31] };
        let tiles = Tiles::new([240; 3], region, &deepmedic(), &with_tile([30; 3])).unwrap();
        assert_eq!((tiles.output, tiles.count()), ([30, 15, 30], 2));
        assert_eq!(tiles.batches().flatten().next().unwrap().output().start, [45, 15, 0]);
        // Those of a padded network are where they are without a region.
        let whole = self::tiles([64; 3], &unet(), with_tile([16; 3]));
        let region = Region { start: [33, 1, 1], size: [1, 2, 2] };
        let some = Tiles::new([64; 3], region, &unet(), &with_tile([16; 3])).unwrap();
        assert_eq!((whole.count(), some.count()), (343, 2));
        let starts =
            |tiles: &Tiles| -> Vec<_> { tiles.batches().flatten().map(|t| t.output().start).collect() };
        assert!(starts(&some).iter().all(|start| starts(&whole).contains(start)));
    }

    #[test]
    fn an_image_within_the_budget_is_one_tile() {
        let budget = |voxels_at_once| TileConfig { voxels_at_once, ..TileConfig::default() };
        let whole = tiles([7, 99, 63], &unet(), budget(8 * 100 * 64));
        assert_eq!((whole.output, whole.input, whole.count()), ([8, 100, 64], [8, 100, 64], 1));
        let two = tiles([7, 99, 63], &unet(), budget(8 * 100 * 64 - 1));
        assert_eq!(two.output, [8, 52, 64]);
        // What cannot be divided any more is computed anyway.
        assert_eq!(tiles([7, 99, 63], &unet(), budget(1)).output, [2, 4, 4]);
    }

    #[test]
    fn foreign_networks_get_the_size_they_know() {
        assert_eq!(tiles([1, 100, 20], &foreign(), with_tile([1, 48, 48])).output, [1, 48, 48]);
        assert_eq!(tiles([1, 100, 21], &foreign(), TileConfig::default()).output, [1, 100, 21]);
        let of_patches = TileConfig { unit: Some([1, 48, 48]), ..TileConfig::default() };
        assert_eq!(tiles([1, 100, 20], &foreign(), of_patches).output, [1, 144, 48]);
        assert_eq!(
            tiles([1, 100, 20], &unet(), of_patches).output,
            tiles([1, 100, 20], &unet(), TileConfig::default()).output
        );
    }

    #[test]
    fn settings_outside_their_range_are_named() {
        let message = |config: TileConfig| config.check().unwrap_err().to_string();
        assert_eq!(
            message(with_tile([1, 0, 4])),
            "tile is [1, 0, 4], but it must be at least 1 along every axis"
        );
        let none = TileConfig { voxels_at_once: 0, ..TileConfig::default() };
        assert_eq!(message(none), "voxels_at_once is 0, but it must be at least 1");
        for overlap in [-0.1, 1.0, f64::NAN] {
            let config = TileConfig { overlap, ..TileConfig::default() };
            assert_eq!(message(config), format!("overlap is {overlap}, but it must be from 0 to 0.9"));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn weights_sum_to_1_where_wanted_and_are_absent_elsewhere(
            image in [1..20usize, 1..50, 1..50],
            whole in any::<bool>(),
            from in prop::array::uniform3(0.0..1.0f64),
            to in prop::array::uniform3(0.0..1.0f64),
            tile in [1..20usize, 1..40, 1..40],
            overlap in 0.0..0.9,
            voxels_at_once in 1..100_000usize,
            by_budget in any::<bool>(),
            network in 0..3usize,
        ) {
            let unit = (network == 1).then_some([1, 8, 8]);
            let config = TileConfig { tile: (!by_budget).then_some(tile), overlap, voxels_at_once, unit };
            let backbone = [deepmedic(), unet(), foreign()][network].clone();
            let mut region = Region { start: [0; 3], size: image };
            if !whole {
                region.start = [0, 1, 2].map(|axis| (from[axis] * image[axis] as f64) as usize);
                let most = |axis: usize| (image[axis] - region.start[axis] - 1) as f64;
                region.size = [0, 1, 2].map(|axis| 1 + (to[axis] * most(axis)) as usize);
            }
            let tiles = Tiles::new(image, region, &backbone, &config).unwrap();
            let output = tiles.output.map(|n| n as i64);
            prop_assert_eq!(backbone.output_size(tiles.input.map(|n| n as i64)).unwrap(), output);
            let mut sums = vec![0.0; voxels(image)];
            let mut count = 0;
            for batch in tiles.batches() {
                prop_assert!(batch.len() == 1 || batch.len() * voxels(tiles.output) <= voxels_at_once);
                count += batch.len();
                for [d, h, w] in batch.iter().map(|tile| tile.spans) {
                    for (z, dw) in (d.start + d.first..).zip(&d.weights) {
                        for (y, hw) in (h.start + h.first..).zip(&h.weights) {
                            for (x, ww) in (w.start + w.first..).zip(&w.weights) {
                                sums[(z * image[1] + y) * image[2] + x] += f64::from(dw * hw * ww);
                            }
                        }
                    }
                }
            }
            prop_assert_eq!(count, tiles.count());
            for (place, sum) in sums.into_iter().enumerate() {
                let voxel = [place / image[2] / image[1], place / image[2] % image[1], place % image[2]];
                let inside = (0..3).all(|axis| {
                    (region.start[axis]..region.start[axis] + region.size[axis]).contains(&voxel[axis])
                });
                prop_assert!((sum - f64::from(inside)).abs() < 1e-5, "{voxel:?}: {sum}");
            }
        }
    }

    proptest! {
        #[test]
        fn tiles_stay_inside_and_overlap_by_what_is_asked(
            length in 1..300usize, tile in 1..90usize, overlap in 0.0..0.9,
        ) {
            let starts = starts(length, tile, overlap);
            prop_assert_eq!(starts[0], 0);
            prop_assert_eq!(starts[starts.len() - 1], length.saturating_sub(tile));
            for pair in starts.windows(2) {
                // Even spreading rounds to whole voxels; a step is at least one.
                let step = pair[1] - pair[0];
                prop_assert!(step >= 1 && step as f64 <= (tile as f64 * (1.0 - overlap)).max(1.0), "{starts:?}");
            }
        }
    }

    #[test]
    fn what_is_not_wanted_is_cut_off() {
        assert_eq!(
            side_by_side(7..14, 3, 6),
            [
                Span { start: 6, first: 1, weights: vec![1.0; 5] },
                Span { start: 12, first: 0, weights: vec![1.0; 2] }
            ]
        );
        assert_eq!(overlapping(3, 8, 0.5, 0..3), [Span { start: 0, first: 0, weights: vec![1.0; 3] }]);
    }
}
