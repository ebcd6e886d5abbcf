//! `ssn-engine import`: the authors' weights become a model file, or a sentence.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ssn-nn/tests/golden").join(name)
}

fn import(folder: &Path, weights: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ssn-engine"))
        .arg("import")
        .arg(weights)
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn weights_become_a_model() {
    let folder = tempfile::tempdir().unwrap();
    let output = import(folder.path(), &golden("small_3d.pt"), &[]);
    let table = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(table.contains("network     DeepMedic, stochastic, rank 3\n"), "{table}");
    assert!(table.contains("parameters  9386\n") && table.contains("missing     0\n"), "{table}");
    assert!(folder.path().join("model.safetensors").is_file());

    let again = import(folder.path(), &golden("small_3d.pt"), &[]);
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("model.safetensors exists; choose another name with --out"));
    let json = import(folder.path(), &golden("small_3d.pt"), &["--overwrite", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((json["parameters"].as_i64(), json["model"]["classes"].as_i64()), (Some(9386), Some(3)));
}

#[test]
fn a_model_whose_channels_and_classes_have_names_predicts() {
    let folder = tempfile::tempdir().unwrap();
    let weights = golden("small_2d.pt");
    let unnamed = import(folder.path(), &weights, &["--out", "unnamed.safetensors"]);
    assert!(String::from_utf8(unnamed.stdout).unwrap().contains("--channels and --classes"));
    let wrong = import(folder.path(), &weights, &["--channels", "a,b", "--classes", "background,lesion"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        stderr(&wrong).contains("small_2d.pt: the network has channels: 1, but 2 are named: a, b"),
        "{}",
        stderr(&wrong)
    );
    let twice = import(folder.path(), &weights, &["--channels", "image", "--classes", "lesion,lesion"]);
    assert!(stderr(&twice).contains("needs a name of its own: lesion, lesion"), "{}", stderr(&twice));
    let normalization = "{ kind = \"z-score\", in_mask = false }";
    let names = ["--channels", "image", "--classes", "background, lesion", "--normalization", normalization];
    let named = import(folder.path(), &weights, &names);
    assert!(named.status.success(), "{}", stderr(&named));
    let table = String::from_utf8(named.stdout).unwrap();
    assert!(table.contains("classes     2 (background, lesion)\n"), "{table}");

    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/demo/images");
    let predict = |model: &str| {
        let mut predict = Command::new(env!("CARGO_BIN_EXE_ssn-engine"));
        predict.args(["predict", model]).arg(&images).args(["--out", "predictions", "--quiet"]);
        predict.current_dir(folder.path()).output().unwrap()
    };
    let refused = predict("unnamed.safetensors");
    assert!(stderr(&refused).contains("`ssn import` with --channels and --classes"), "{}", stderr(&refused));
    let predicted = predict("model.safetensors");
    assert!(predicted.status.success(), "{}", stderr(&predicted));
    let table = String::from_utf8(predicted.stdout).unwrap();
    assert!(table.contains("model       small_2d\n") && table.contains("predicted   12 cases"), "{table}");
}

#[test]
fn other_files_are_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("weights.pt");
    std::fs::write(&text, b"hello").unwrap();
    for (file, words) in [
        (text, "weights.pt: "),
        (folder.path().join("none.pt"), "No such file"),
        (golden("backbone.pt"), "backbone.pt: "),
    ] {
        let output = import(folder.path(), &file, &[]);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(65), "{message}");
        assert!(message.starts_with("error: ") && message.contains(words), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    assert!(!folder.path().join("model.safetensors").exists());
}
