//! `ssn evaluate` on files that other tools wrote.

use std::path::Path;

use ssn_core::metrics::ged;
use ssn_core::{BitPlanes, LabelMap};
use ssn_io::{Geometry, Image, Limits, Segment, Voxels, read, write, write_labels};
use tempfile::TempDir;

use crate::common::{picture, ssn, told};

const CASES: [&str; 3] = ["case1", "case2", "case10"];
const SAMPLES: usize = 4;

/// Three raters of three cases without images, and four samples of each, as PNG with 0 and 255.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (number, case) in CASES.into_iter().enumerate() {
        for (rater, name) in ["alice", "bob", "carol"].into_iter().enumerate() {
            let path = folder.path().join(format!("raters/{name}/{case}.png"));
            picture(&path, |i| if i < 16 + 4 * rater + number { 255 } else { 0 });
        }
        for sample in 0..SAMPLES {
            let path = folder.path().join(format!("out/{case}_{sample}.png"));
            picture(&path, |i| if (3 * sample..20 + 2 * number).contains(&i) { 255 } else { 0 });
        }
    }
    folder
}

fn planes(folder: &TempDir, names: impl Iterator<Item = String>) -> Vec<BitPlanes> {
    let one = |name: String| {
        let labels = read(&folder.path().join(name), &Limits::default()).unwrap().to_labels().unwrap().data;
        BitPlanes::new(&LabelMap::new(labels.into_iter().map(|label| label.min(1)).collect(), 2).unwrap())
    };
    names.map(one).collect()
}

/// A column of the table of cases.
fn column(folder: &TempDir, scores: &str, key: &str) -> Vec<f64> {
    let csv = std::fs::read_to_string(folder.path().join(scores).join("evaluation/cases.csv")).unwrap();
    let at = csv
        .lines()
        .next()
        .unwrap()
        .split(',')
        .position(|name| name == key)
        .unwrap_or_else(|| panic!("{key}: {csv}"));
    csv.lines().skip(1).map(|row| row.split(',').nth(at).unwrap().parse().unwrap()).collect()
}

fn done(folder: &TempDir, arguments: &[&str]) -> String {
    let output = ssn(folder, arguments);
    assert!(output.status.success(), "{}", told(&output));
    told(&output)
}

#[test]
fn samples_in_every_form_have_the_same_scores() {
    let folder = folder();
    let text = done(
        &folder,
        &["evaluate", "--samples", "out", "--raters", "raters", "--scores", "all", "--bootstrap"],
    );
    insta::assert_snapshot!(text.replace(folder.path().to_str().unwrap(), "FOLDER"));
    let found = column(&folder, "scores", "ged2_4");
    for (number, case) in CASES.into_iter().enumerate() {
        let samples = planes(&folder, (0..SAMPLES).map(|i| format!("out/{case}_{i}.png")));
        let raters =
            planes(&folder, ["alice", "bob", "carol"].iter().map(|name| format!("raters/{name}/{case}.png")));
        let expected = ged(&samples, &raters).unwrap().squared;
        assert!((found[number] - expected).abs() < 1e-12, "{case}");
    }
    // The same files in other forms.
    let place = |name: String| folder.path().join(name);
    for case in CASES {
        let mut stacked = vec![];
        for sample in 0..SAMPLES {
            let from = place(format!("out/{case}_{sample}.png"));
            for to in [format!("by_sample/s{sample}/{case}.png"), format!("by_case/{case}/{sample}.png")] {
                std::fs::create_dir_all(place(to.clone()).parent().unwrap()).unwrap();
                std::fs::copy(&from, place(to)).unwrap();
            }
            stacked.extend(
                read(&from, &Limits::default()).unwrap().to_labels().unwrap().data.iter().map(|x| x.min(&1)),
            );
        }
        let shape = [SAMPLES, 1, 8, 8];
        let image = Image::new(Voxels::U8(stacked), shape, Geometry::default(), &Limits::default()).unwrap();
        std::fs::create_dir_all(place("stacked".to_owned())).unwrap();
        write(&place(format!("stacked/{case}.nii.gz")), &image).unwrap();
    }
    for (number, samples) in
        ["by_sample", "by_case", "stacked", "by_*/s{sample}/{case}.png"].iter().enumerate()
    {
        let scores = format!("scores{number}");
        done(&folder, &["evaluate", &scores, "--samples", samples, "--raters", "raters", "-q"]);
        assert_eq!(column(&folder, &scores, "ged2_4"), found, "{samples}");
    }
    for verb in ["report", "view"] {
        let more: &[&str] = if verb == "view" { &["--export", "page.html"] } else { &["--out", "report"] };
        done(&folder, &[&[verb, "scores"], more].concat());
    }
}

#[test]
fn probabilities_and_predictions_are_enough() {
    let folder = folder();
    for (number, case) in CASES.into_iter().enumerate() {
        // Probabilities of the foreground alone, and label maps that are not their most probable labels.
        let soft = (0..64).map(|i| (64 - i) as f32 / 64.0).collect();
        let image =
            Image::new(Voxels::F32(soft), [1, 1, 8, 8], Geometry::default(), &Limits::default()).unwrap();
        std::fs::create_dir_all(folder.path().join("soft")).unwrap();
        write(&folder.path().join(format!("soft/{case}.nii.gz")), &image).unwrap();
        picture(&folder.path().join(format!("hard/{case}_seg.png")), |i| u8::from(i < 16 + number));
    }
    done(&folder, &["evaluate", "--probabilities", "soft", "--raters", "raters", "-q"]);
    assert!(column(&folder, "scores", "brier").iter().all(|brier| *brier > 0.1));
    assert_eq!(column(&folder, "scores", "sample_diversity"), [0.0; 3]);
    let of_soft = column(&folder, "scores", "dsc foreground");
    done(
        &folder,
        &["evaluate", "both", "--probabilities", "soft", "--predictions", "hard", "--raters", "raters", "-q"],
    );
    assert_ne!(column(&folder, "both", "dsc foreground"), of_soft);
    assert_eq!(column(&folder, "both", "brier"), column(&folder, "scores", "brier"));
    let text = done(&folder, &["evaluate", "labels", "--predictions", "hard", "--raters", "raters", "-q"]);
    assert!(text.contains("One label map per case has no probabilities"), "{text}");
    assert!(!text.contains("Brier score  "), "{text}");
    assert_eq!(column(&folder, "labels", "dsc foreground"), column(&folder, "both", "dsc foreground"));
}

#[test]
fn labels_are_read_by_the_values_of_the_raters() {
    let folder = tempfile::tempdir().unwrap();
    // Classes are stored as 0, 2 and 4; a sample without the last of them could also be numbers of classes.
    for case in ["a", "b"] {
        picture(&folder.path().join(format!("raters/{case}_0.png")), |i| {
            if i < 8 { 2 } else { 4 * u8::from(i < 16) }
        });
        picture(&folder.path().join(format!("raters/{case}_1.png")), |i| 2 * u8::from(i < 8));
        picture(&folder.path().join(format!("out/{case}_0.png")), |i| 2 * u8::from(i < 8));
        picture(&folder.path().join(format!("out/{case}_1.png")), |i| {
            if i < 8 { 2 } else { 4 * u8::from(i < 16) }
        });
    }
    done(&folder, &["evaluate", "--samples", "out", "--raters", "raters", "-q"]);
    assert_eq!(column(&folder, "scores", "ged2_2"), [0.0; 2], "samples and raters are the same");
    // Numbers of classes beside stored values are refused.
    picture(&folder.path().join("out/b_1.png"), |i| u8::from(i < 8));
    let output = ssn(&folder, &["evaluate", "--samples", "out", "--raters", "raters", "-q"]);
    assert!(told(&output).contains("holds numbers of classes"), "{}", told(&output));
}

#[test]
fn a_second_run_converts_what_changed() {
    let folder = folder();
    let arguments = ["evaluate", "--samples", "out", "--raters", "raters", "-q"];
    done(&folder, &arguments);
    let first = column(&folder, "scores", "ged2_4");
    for case in CASES {
        let path = folder.path().join(format!("out/{case}_4.png"));
        picture(&path, |i| 255 * u8::from(i < 16));
    }
    // Another number of samples is another setting of the evaluation.
    let refused = told(&ssn(&folder, &arguments));
    assert!(refused.contains("--overwrite"), "{refused}");
    done(&folder, &[&arguments[..], &["--overwrite"]].concat());
    assert_eq!(column(&folder, "scores", "ged2_4"), first);
    assert_eq!(column(&folder, "scores", "ged2_5").len(), 3);
    // What was converted is evaluated again with other scores, without its files.
    std::fs::remove_dir_all(folder.path().join("out")).unwrap();
    done(&folder, &["evaluate", "scores", "--scores", "qubiq", "--overwrite", "-q"]);
    assert_eq!(column(&folder, "scores", "soft_dice_qubiq foreground").len(), 3);
    let refused = ssn(&folder, &["evaluate", "scores", "--raters", "raters"]);
    assert!(told(&refused).contains("--raters is for files of another tool"), "{}", told(&refused));
}

#[test]
fn volumes_are_in_millimeters_and_sums_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let geometry = Geometry { spacing: [0.5, 0.5, 5.0], ..Geometry::default() };
    let save = |name: &str, voxels: Voxels, channels: usize| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        write(&path, &Image::new(voxels, [channels, 2, 4, 4], geometry, &Limits::default()).unwrap())
            .unwrap();
    };
    for case in ["case_01", "case_02"] {
        save(
            &format!("raters/{case}.nii.gz"),
            Voxels::U8((0..32).map(|i| u8::from(i % 16 < 8)).collect()),
            1,
        );
        save(&format!("soft/{case}.nii.gz"), Voxels::F32([vec![0.25; 32], vec![0.75; 32]].concat()), 2);
    }
    let text = done(
        &folder,
        &["evaluate", "--probabilities", "soft", "--raters", "raters", "--categorical", "--samples", "7"],
    );
    assert!(
        text.contains("raters: 2 cases with 1 rater each")
            && text.contains("7 samples of independent voxels"),
        "{text}"
    );
    // Half of 32 voxels of 1.25 mm³.
    assert_eq!(column(&folder, "scores", "rater_volume foreground"), [0.02; 2]);
    save("soft/case_02.nii.gz", Voxels::F32([vec![0.9; 32], vec![0.6; 32]].concat()), 2);
    let refused = ssn(&folder, &["evaluate", "other", "--probabilities", "soft", "--raters", "raters", "-q"]);
    assert!(told(&refused).contains("sum to 1.5, but they must sum to 1"), "{}", told(&refused));
}

#[test]
fn what_does_not_fit_is_said() {
    let folder = folder();
    let place = |name: &str| folder.path().join(name);
    let mut told_of = vec![];
    let mut tell = |arguments: &[&str]| {
        let output = ssn(&folder, &[&["evaluate"], arguments].concat());
        assert!(!output.status.success());
        told_of.push(told(&output).replace(folder.path().to_str().unwrap(), "FOLDER"));
    };
    tell(&["a", "--samples", "out"]);
    tell(&["a", "--samples", "nowhere", "--raters", "raters"]);
    tell(&["a", "--samples", "out/*.png", "--raters", "raters"]);
    let other = |name: &str, shape: [usize; 4], label: u8| {
        let values = vec![label; shape.iter().product()];
        let image = Image::new(Voxels::U8(values), shape, Geometry::default(), &Limits::default()).unwrap();
        std::fs::create_dir_all(place(name).parent().unwrap()).unwrap();
        write(&place(name), &image).unwrap();
    };
    other("size/case1_0.png", [1, 1, 8, 9], 1);
    tell(&["b", "--samples", "size", "--raters", "raters", "--allow-missing"]);
    other("label/case1_0.png", [1, 1, 8, 8], 7);
    tell(&["c", "--samples", "label", "--raters", "raters", "--allow-missing"]);
    std::fs::remove_file(place("out/case2_3.png")).unwrap();
    tell(&["d", "--samples", "out", "--raters", "raters"]);
    std::fs::remove_dir_all(place("raters/alice")).unwrap();
    for case in ["case2_0", "case2_1", "case2_2"] {
        std::fs::remove_file(place(&format!("out/{case}.png"))).unwrap();
    }
    tell(&["e", "--samples", "out", "--raters", "raters"]);
    insta::assert_snapshot!(told_of.join("\n---\n"));
    assert!(!Path::new(&place("a/evaluation")).exists());
}

/// Segmentations of 3D Slicer are compared by name, whatever their values, and refused where names do not fit.
#[test]
fn segments_are_compared_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: String, labels: [u8; 6], segments: &[(&str, u8)]| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let image =
            Image::new(Voxels::U8(labels.to_vec()), [1, 1, 2, 3], Geometry::default(), &Limits::default());
        let segments = segments.iter().map(|&(name, label)| Segment { name: name.to_owned(), label });
        write_labels(&path, &image.unwrap(), &segments.collect::<Vec<_>>()).unwrap();
    };
    for case in CASES {
        write(format!("raters/a/{case}.seg.nrrd"), [1, 1, 2, 2, 0, 0], &[("tumor", 1), ("edema", 2)]);
        write(format!("raters/b/{case}.seg.nrrd"), [5, 5, 3, 3, 0, 0], &[("edema", 3), ("tumor", 5)]);
        write(format!("out/{case}.seg.nrrd"), [2, 2, 1, 1, 0, 0], &[("Edema", 1), ("Tumor", 2)]);
    }
    done(&folder, &["evaluate", "--predictions", "out", "--raters", "raters", "-q"]);
    for mask in ["tumor", "edema"] {
        assert_eq!(column(&folder, "scores", &format!("dsc {mask}")), [1.0; 3]);
    }
    write("out/case2.seg.nrrd".to_owned(), [2, 2, 1, 1, 0, 0], &[("Edema", 1), ("lesion", 2)]);
    let text =
        told(&ssn(&folder, &["evaluate", "other", "--predictions", "out", "--raters", "raters", "-q"]));
    let expected = "case2.seg.nrrd: its segments are Edema = 1, lesion = 2, but the classes are background, tumor, edema";
    assert!(text.contains(expected), "{text}");
}

/// A JPEG of 8 × 8 pixels of the value 250: one block, made by hand.
fn bright_jpeg() -> Vec<u8> {
    let segment = |marker: u8, content: &[u8]| {
        [&[0xff, marker][..], &(content.len() as u16 + 2).to_be_bytes(), content].concat()
    };
    [
        vec![0xff, 0xd8],
        segment(0xdb, &[&[0][..], &[1; 64]].concat()),
        segment(0xc0, &[8, 0, 8, 0, 8, 1, 1, 0x11, 0]),
        segment(0xc4, &[&[0, 1][..], &[0; 15], &[10]].concat()),
        segment(0xc4, &[&[0x10, 1][..], &[0; 15], &[0]].concat()),
        segment(0xda, &[1, 1, 0, 0, 63, 0]),
        // 8 · (250 − 128) in ten bits, and the end of the block.
        vec![0b0111_1010, 0b0000_1111, 0xff, 0xd9],
    ]
    .concat()
}

/// JPEG does not keep 0 and 255.
#[test]
fn predictions_in_jpeg_are_cut() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("hard")).unwrap();
    for case in CASES {
        std::fs::write(folder.path().join(format!("hard/{case}.jpg")), bright_jpeg()).unwrap();
    }
    let text = done(&folder, &["evaluate", "--predictions", "hard", "--raters", "raters"]);
    assert!(text.contains("do not store values exactly: values above 127 are foreground"), "{text}");
    let of_rater = |marked: f64| 2.0 * marked / (64.0 + marked);
    let expected: Vec<f64> = (0..3)
        .map(|k| [16, 20, 24].map(|marked| of_rater(f64::from(marked + k))).iter().sum::<f64>() / 3.0)
        .collect();
    let found = column(&folder, "scores", "dsc foreground");
    assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?} {expected:?}");
}

/// A rater whose label maps lie elsewhere than those of the others is not scored.
#[test]
fn raters_in_other_places_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let save = |name: String, spacing: f64| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let geometry = Geometry { spacing: [1.0, spacing, 2.0], ..Geometry::default() };
        let voxels = Voxels::U8((0..32).map(|i| u8::from(i % 16 < 8)).collect());
        write(&path, &Image::new(voxels, [1, 2, 4, 4], geometry, &Limits::default()).unwrap()).unwrap();
    };
    for case in CASES {
        save(format!("raters/a/{case}.nii.gz"), 1.5);
        save(format!("raters/b/{case}.nii.gz"), if case == "case2" { 0.5 } else { 1.5 });
        save(format!("out/{case}.nii.gz"), 1.5);
    }
    let text = told(&ssn(&folder, &["evaluate", "--predictions", "out", "--raters", "raters", "-q"]));
    assert!(
        text.contains("case case2: ") && text.contains("b/case2.nii.gz: the geometry differs from that of"),
        "{text}"
    );
    assert!(text.contains("spacing[1] 1.500000 and 0.500000"), "{text}");
    save("raters/b/case2.nii.gz".to_owned(), 1.5);
    done(&folder, &["evaluate", "--predictions", "out", "--raters", "raters", "-q"]);
}
