//! Raters of several sources: `Experts/anna`, `Experts/ben`, `Crowd/worker-1`.

use ssn_data::parallel::unwatched;
use ssn_data::{Cases, DataConfig, Dataset, DatasetOverrides, Layout, check};

use crate::common::Folder;

/// Images of four cases, and masks below `above`: two experts of all cases, a crowd of three of two cases, a consensus.
fn experts_and_crowd(above: &str) -> Folder {
    let folder = Folder::new();
    for case in 1..=4 {
        folder.image(&format!("images/case{case}.png"), [1, 1, 20, 24], case);
        for (number, rater) in
            ["Experts/Person1_ToolA", "Experts/Person2_ToolB", "Consensus"].iter().enumerate()
        {
            folder.labels(&format!("{above}{rater}/case{case}.png"), [1, 20, 24], 9 * case + number, 255);
        }
        for worker in (1..=3).filter(|_| case <= 2) {
            let path = format!("{above}Crowd/worker-{worker}/case{case}.png");
            folder.labels(&path, [1, 20, 24], 20 * case + worker, 255);
        }
    }
    folder
}

fn ids(dataset: &Dataset) -> Vec<&str> {
    (0..dataset.len()).map(|case| dataset.id(case)).collect()
}

#[test]
fn the_source_with_the_most_files_is_proposed_and_others_are_named() {
    for above in ["", "annotations/", "labels/"] {
        let folder = experts_and_crowd(above);
        let dataset = Dataset::open(folder.path()).unwrap();
        assert_eq!(dataset.layout, Layout::RaterFolders);
        assert_eq!(dataset.rater_names, ["Person1_ToolA", "Person2_ToolB"]);
        assert_eq!(dataset.classes, ["background", "foreground"]);
        assert_eq!((ids(&dataset).len(), dataset.load(0).unwrap().raters.len()), (4, 2));
        let sources: Vec<String> = dataset.sources.iter().map(|source| source.describe()).collect();
        assert_eq!(sources, ["Experts (2 raters, 8 files)", "Crowd (3 raters, 6 files)"]);
        let report = check(&dataset, None, &unwatched);
        let findings: Vec<&str> = report.findings.iter().map(|finding| finding.reason.as_str()).collect();
        let note = "annotations are those of Experts (2 raters, 8 files); not used: Crowd (3 raters, 6 files) \
                    (data.annotations chooses)";
        assert!(findings.contains(&note), "{findings:?}");
        // The consensus is no rater, and is named; files of the crowd are not left out unnoticed, but listed above.
        let left_out: Vec<String> = dataset.left_out().into_iter().map(|finding| finding.reason).collect();
        assert!(left_out.len() == 1 && left_out[0].contains("Consensus"), "{left_out:?}");
    }
}

#[test]
fn a_config_chooses_the_source() {
    let folder = experts_and_crowd("");
    let config = |annotations: &str| {
        let text = format!("[data]\npath = {:?}\nannotations = {annotations:?}", folder.path());
        DataConfig::parse(&text).unwrap()
    };
    let dataset = config("Crowd").open().unwrap();
    assert_eq!(dataset.rater_names, ["worker-1", "worker-2", "worker-3"]);
    assert_eq!(ids(&dataset), ["case1", "case2"]);
    assert!(
        dataset.findings[0].reason.contains("2 images without labels from there"),
        "{:?}",
        dataset.findings
    );
    assert_eq!(config("Crowd").label_reading().annotations.as_deref(), Some("Crowd"));
    let error = config("crowds").open().unwrap_err().to_string();
    assert!(error.contains("data.annotations") && error.contains("one of Experts, Crowd"), "{error}");
    // All images are there for prediction, whatever the source.
    let known = DatasetOverrides {
        classes: Some(dataset.classes.clone()),
        annotations: Some("Crowd".into()),
        ..DatasetOverrides::default()
    };
    let images = Dataset::of_images_with(&[folder.path().to_owned()], &dataset.channels, &known).unwrap();
    assert_eq!((images.len(), images.rater_count(0), images.rater_count(3)), (4, 3, 0));
    let one = Folder::new();
    one.image("images/a.png", [1, 1, 20, 24], 1);
    one.labels("ann/a.png", [1, 20, 24], 9, 1);
    one.labels("ben/a.png", [1, 20, 24], 8, 1);
    let text = format!("[data]\npath = {:?}\nannotations = \"ann\"", one.path());
    let error = DataConfig::parse(&text).unwrap().open().unwrap_err().to_string();
    assert!(error.contains("a single folder of raters"), "{error}");
}

/// Raters and classes of a set whose label files lie in some folders.
fn raters_of(folders: &[&str]) -> (Vec<String>, usize, Vec<String>) {
    let folder = Folder::new();
    for case in 1..=3 {
        folder.image(&format!("images/case{case}.png"), [1, 1, 20, 24], case);
        for (number, rater) in folders.iter().enumerate() {
            folder.labels(&format!("{rater}/case{case}.png"), [1, 20, 24], 90 - 20 * number + case, 255);
        }
    }
    let dataset = Dataset::open(folder.path()).unwrap();
    let sources = dataset.sources.iter().map(|source| source.name.clone()).collect();
    (dataset.rater_names, dataset.classes.len(), sources)
}

#[test]
fn sources_are_told_from_structures() {
    type Expected<'a> = (&'a [&'a str], &'a [&'a str], usize, &'a [&'a str]);
    let cases: [Expected<'_>; 10] = [
        // Structures of raters, and raters of structures.
        (&["alice/cup", "alice/disc", "bob/cup", "bob/disc"], &["alice", "bob"], 3, &[]),
        (&["cup/rater1", "cup/rater2", "disc/rater1", "disc/rater2"], &["rater1", "rater2"], 3, &[]),
        (&["expert1/cup", "expert1/disc", "expert2/cup", "expert2/disc"], &["expert1", "expert2"], 3, &[]),
        (&["Experts/cup", "Experts/disc", "Students/cup", "Students/disc"], &["Experts", "Students"], 3, &[]),
        (&["raters/a/cup", "raters/a/disc", "raters/b/cup", "raters/b/disc"], &["a", "b"], 3, &[]),
        // Sources with raters of the same names, or with other names, or with one rater.
        (
            &["Experts/rater1", "Experts/rater2", "Students/rater1"],
            &["rater1", "rater2"],
            2,
            &["Experts", "Students"],
        ),
        (&["north/anna", "north/ben", "south/carl"], &["anna", "ben"], 2, &["north", "south"]),
        (&["Crowd/worker-1", "Crowd/worker-2", "anna"], &["worker-1", "worker-2"], 2, &["Crowd", "."]),
        // One source alone has no name.
        (&["Experts/anna", "Experts/ben", "consensus"], &["anna", "ben"], 2, &[]),
        (&["annotations/Experts/anna", "annotations/Experts/ben"], &["anna", "ben"], 2, &[]),
    ];
    for (folders, raters, classes, sources) in cases {
        let found = raters_of(folders);
        let expected = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(found, (expected(raters), classes, expected(sources)), "{folders:?}");
    }
}
