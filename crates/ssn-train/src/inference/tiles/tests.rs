use proptest::prelude::*;

use super::*;
use ssn_nn::backbones::{DeepMedicConfig, TorchScriptConfig, UNetConfig};

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
    assert_eq!((tiles.output(), tiles.input(), tiles.count()), ([60; 3], [140; 3], 3 * 4 * 2));
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
    assert_eq!((tiles.output(), tiles.count()), ([30, 15, 30], 2));
    assert_eq!(tiles.batches().flatten().next().unwrap().output().start, [45, 15, 0]);
    // Those of a padded network are where they are without a region.
    let whole = self::tiles([64; 3], &unet(), with_tile([16; 3]));
    let region = Region { start: [33, 1, 1], size: [1, 2, 2] };
    let some = Tiles::new([64; 3], region, &unet(), &with_tile([16; 3])).unwrap();
    assert_eq!((whole.count(), some.count()), (343, 2));
    let starts = |tiles: &Tiles| -> Vec<_> { tiles.batches().flatten().map(|t| t.output().start).collect() };
    assert!(starts(&some).iter().all(|start| starts(&whole).contains(start)));
}

#[test]
fn an_image_within_the_budget_is_one_tile() {
    let budget = |voxels_at_once| TileConfig { voxels_at_once, ..TileConfig::default() };
    let whole = tiles([7, 99, 63], &unet(), budget(8 * 100 * 64));
    assert_eq!((whole.output(), whole.input(), whole.count()), ([8, 100, 64], [8, 100, 64], 1));
    let two = tiles([7, 99, 63], &unet(), budget(8 * 100 * 64 - 1));
    assert_eq!(two.output(), [8, 52, 64]);
    // What cannot be divided any more is computed anyway.
    assert_eq!(tiles([7, 99, 63], &unet(), budget(1)).output(), [2, 4, 4]);
}

#[test]
fn foreign_networks_get_the_size_they_know() {
    assert_eq!(tiles([1, 100, 20], &foreign(), with_tile([1, 48, 48])).output(), [1, 48, 48]);
    assert_eq!(tiles([1, 100, 21], &foreign(), TileConfig::default()).output(), [1, 100, 21]);
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
    fn the_weights_of_every_voxel_sum_to_1(
        image in [1..20usize, 1..50, 1..50],
        tile in [1..20usize, 1..40, 1..40],
        overlap in 0.0..0.8,
        voxels_at_once in 1..100_000usize,
        by_budget in any::<bool>(),
        network in 0..3usize,
    ) {
        let config = TileConfig { tile: (!by_budget).then_some(tile), overlap, voxels_at_once };
        let backbone = [deepmedic(), unet(), foreign()][network].clone();
        let tiles = tiles(image, &backbone, config);
        let output = tiles.output().map(|n| n as i64);
        prop_assert_eq!(backbone.output_size(tiles.input().map(|n| n as i64)).unwrap(), output);
        let mut sums = vec![0.0; voxels(image)];
        let mut count = 0;
        for batch in tiles.batches() {
            prop_assert!(batch.len() == 1 || batch.len() * voxels(tiles.output()) <= voxels_at_once);
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
        prop_assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-5));
    }
}
