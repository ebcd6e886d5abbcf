//! Preparation keeps what it should and changes what it says.

use std::path::{Path, PathBuf};

use ssn_core::{Control, Progress};
use ssn_data::parallel::unwatched;
use ssn_data::prepare::{BratsOptions, BratsSummary, lidc};
use ssn_data::{Cases, Dataset, Error, Layout, Shard, Split};
use ssn_io::{Geometry, Voxels};

use crate::common::{Folder, dict, slice};

fn brats(
    dataset: &Dataset,
    out: &Path,
    seed: u64,
    shard: Shard,
    overwrite: bool,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<BratsSummary, Error> {
    let options = BratsOptions { seed, shard, overwrite, config_head: "" };
    let report = |event: Progress<'_>| {
        if let Progress::Done { done, .. } = event {
            progress(done);
        }
    };
    ssn_data::prepare::brats(dataset, out, &options, Control::watched(&report))
}

#[test]
fn a_cache_holds_the_same_cases() {
    let folder = Folder::new();
    let odd = |value: f32| {
        use crate::common::{array, list, text};
        let image = array(Voxels::F32(vec![value; 24]), &[4, 6]);
        let mask = |label| array(Voxels::U8(vec![label; 24]), &[4, 6]);
        dict(vec![("image", image), ("masks", list(vec![mask(2), mask(0)])), ("series_uid", text("9"))])
    };
    for (name, second) in [("bytes", slice("1.3", 2)), ("floats", odd(0.123))] {
        folder.pickle(&format!("{name}/train.pickle"), &dict(vec![("a", slice("1.2", 5)), ("b", second)]));
        folder.pickle(&format!("{name}/test.pickle.gz"), &dict(vec![("c", slice("1.4", 1))]));
        let original = Dataset::open(&folder.path().join(name)).unwrap();
        let out = folder.path().join(format!("{name}.cache.safetensors"));
        assert_eq!(lidc(&original, &out, Control::default()).unwrap().cases, 3);
        let cached = Dataset::open(&out).unwrap();
        assert_eq!((cached.layout, &cached.classes), (Layout::Cache, &original.classes));
        for index in 0..3 {
            assert_eq!(cached.load(index).unwrap(), original.load(index).unwrap(), "{name}");
            let facts = |set: &Dataset| (set.entries[index].group.clone(), set.entries[index].split);
            assert_eq!(facts(&cached), facts(&original));
        }
    }
}

#[test]
fn every_flipped_bit_of_a_cache_is_found() {
    let folder = Folder::new();
    folder.pickle("set/train.pickle", &dict(vec![("a", slice("1.2", 5)), ("b", slice("1.3", 2))]));
    let out = folder.path().join("x.cache.safetensors");
    lidc(&Dataset::open(&folder.path().join("set")).unwrap(), &out, Control::default()).unwrap();
    let whole = std::fs::read(&out).unwrap();
    Dataset::open(&out).unwrap();
    for place in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[place] ^= 1 << (place % 8);
        std::fs::write(&out, damaged).unwrap();
        assert!(Dataset::open(&out).is_err(), "byte {place}");
    }
}

#[test]
fn caches_that_cannot_be_made_or_read() {
    let folder = Folder::new();
    folder.image("pair/images/a.png", [1, 1, 3, 4], 1);
    folder.image("pair/images/b.png", [1, 1, 4, 4], 1);
    folder.labels("pair/labels/a.png", [1, 3, 4], 2, 1);
    folder.labels("pair/labels/b.png", [1, 4, 4], 2, 1);
    let out = folder.path().join("x.cache.safetensors");
    let mixed = Dataset::open(&folder.path().join("pair")).unwrap();
    let mut said = vec![lidc(&mixed, &out, Control::default()).unwrap_err().to_string()];
    assert!(!out.exists());
    std::fs::write(&out, b"nonsense").unwrap();
    said.push(Dataset::open(&out).unwrap_err().to_string());
    insta::assert_snapshot!(folder.anonymous(&said.join("\n")));
}

#[test]
fn ids_that_are_no_folders_of_their_own_are_refused() {
    let folder = Folder::new();
    folder.image("t1.nii.gz", [1, 2, 3, 4], 1);
    folder.labels("seg.nii.gz", [2, 3, 4], 5, 1);
    let row = |id: &str| format!("{id},t1.nii.gz,seg.nii.gz\n");
    let said = [row("../../x"), row("a").repeat(2)].map(|rows| {
        folder.text("index.csv", &format!("id,t1,seg\n{rows}"));
        let (dataset, out) = (Dataset::open(folder.path()).unwrap(), folder.path().join("out"));
        brats(&dataset, &out, 0, Shard::WHOLE, false, &unwatched).unwrap_err().to_string()
    });
    insta::assert_snapshot!(said.join("\n"));
}

/// Three cases of 10³, and an empty folder for what is made of them: T1 is above 0 in the first 900 voxels.
fn small_brats(labels: [u8; 4]) -> (Folder, Dataset, PathBuf) {
    let folder = Folder::new();
    let shape = [1, 10, 10, 10];
    for id in ["Brats17_A_1", "Brats17_B_1", "Brats17_C_1"] {
        let file = |name: &str| format!("in/{id}/{id}_{name}.nii.gz");
        let put = |name: &str, voxels| folder.volume(&file(name), voxels, shape, Geometry::default());
        put("t1", Voxels::I16((0..1000).map(|i| if i < 900 { 100 + i as i16 } else { 0 }).collect()));
        put("flair", Voxels::I16((0..1000).map(|i| (i * 7 % 311) as i16).collect()));
        put("seg", Voxels::U8((0..1000).map(|i| if i < 40 { labels[i / 10] } else { 0 }).collect()));
    }
    let (dataset, out) = (Dataset::open(&folder.path().join("in")).unwrap(), folder.path().join("out"));
    std::fs::create_dir(&out).unwrap();
    (folder, dataset, out)
}

#[test]
fn brats_is_prepared_and_goes_on() {
    let (_folder, dataset, out) = small_brats([1, 2, 4, 0]);
    let made = brats(&dataset, &out, 5, Shard::WHOLE, false, &unwatched).unwrap();
    assert_eq!((made.prepared, made.kept, made.parts), (3, 0, [1, 1, 1]));
    std::fs::remove_file(out.join("Brats17_B_1/seg.nii.gz")).unwrap();
    let made = brats(&dataset, &out, 5, Shard::WHOLE, false, &unwatched).unwrap();
    assert_eq!((made.prepared, made.kept), (1, 2));
    assert_eq!(brats(&dataset, &out, 5, Shard::WHOLE, true, &unwatched).unwrap().prepared, 3);

    let ready = Dataset::open(&out).unwrap();
    assert_eq!(
        (ready.layout, ready.channels.join(" "), ready.classes.len()),
        (Layout::Csv, "flair t1".into(), 4)
    );
    assert!(Split::ALL.iter().all(|split| ready.entries.iter().any(|entry| entry.split == Some(*split))));
    let case = ready.load(0).unwrap();
    assert_eq!([5, 15, 25, 35].map(|v| case.raters[0][v]), [1, 2, 3, 0]);
    assert_eq!(case.mask.unwrap().iter().filter(|m| **m == 1).count(), 900);
    // T1 in the mask is 100 … 999, its percentiles are 144.95 and 954.05, and the mean of all is 494.55: what
    // counts is 495 … 954, with mean 724.5 and variance (460² − 1) / 12.
    let expected = (100.0 - 724.5) / ((460.0f64 * 460.0 - 1.0) / 12.0).sqrt();
    assert!((f64::from(case.image[1000]) - expected).abs() < 1e-5, "{} {expected}", case.image[1000]);
}

#[test]
fn labels_of_other_years_and_other_datasets() {
    let prepared = |labels: [u8; 4]| {
        let (folder, dataset, out) = small_brats(labels);
        brats(&dataset, &out, 0, Shard::WHOLE, false, &unwatched)
            .map_err(|error| folder.anonymous(&error.to_string()))?;
        let case = Dataset::open(&out).unwrap().load(0).unwrap();
        Ok::<_, String>([5, 15, 25, 35].map(|v| case.raters[0][v]))
    };
    assert_eq!(prepared([1, 2, 3, 4]).unwrap(), [1, 2, 1, 3], "2015: non-enhancing tumour joins necrosis");
    assert_eq!(prepared([1, 2, 3, 0]).unwrap(), [1, 2, 3, 0], "2023: enhancing tumour is 3");
    insta::assert_snapshot!(prepared([1, 2, 9, 0]).unwrap_err());
}

/// The split of an earlier run counts only for the same seed.
#[test]
fn a_split_of_another_seed_is_refused() {
    let (folder, dataset, out) = small_brats([1, 2, 4, 0]);
    brats(&dataset, &out, 5, Shard::WHOLE, false, &unwatched).unwrap();
    let said = brats(&dataset, &out, 6, Shard::WHOLE, false, &unwatched).unwrap_err().to_string();
    insta::assert_snapshot!(folder.anonymous(&said));
}

/// What is prepared is not normalized once more.
#[test]
fn a_prepared_dataset_has_its_own_config() {
    let (_folder, dataset, out) = small_brats([1, 2, 4, 0]);
    brats(&dataset, &out, 5, Shard::WHOLE, false, &unwatched).unwrap();
    let config = ssn_data::DataConfig::read(&out.join("ssn.toml")).unwrap();
    assert_eq!(config.normalization, ssn_data::Normalization::None);
    let ready = config.open().unwrap();
    assert_eq!(ready.classes, ssn_data::prepare::BRATS_CLASSES);
    assert_eq!(config.split.parts(&ready).unwrap().len(), 3);
    let first = ready.load_raw(0).unwrap();
    let suggested = ssn_data::config::template::suggest_normalization(&ready, &first);
    assert_eq!(suggested, ssn_data::Normalization::None);
    let raw = dataset.load_raw(0).unwrap();
    assert_ne!(
        ssn_data::config::template::suggest_normalization(&dataset, &raw),
        ssn_data::Normalization::None
    );
}

#[test]
fn brats_waits_for_all_shards() {
    let (_folder, dataset, out) = small_brats([1, 2, 4, 0]);
    let shard = |number: usize| {
        let made = brats(&dataset, &out, 5, Shard::new(number, 2).unwrap(), false, &unwatched).unwrap();
        (made.prepared, made.kept, made.waiting.map(|waiting| waiting.done))
    };
    assert_eq!(shard(1), (2, 0, Some(1)));
    assert_eq!(shard(1), (0, 2, Some(1)));
    assert!(!out.join("ssn.toml").exists() && !out.join("train.csv").exists());
    assert_eq!(shard(2), (1, 0, None));
    assert!(out.join("ssn.toml").exists() && out.join("train.csv").exists());
}
