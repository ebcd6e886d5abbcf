//! What a user sees of the verbs about datasets: `init`, `check` and `prepare`.

use tempfile::TempDir;

use crate::common::{picture, ssn, told};

/// A folder with a small dataset `set/`: two pictures with two raters each.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for id in ["case1", "case2"] {
        picture(&folder.path().join(format!("set/images/{id}.png")), |i| (i * 11 % 200) as u8);
        picture(&folder.path().join(format!("set/labels/{id}_0.png")), |i| u8::from(i < 20));
        picture(&folder.path().join(format!("set/labels/{id}_1.png")), |i| u8::from(i < 10));
    }
    folder
}

#[test]
fn help() {
    let folder = folder();
    for verb in ["init", "check", "prepare"] {
        insta::assert_snapshot!(format!("help_{verb}"), told(&ssn(&folder, &[verb, "--help"])));
    }
}

#[test]
fn init_then_check() {
    let folder = folder();
    insta::assert_snapshot!("init", told(&ssn(&folder, &["init", "set"])));
    insta::assert_snapshot!("config", std::fs::read_to_string(folder.path().join("ssn.toml")).unwrap());
    insta::assert_snapshot!("init_again", told(&ssn(&folder, &["init", "set"])));
    assert!(ssn(&folder, &["init", "set", "--overwrite", "--json"]).status.success());
    insta::assert_snapshot!("check", told(&ssn(&folder, &["check", "ssn.toml"])));
    let json = ssn(&folder, &["check", "set", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&report["layout"], &report["errors"]), (&"folder-pair".into(), &0.into()));
    assert_eq!(report["statistics"]["agreement"]["expert_diversity"], 0.25);
}

/// Pictures beside a folder per rater, with the oddities of such sets: smooth edges, a rater who
/// lacks a case, a file without an image, and a consensus.
#[test]
fn a_folder_per_rater() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: String| folder.path().join("set").join(name);
    for case in 1..=6u8 {
        picture(&path(format!("images/case{case}.png")), |i| (i * 11 % 200) as u8);
        let edge = |first: usize| {
            move |i: usize| if i == first { 60 + 20 * case } else { 255 * u8::from(i < first) }
        };
        picture(&path(format!("alice/Seg_Case{case}.png")), edge(20));
        picture(&path(format!("Bob/case{case}_gt.png")), edge(25 + usize::from(case)));
        picture(&path(format!("consensus/case{case}.png")), edge(22));
    }
    std::fs::remove_file(path("Bob/case2_gt.png".to_owned())).unwrap();
    picture(&path("alice/Seg_Case7.png".to_owned()), |_| 0);
    insta::assert_snapshot!("rater_folders_init", told(&ssn(&folder, &["init", "set"])));
    let config = std::fs::read_to_string(folder.path().join("ssn.toml")).unwrap();
    assert!(
        config.contains("layout = \"rater-folders\"") && config.contains("label_threshold = 127"),
        "{config}"
    );
    insta::assert_snapshot!("rater_folders_check", told(&ssn(&folder, &["check", "set"])));
}

#[test]
fn problems_and_other_folders() {
    let folder = folder();
    std::fs::write(folder.path().join("set/images/case2.png"), b"cut").unwrap();
    insta::assert_snapshot!("check_problems", told(&ssn(&folder, &["check", "set"])));
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    insta::assert_snapshot!("check_empty", told(&ssn(&folder, &["check", "empty"])));
    std::fs::write(folder.path().join("bad.toml"), "[data]\npath = \"set\"\nclases = []\n").unwrap();
    insta::assert_snapshot!("check_bad_config", told(&ssn(&folder, &["check", "bad.toml"])));
    std::fs::write(folder.path().join("no.toml"), "[data]\npath = \"absent\"\n").unwrap();
    insta::assert_snapshot!("check_absent", told(&ssn(&folder, &["check", "no.toml"])));
}

#[test]
fn a_cache_is_made_and_checked() {
    let folder = folder();
    insta::assert_snapshot!("prepare_lidc", told(&ssn(&folder, &["prepare", "lidc", "set"])));
    insta::assert_snapshot!("prepare_again", told(&ssn(&folder, &["prepare", "lidc", "set"])));
    let wrong = ssn(&folder, &["prepare", "lidc", "set", "--out", "x.bin"]);
    insta::assert_snapshot!("prepare_name", told(&wrong));
    assert!(ssn(&folder, &["check", "lidc.cache.safetensors"]).status.success());
    insta::assert_snapshot!("prepare_no_brats", told(&ssn(&folder, &["prepare", "brats", "set"])));
}

/// Two rows of one id, and a split of other settings: the table comes all the same.
#[test]
fn a_split_that_cannot_be_used_does_not_stop_the_check() {
    let folder = folder();
    let row = |id: &str, case: &str| format!("{id},set/images/{case}.png,set/labels/{case}_0.png\n");
    let text = format!("id,mri,seg\n{}{}{}", row("a", "case1"), row("a", "case1"), row("b", "case2"));
    std::fs::write(folder.path().join("index.csv"), text).unwrap();
    let config = |split: &str| {
        let text = format!("[data]\npath = \"index.csv\"\nsplit = {split}\n");
        std::fs::write(folder.path().join("ssn.toml"), text).unwrap();
    };
    config("{}");
    insta::assert_snapshot!("check_duplicates", told(&ssn(&folder, &["check", "ssn.toml"])));
    let text = format!("id,mri,seg\n{}{}", row("a", "case1"), row("b", "case2"));
    std::fs::write(folder.path().join("index.csv"), text).unwrap();
    let split = "method = \"60/20/20 by group\"\nseed = 0\ntrain = [\"a\"]\ntest = [\"b\"]\n";
    std::fs::write(folder.path().join("split.toml"), split).unwrap();
    assert!(ssn(&folder, &["check", "ssn.toml"]).status.success());
    config("{ seed = 3 }");
    insta::assert_snapshot!("check_other_split", told(&ssn(&folder, &["check", "ssn.toml"])));
    std::fs::write(folder.path().join("split.toml"), split.replace("\"b\"", "\"c\"")).unwrap();
    insta::assert_snapshot!("check_stale_split", told(&ssn(&folder, &["check", "ssn.toml"])));
}
