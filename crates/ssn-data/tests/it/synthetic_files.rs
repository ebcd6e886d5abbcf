//! A synthetic set on disk is recognized and read back as the set itself.

use ssn_data::{Case, Cases, Dataset, Synthetic, SyntheticConfig, check};

#[test]
fn pictures_are_read_back() {
    let set = Synthetic::new(SyntheticConfig { cases: 4, ..SyntheticConfig::default() }).unwrap();
    let folder = tempfile::tempdir().unwrap();
    set.write(folder.path(), &|_| {}).unwrap();
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!((dataset.entries.len(), dataset.classes.len()), (4, 2));
    assert!(check(&dataset, None, &|_| {}).is_clean());
    for index in 0..4 {
        let (stored, made) = (dataset.load_raw(index).unwrap(), set.load(index).unwrap());
        assert_eq!((stored.id, stored.raters), (made.id, made.raters));
        let far = |(a, b): (&f32, &f32)| (a / 65535.0 - b.clamp(0.0, 1.0)).abs() > 1e-5;
        assert!(!stored.image.iter().zip(&made.image).any(far));
    }
}

#[test]
fn volumes_are_read_back_with_their_masks() {
    let config = SyntheticConfig { cases: 2, size: [16, 20, 24], classes: 3, ..SyntheticConfig::volume() };
    let set = Synthetic::new(config).unwrap();
    let folder = tempfile::tempdir().unwrap();
    set.write(folder.path(), &|_| {}).unwrap();
    let dataset = Dataset::open(folder.path()).unwrap();
    for index in 0..2 {
        let read = dataset.load_raw(index).unwrap();
        assert!(read.header.is_some());
        assert_eq!(Case { header: None, ..read }, set.load(index).unwrap());
    }
}
