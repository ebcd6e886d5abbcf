//! The config that `ssn init` writes is understood by those who read it, also with all its comments taken off.

use serde::Deserialize;
use ssn_data::config::template::{batch_sections, data_sections, suggest_normalization};
use ssn_data::{AugmentConfig, AugmentPreset, BatchConfig, DataConfig, Dataset};

use crate::common::Folder;

#[derive(Deserialize)]
struct Sections {
    batches: BatchConfig,
    augmentation: AugmentConfig,
}

/// A line `# key = value` or `# [section]` without its mark.
fn uncommented(line: &str) -> &str {
    let is_setting = |text: &str| {
        let word = |c: char| c.is_ascii_lowercase() || c == '_' || c == '.';
        text.starts_with('[') || text.split_once(" = ").is_some_and(|(key, _)| key.chars().all(word))
    };
    line.strip_prefix("# ").filter(|text| is_setting(text)).unwrap_or(line)
}

fn check(folder: &Folder, preset: AugmentPreset) {
    let dataset = Dataset::open(folder.path()).unwrap();
    let first = dataset.load_raw(0).unwrap();
    let scale = suggest_normalization(&dataset, &first);
    let text = data_sections(&dataset, folder.path(), &first, scale) + &batch_sections(&dataset, &first);
    DataConfig::parse(&text).unwrap();
    let whole: String = text.lines().map(|line| uncommented(line).to_owned() + "\n").collect();
    assert!(!whole.contains("# ["), "{whole}");
    DataConfig::parse(&whole).unwrap_or_else(|error| panic!("{error}\n{whole}"));
    let sections: Sections = toml::from_str(&whole).unwrap_or_else(|error| panic!("{error}\n{whole}"));
    sections.batches.patch.check().unwrap();
    assert_eq!(sections.augmentation, preset.config());
}

#[test]
fn every_section_of_the_template_is_understood() {
    let pictures = Folder::new();
    pictures.image("images/a.png", [1, 1, 3, 4], 1);
    pictures.labels("labels/a_0.png", [1, 3, 4], 2, 255);
    pictures.labels("labels/a_1.png", [1, 3, 4], 2, 255);
    check(&pictures, AugmentPreset::Lidc);
    let volumes = Folder::new();
    for part in ["train", "test"] {
        volumes.image(&format!("{part}/a/t1.nii.gz"), [1, 2, 3, 4], 1);
        volumes.labels(&format!("{part}/a/seg.nii.gz"), [2, 3, 4], 5, 2);
        volumes.labels(&format!("{part}/a/mask.nii.gz"), [2, 3, 4], 9, 1);
    }
    check(&volumes, AugmentPreset::Brats);
}

#[test]
fn a_preset_can_be_extended() {
    let text = "preset = \"lidc-as-coded\"\n[[steps]]\nkind = \"rot90\"\nprobability = 0.5\n";
    let config: AugmentConfig = toml::from_str(text).unwrap();
    assert_eq!(config.labels, AugmentPreset::LidcAsCoded.config().labels);
    assert_eq!(config.steps.len(), 2);
    let nearest: AugmentConfig = toml::from_str("preset = \"lidc-as-coded\"\nlabels = \"nearest\"").unwrap();
    assert_ne!(nearest.labels, config.labels);
    assert!(toml::from_str::<AugmentConfig>("presets = \"lidc\"").is_err());
    // What is written out is read back the same.
    assert_eq!(toml::from_str::<AugmentConfig>(&toml::to_string(&config).unwrap()).unwrap(), config);
}

#[test]
fn keys_are_in_snake_case() {
    let text = "batch_size = 2\npatch.target_size = [1, 2, 2]\n";
    let config: BatchConfig = toml::from_str(text).unwrap();
    assert_eq!(config.patch.target_size, Some([1, 2, 2]));
    assert!(toml::from_str::<BatchConfig>("batch-size = 2").is_err());
}
