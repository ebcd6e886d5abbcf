//! Labels that can be read but are probably not what was meant, and the settings that mend them.

use ssn_data::{CheckReport, DataConfig, Dataset, Severity, check};
use ssn_io::{Geometry, Voxels};

use crate::common::Folder;

const SIZE: [usize; 3] = [1, 4, 6];

/// Three pictures with a label map each.
fn folder(labels: impl Fn(&Folder, usize, &str)) -> Folder {
    let folder = Folder::new();
    for case in 0..3 {
        folder.image(&format!("images/case{case}.png"), [1, 1, 4, 6], case);
        labels(&folder, case, &format!("labels/case{case}.png"));
    }
    folder
}

fn report(dataset: &Dataset) -> CheckReport {
    check(dataset, None, &|_| {})
}

/// What a config of these lines says of a folder: warnings with what to do, and the dataset.
fn warnings(folder: &Folder, lines: &str) -> (Vec<String>, Dataset) {
    let text = format!("[data]\npath = {:?}\n{lines}\n", folder.path());
    let dataset = DataConfig::parse(&text).unwrap().open().unwrap();
    let found = report(&dataset).findings.into_iter().filter(|finding| finding.severity == Severity::Warning);
    (found.map(|finding| format!("{} → {}", finding.reason, finding.advice)).collect(), dataset)
}

/// The share of the foreground in the labels of the first rater.
fn marked(dataset: &Dataset) -> Vec<usize> {
    let count =
        |index| dataset.load_raw(index).unwrap().raters[0].iter().filter(|label| **label == 1).count();
    (0..dataset.entries.len()).map(count).collect()
}

#[test]
fn masks_that_mark_the_outside_are_suspected_and_can_be_inverted() {
    let folder = folder(|folder, case, name| folder.labels(name, SIZE, 20 + case, 255));
    let (found, dataset) = warnings(&folder, "");
    assert_eq!(
        found,
        [
            "88 % of all voxels are \"foreground\": are the masks inverted? → if so, set invert_labels = true in the \
          config; it goes together with label_threshold"
        ]
    );
    assert_eq!(marked(&dataset), [20, 21, 22]);
    let (found, dataset) = warnings(&folder, "invert_labels = true");
    assert_eq!((found, marked(&dataset)), (vec![], vec![4, 3, 2]));
    let (found, dataset) = warnings(&folder, "invert_labels = true\nlabel_threshold = 100");
    assert_eq!((found, marked(&dataset)), (vec![], vec![4, 3, 2]));
}

#[test]
fn inversion_needs_two_classes() {
    let folder = folder(|folder, case, name| folder.labels(name, SIZE, 5, case as u8 + 1));
    let text = format!("[data]\npath = {:?}\ninvert_labels = true\n", folder.path());
    let error = DataConfig::parse(&text).unwrap().open().unwrap_err().to_string();
    assert_eq!(error, "data.invert_labels is true for 4 classes, but it must be set for two classes alone");
}

#[test]
fn masks_of_many_values_are_cut_at_half() {
    let gray = |folder: &Folder, case: usize, name: &str| {
        let values = (0..24).map(|i| if i < 4 { 200 + i as u8 } else { (i * 5 + case * 2) as u8 });
        let values = values.map(|value| if value == 203 { 255 } else { value }).collect();
        folder.volume(name, Voxels::U8(values), [1, 1, 4, 6], Geometry::default());
    };
    let folder = folder(gray);
    let (found, dataset) = warnings(&folder, "");
    assert_eq!((found, dataset.classes.len(), marked(&dataset)), (vec![], 2, vec![4, 4, 4]));
    let notes: Vec<String> = report(&dataset).findings.into_iter().map(|finding| finding.reason).collect();
    assert!(notes.iter().any(|note| note.contains("values above 127 are foreground")), "{notes:?}");
    // What a user says is taken, and told to be odd.
    let names: Vec<String> = (0..34).map(|class| format!("\"c{class}\"")).collect();
    let (found, _) = warnings(&folder, &format!("label_threshold = 127\nclasses = {}", "[\"a\", \"b\"]"));
    assert_eq!(found, Vec::<String>::new());
    let (found, _) = warnings(&folder, &format!("classes = [{}]", names.join(", ")));
    assert!(found.iter().any(|warning| warning.contains("34 different values")), "{found:?}");
}

/// Some files mark with 1 and others with 255; where a file has both, they are two classes.
#[test]
fn masks_of_one_and_of_255_are_told_apart_from_noise() {
    let mixed = folder(|folder, case, name| folder.labels(name, SIZE, 5, if case == 0 { 255 } else { 1 }));
    for lines in ["", "label_threshold = 0"] {
        let (found, dataset) = warnings(&mixed, lines);
        assert_eq!((found, dataset.classes.len(), marked(&dataset)), (vec![], 2, vec![5, 5, 5]));
        let notes: Vec<String> =
            report(&dataset).findings.into_iter().map(|finding| finding.reason).collect();
        let told = "2 masks mark with 1 and 1 mask with 255: both are foreground (data.label_threshold = 0)";
        assert!(notes.contains(&told.to_owned()), "{notes:?}");
    }
    let both = folder(|folder, case, name| {
        let values = (0..24)
            .map(|i| {
                if i < 5 {
                    1
                } else if case == 0 && i < 9 {
                    255
                } else {
                    0
                }
            })
            .collect();
        folder.volume(name, Voxels::U8(values), [1, 1, 4, 6], Geometry::default());
    });
    let (found, _) = warnings(&both, "");
    assert_eq!(
        found,
        [
            "the labels have the values 0, 1 and 255, each taken for a class → if some masks mark with 1 and others \
          with 255, set label_threshold = 0 in the config"
        ]
    );
}

#[test]
fn a_class_that_never_occurs_is_told() {
    let folder = folder(|folder, _, name| folder.labels(name, SIZE, 5, 1));
    let (found, _) = warnings(&folder, "classes = [\"background\", \"core\", \"edema\"]");
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("the class \"edema\" occurs in no case"), "{found:?}");
}

#[test]
fn raters_have_their_names_and_missing_ones_are_named() {
    let folder = Folder::new();
    for case in 0..3 {
        folder.image(&format!("images/case{case}.png"), [1, 1, 4, 6], case);
        folder.labels(&format!("labels/case{case}_bob.png"), SIZE, 5, 1);
        if case != 1 {
            folder.labels(&format!("labels/case{case}_Alice.png"), SIZE, 4, 1);
        }
    }
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!(dataset.rater_names, ["alice", "bob"]);
    let case = dataset.load_raw(1).unwrap();
    assert_eq!(dataset.rater_names_of(&case, 1), ["bob"]);
    let notes: Vec<_> = report(&dataset).findings.into_iter().map(|note| (note.case, note.reason)).collect();
    assert_eq!(notes, [(Some("case1".to_owned()), "there are no labels of alice".to_owned())]);
}

#[test]
fn excluded_cases_leave_the_others_where_they_are() {
    let folder = Folder::new();
    for case in 0..10 {
        folder.image(&format!("images/case{case}.png"), [1, 1, 4, 6], case);
        folder.labels(&format!("labels/case{case}.png"), SIZE, 5, 1);
    }
    let split = folder.path().join("split.toml");
    let open = |exclude: &str| {
        let text =
            format!("[data]\npath = {:?}\n{exclude}\n[data.split]\nfile = {:?}\n", folder.path(), split);
        DataConfig::parse(&text).unwrap()
    };
    let config = open("");
    let all = config.open().unwrap();
    let before = config.split.parts(&all).unwrap();
    let config = open("exclude = [\"case3\"]");
    let fewer = config.open().unwrap();
    assert_eq!(fewer.entries.len(), 9);
    let mut expected = before.clone();
    expected.remove(3);
    assert_eq!(config.split.keep_parts(&fewer).unwrap(), expected);
    // The file that was written names all, so that the case can come back.
    assert_eq!(open("").split.parts(&all).unwrap(), before);
    assert_eq!(fewer.left_out(), vec![]);
    let error = open("exclude = [\"case33\"]").open().unwrap_err().to_string();
    assert!(
        error.contains("data.exclude names the case \"case33\", which is not there; did you mean \"case3\"?"),
        "{error}"
    );
}
