//! The experiments of the repository are accepted, row by row.

use std::fs;
use std::path::{Path, PathBuf};

use super::file::Experiment;
use super::plan::ExperimentPlan;
use ssn_args::ExperimentConfig;

fn experiments() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    files
}

/// Every setting of every row is one that a training accepts, in full and in the reduced version. This includes the
/// heads `prob-unet` and `phiseg`.
#[test]
fn every_experiment_of_the_repository_is_accepted() {
    let files = experiments();
    assert!(files.len() >= 7, "{files:?}");
    let mut refused = vec![];
    for path in files {
        let full = ExperimentConfig::new(&path);
        let reduced = ExperimentConfig { reduced: true, ..full.clone() };
        let elsewhere = ExperimentConfig { data: Some("elsewhere".into()), ..full.clone() };
        for config in [full, reduced, elsewhere] {
            let (experiment, _) = Experiment::read(&path).unwrap();
            assert!(experiment.reduced.is_some(), "{} has no reduced version", path.display());
            if experiment.toy.is_some() {
                continue;
            }
            let rows = experiment.rows.len();
            match ExperimentPlan::new(&config, experiment) {
                Ok(plan) => assert_eq!(plan.rows.len(), rows),
                Err(failure) => refused.push(failure.to_string()),
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn rows_are_changed_by_the_reduced_version_and_the_command_line_in_this_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("e.toml");
    let text = r#"
        title = "t"
        folds = 5
        [config.data]
        path = "set"
        [config.data.split]
        file = "mine.toml"
        [[rows]]
        name = "a"
        seeds = [4, 5, 6]
        set = ["training.steps=1000", "loss.samples=4"]
        synthetic = ["training.steps=601"]
        [reduced]
        set = ["training.steps=600"]
        seeds = 2
        samples = 3
        folds = 2
    "#;
    fs::write(&path, text).unwrap();
    let plan = |config: &ExperimentConfig| {
        let (experiment, _) = Experiment::read(&path).unwrap();
        ExperimentPlan::new(config, experiment).unwrap()
    };
    let all = ExperimentConfig::new(&path);
    let full = plan(&ExperimentConfig { seeds: Some(9), ..all.clone() });
    assert_eq!((full.mark.samples, full.mark.folds, full.jobs(0).len()), (100, 5, 15));
    assert_eq!(full.rows[0].set, ["training.steps=1000", "loss.samples=4"]);
    for name in ["set", "mine.toml"] {
        let path = folder.path().join(name).display().to_string();
        assert!(full.config.contains(&path), "{}", full.config);
    }
    let smaller = ExperimentConfig { reduced: true, ..all.clone() };
    let (settings, data) = (vec!["training.steps=700".to_owned()], Some("/there".into()));
    let reduced = plan(&ExperimentConfig { settings, data, ..smaller.clone() });
    assert_eq!((reduced.mark.samples, reduced.mark.folds, reduced.jobs(0).len()), (3, 2, 4));
    assert_eq!(reduced.rows[0].set, ["loss.samples=4", "training.steps=700"]);
    assert!(reduced.config.contains("/there") && reduced.mark.images.is_none());
    let synthetic = plan(&smaller);
    assert_eq!(synthetic.rows[0].set, ["loss.samples=4", "training.steps=601"]);
    assert!(
        synthetic.mark.images.is_some() && !synthetic.config.contains("mine.toml"),
        "{}",
        synthetic.config
    );
    assert_ne!(synthetic.mark, reduced.mark);
    assert!(plan(&all).wanted(&["nothing".to_owned()]).unwrap_err().to_string().contains("the rows are: a"));
}

#[test]
fn a_whole_name_asks_for_one_row_and_a_part_of_it_for_all_that_have_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("e.toml");
    let row = |group: &str, name: &str| format!("[[rows]]\ngroup = \"{group}\"\nname = \"{name}\"\n");
    let rows = [row("one", "rank 1"), row("one", "Rank 10"), row("all", "rank 1"), row("all", "rank 15")];
    fs::write(&path, format!("title = \"t\"\n[config.data]\npath = \"set\"\n{}", rows.concat())).unwrap();
    let (experiment, _) = Experiment::read(&path).unwrap();
    let plan = ExperimentPlan::new(&ExperimentConfig::new(&path), experiment).unwrap();
    for (only, wanted) in [
        (&[][..], [true, true, true, true]),
        (&["RANK 1"], [true, false, true, false]),
        (&["one rank 1"], [true, false, false, false]),
        (&["rank 10", "all rank 1"], [false, true, true, false]),
        (&["rank"], [true, true, true, true]),
        (&["rank 1", "rank 15", "nothing"], [true, false, true, true]),
    ] {
        let only: Vec<String> = only.iter().map(|part| (*part).to_owned()).collect();
        assert_eq!(plan.wanted(&only).unwrap(), wanted, "{only:?}");
    }
}
