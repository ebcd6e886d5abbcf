//! A folder of predictions belongs to one model, knows what is finished, and tells what is in it.

use std::path::Path;

use ssn_eval::{About, ModelId, Output, Predictions};

use crate::common::{MODEL, file, sampled};

fn about() -> About {
    About {
        model: ModelId { sha256: MODEL.to_owned(), name: "run 7".to_owned() },
        seed: 3,
        dataset: "set".to_owned(),
        split: "test".to_owned(),
        images: None,
        labels: None,
        labels_only: false,
    }
}

fn refusal(root: &Path, about: About) -> String {
    let error = Predictions::create(root, about).unwrap_err().to_string();
    error.replace(&root.display().to_string(), "FOLDER")
}

#[test]
fn it_belongs_to_one_model_and_one_task() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("new/predictions");
    let made = Predictions::create(&root, about()).unwrap();
    assert_eq!(Predictions::open(&root).unwrap(), made);
    assert_eq!(Predictions::create(&root, about()).unwrap(), made, "it goes on");
    let other_model = ModelId { sha256: "77".to_owned(), name: "run 8".to_owned() };
    insta::assert_snapshot!(
        [
            refusal(&root, About { model: other_model, ..about() }),
            refusal(&root, About { split: "validation".to_owned(), ..about() }),
            refusal(&root, About { seed: 4, ..about() }),
            refusal(&root, About { dataset: "other".to_owned(), ..about() }),
            {
                std::fs::write(root.join("predictions.json"), "{").unwrap();
                refusal(&root, about())
            },
            {
                std::fs::remove_file(root.join("predictions.json")).unwrap();
                Predictions::open(&root)
                    .unwrap_err()
                    .to_string()
                    .replace(&root.display().to_string(), "FOLDER")
            },
        ]
        .join("\n")
    );
}

#[test]
fn finished_cases_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let predictions = Predictions::create(folder.path(), about()).unwrap();
    assert!(!predictions.is_finished("a", 100) && predictions.cases().unwrap().is_empty());
    for id in ["case10", "case2", "p 1/x"] {
        file(id).write(&predictions.distribution_path(id)).unwrap();
        assert!(predictions.is_finished(id, 100));
    }
    let ids: Vec<String> = predictions.cases().unwrap().iter().map(|case| case.id().to_owned()).collect();
    assert_eq!(ids, ["case2", "case10", "p 1/x"]);
    assert_eq!(predictions.read("p 1/x").unwrap(), file("p 1/x"));

    let drawn = sampled("drawn");
    drawn.write(&predictions.distribution_path("drawn")).unwrap();
    let count = drawn.sample_count() as u64;
    assert!(predictions.is_finished("drawn", count) && !predictions.is_finished("drawn", count + 1));
    std::fs::remove_file(predictions.distribution_path("drawn")).unwrap();

    let path = predictions.distribution_path("case2");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    assert!(!predictions.is_finished("case2", 100), "it is cut off");
    assert!(predictions.cases().unwrap_err().to_string().contains("case2.ssn.safetensors"));
    std::fs::copy(predictions.distribution_path("case10"), &path).unwrap();
    assert!(!predictions.is_finished("case2", 100), "it is of another case");
    assert!(predictions.cases().unwrap_err().to_string().contains("whose file is case10.ssn.safetensors"));

    let other = About { model: ModelId { sha256: "77".to_owned(), name: String::new() }, ..about() };
    std::fs::remove_file(folder.path().join("predictions.json")).unwrap();
    let predictions = Predictions::create(folder.path(), other).unwrap();
    assert!(!predictions.is_finished("case10", 100), "it is of another model");
    assert!(predictions.cases().unwrap_err().to_string().contains("the model \"run 7\" made it"));
}

#[test]
fn the_index_lists_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let predictions = Predictions::create(folder.path(), about()).unwrap();
    for id in ["case10", "case2", "a,b"] {
        file(id).write(&predictions.distribution_path(id)).unwrap();
    }
    std::fs::write(predictions.output_path("case2", Output::Prediction), b"").unwrap();
    std::fs::write(folder.path().join("a%2Cb_marginal_entropy.nrrd"), b"").unwrap();
    let index = std::fs::read_to_string(predictions.write_index().unwrap()).unwrap();
    insta::assert_snapshot!(index);
}
