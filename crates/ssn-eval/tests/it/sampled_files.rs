//! Samples that a network drew itself: its file gives them back, scores are theirs, and what it does not hold is refused.

use ssn_core::metrics::{PairwiseDistances, brier, ged};
use ssn_core::{BitPlanes, Control, LabelMap, LowRankNormal, Steering, Values};
use ssn_eval::evaluation::cases_csv;
use ssn_eval::scores::memory;
use ssn_eval::{
    CaseDescription, DistributionFile, ErrorKind, Evaluation, EvaluationSettings, MapFormat, PredictionKind,
    SampleConfig, SampleSource, ScoreConfig, Scored, StoredImage, StoredPrecision, sample, score,
};
use ssn_io::Limits;

use crate::common::{description, distribution, file, labels, log_mean, sampled};

/// Label maps of the whole image for three raters.
fn raters() -> Vec<LabelMap> {
    let of = |seed| LabelMap::new(labels(5, seed), 3).unwrap();
    [of(20), of(21), of(22)].to_vec()
}

/// The first samples of the file on the whole image, put there voxel by voxel.
fn on_image(count: usize) -> Vec<LabelMap> {
    let drawn = labels(7, 1);
    let one = |map: &[u8]| {
        let at = |i: usize| {
            let (z, y, x) = (i / 20, i / 5 % 4, i % 5);
            let inside = (1..3).contains(&z) && y < 3 && (2..4).contains(&x);
            let voxel = if inside { ((z - 1) * 3 + y) * 2 + x - 2 } else { 3 };
            if inside && voxel % 5 != 3 { map[voxel] } else { 0 }
        };
        LabelMap::new((0..60).map(at).collect(), 3).unwrap()
    };
    drawn.chunks(12).take(count).map(one).collect()
}

fn planes(maps: &[LabelMap]) -> Vec<BitPlanes> {
    maps.iter().map(BitPlanes::new).collect()
}

#[test]
fn what_is_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ssn.safetensors");
    let about = CaseDescription { kind: PredictionKind::Sampled, ..description("b") };
    let drawn = labels(2, 5);
    let without_mask = DistributionFile::sampled(about, log_mean(&drawn), drawn.clone(), None).unwrap();
    for precision in [StoredPrecision::Single, StoredPrecision::HalfFactor, StoredPrecision::Half] {
        for (file, expected) in [(sampled("a/ü"), labels(7, 1)), (without_mask.clone(), drawn.clone())] {
            let file = file.with_precision(precision).unwrap();
            file.write(&path).unwrap();
            let back = DistributionFile::read(&path, &Limits::default()).unwrap();
            assert_eq!(back, file);
            let is_half = matches!(back.distribution().mean(), Values::F16(_));
            assert_eq!(is_half, precision == StoredPrecision::Half);
            assert_eq!((back.samples(), back.sample_count()), (Some(&expected[..]), expected.len() / 12));
            assert_eq!(back.description().region, description("a").region);
            let header = DistributionFile::read_header(&path, &Limits::default()).unwrap();
            assert_eq!((header.samples, header.rank, header.classes), (expected.len() / 12, 0, 3));
            let bytes = std::fs::read(&path).unwrap();
            back.write(&path).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
        }
    }
    assert_eq!(sampled("a").mask(), file("a").mask());
    assert_eq!((file("a").samples(), file("a").sample_count()), (None, 0));
    file("a").write(&path).unwrap();
    assert_eq!(DistributionFile::read_header(&path, &Limits::default()).unwrap().samples, 0);
}

/// Segmentations of 3D Slicer have the names of the classes and the labels that the dataset stores them by.
#[test]
fn segments_have_the_names_of_classes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ssn.safetensors");
    let mut about = CaseDescription { kind: PredictionKind::Sampled, ..description("a") };
    about.image = Some(StoredImage { label_values: Some(vec![0, 7, 4]), ..StoredImage::default() });
    DistributionFile::sampled(about, log_mean(&labels(2, 1)), labels(2, 1), None)
        .unwrap()
        .write(&path)
        .unwrap();
    let out = folder.path().join("out");
    let format = Some(MapFormat::SegNrrd);
    let config = SampleConfig { samples: 2, format, ..SampleConfig::new(vec![path.clone()], &out) };
    sample(&config, Control::default()).unwrap();
    let written = out.join("a_sample_1.seg.nrrd");
    let found = ssn_io::read_segments(&written, &Limits::default()).unwrap();
    let found: Vec<_> = found.iter().map(|segment| (segment.name.as_str(), segment.label)).collect();
    assert_eq!(found, [("core", 7), ("oedema", 4)]);
    let stored = ssn_io::read(&written, &Limits::default()).unwrap().to_labels().unwrap().data;
    assert!(stored.iter().all(|label| [0, 4, 7].contains(label)) && stored.contains(&7));
    let config = SampleConfig { entropy: true, overwrite: true, ..config };
    let message = sample(&config, Control::default()).unwrap_err().to_string();
    assert!(message.contains("--format seg.nrrd holds labels"), "{message}");
}

#[test]
fn a_single_class_has_two_labels() {
    let about = CaseDescription {
        classes: ["off", "on"].map(str::to_owned).to_vec(),
        kind: PredictionKind::Sampled,
        ..description("a")
    };
    for (mean, classes) in [(vec![0.5f32; 12], 1), (vec![0.5f32; 24], 2)] {
        let file = DistributionFile::sampled(about.clone(), mean, vec![1; 36], None).unwrap();
        assert_eq!((file.labels(), file.distribution().classes(), file.sample_count()), (2, classes, 3));
        let draw = SampleSource::new(&file, 0, &Steering::default()).unwrap();
        assert_eq!(draw.labels(2..3).unwrap(), [LabelMap::new(vec![1; 12], 2).unwrap()]);
    }
}

#[test]
fn parts_that_disagree_are_refused() {
    let kind = |kind| CaseDescription { kind, ..description("a") };
    let refuse = |mean: Vec<f32>, samples, mask| {
        DistributionFile::sampled(kind(PredictionKind::Sampled), mean, samples, mask).unwrap_err().to_string()
    };
    let mean = || log_mean(&labels(2, 1));
    let zeros = LowRankNormal::new(3, 12, 0, mean(), vec![0f32; 36], vec![0f32; 0]).unwrap();
    insta::assert_snapshot!(
        [
            refuse(mean(), vec![], None),
            refuse(mean(), vec![0; 13], None),
            refuse(mean(), [vec![2; 23], vec![3]].concat(), None),
            refuse(vec![0.0; 35], labels(2, 1), None),
            refuse(vec![f32::NEG_INFINITY; 36], labels(2, 1), None),
            refuse(mean(), labels(2, 1), Some(vec![1; 3])),
            DistributionFile::sampled(kind(PredictionKind::Stochastic), mean(), labels(2, 1), None)
                .unwrap_err()
                .to_string(),
            DistributionFile::sampled(kind(PredictionKind::Deterministic), mean(), labels(2, 1), None)
                .unwrap_err()
                .to_string(),
            DistributionFile::new(kind(PredictionKind::Sampled), zeros, None).unwrap_err().to_string(),
            DistributionFile::new(kind(PredictionKind::Sampled), distribution(3, 12, 0, 1), None)
                .unwrap_err()
                .to_string(),
        ]
        .join("\n")
    );
}

#[test]
fn the_stored_maps_are_drawn_whatever_the_seed() {
    let file = sampled("a/b");
    for seed in [0, 9] {
        let draw = SampleSource::new(&file, seed, &Steering::default()).unwrap();
        for range in [0..7, 3..5, 6..7] {
            let found = draw.labels(range.clone()).unwrap();
            let drawn = labels(7, 1);
            let expected = drawn.chunks(12).skip(range.start as usize).take(found.len());
            assert_eq!(found.len() as u64, range.end - range.start);
            assert!(found.iter().map(LabelMap::labels).eq(expected), "{range:?}");
        }
        assert_eq!(draw.labels(2..2).unwrap_err().kind, ErrorKind::BadData);
        for range in [0..8, 7..8, 3..u64::MAX] {
            let error = draw.labels(range).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Usage);
            assert!(error.reason.contains(" holds 7 samples "), "{error}");
        }
    }
    let draw = SampleSource::new(&file, 0, &Steering::default()).unwrap();
    assert_eq!(
        draw.labels(5..20).unwrap_err().to_string(),
        "case a/b holds 7 samples that its network drew, but 20 are needed; predict it again with --samples 20, or \
         ask for fewer"
    );
}

#[test]
fn the_prediction_is_the_most_probable_label() {
    let (file, drawn) = (sampled("a"), labels(7, 1));
    let prediction = file.prediction().unwrap();
    for (voxel, &label) in prediction.labels().iter().enumerate() {
        let votes = |class: u8| drawn.chunks(12).filter(|map| map[voxel] == class).count();
        assert_eq!(votes(label), (0..3).map(votes).max().unwrap(), "voxel {voxel}");
    }
}

#[test]
fn scores_are_those_of_the_stored_maps() {
    let (file, raters) = (sampled("a"), raters());
    let config = ScoreConfig { samples: 6, ged_counts: vec![1, 4, 50], ..ScoreConfig::default() };
    let found = score(&file, &raters, &config).unwrap();
    let (maps, marked) = (planes(&on_image(6)), planes(&raters));
    assert_eq!((found.samples, found.raters), (6, 3));
    for count in [1, 4, 6] {
        let expected = ged(&maps[..count], &marked).unwrap();
        assert_eq!(found.value(&format!("ged2_{count}")), Some(expected.squared));
    }
    assert_eq!(found.of("ged2_50"), None, "there are six samples");
    let expected = ged(&maps, &marked).unwrap();
    assert!(expected.sample_diversity > 0.1);
    assert_eq!(
        ["sample_diversity", "cross_distance"].map(|key| found.value(key).unwrap()),
        [expected.sample_diversity, expected.sample_rater_distance]
    );
    assert_eq!(
        found.value("hm_iou"),
        Some(PairwiseDistances::new(&maps, &marked).unwrap().hm_iou().unwrap())
    );

    // Neither the seed nor independent voxels have a part in samples that are there.
    let other = ScoreConfig { seed: 5, categorical: true, ..config.clone() };
    assert_eq!(score(&file, &raters, &other).unwrap(), found);

    let error = score(&file, &raters, &ScoreConfig { samples: 8, ..config }).unwrap_err();
    assert!(error.reason.ends_with(" holds 7 samples that its network drew, but 8 are needed"), "{error}");
}

#[test]
fn probabilities_are_those_of_the_mean_and_there_is_no_likelihood() {
    let (file, raters) = (sampled("a"), raters());
    let scores = score(&file, &raters, &ScoreConfig { samples: 7, ..ScoreConfig::default() }).unwrap();
    let mut probabilities = vec![];
    for (class, row) in log_mean(&labels(7, 1)).chunks(12).enumerate() {
        let row: Vec<f32> = row.iter().map(|x| x.exp()).collect();
        probabilities.extend(file.values_on_image(&row, if class == 0 { 1.0 } else { 0.0 }).unwrap());
    }
    assert!((scores.value("brier").unwrap() - brier(&probabilities, &raters).unwrap()).abs() < 1e-6);
    for key in ["log_likelihood", "effective_samples"] {
        assert_eq!(scores.of(key), Some(&[][..]), "{key}");
    }
    assert!(scores.value("variance_ncc").is_some() && scores.value("s_ncc").is_some());

    let settings = EvaluationSettings {
        model: description("a").model,
        kind: PredictionKind::Sampled,
        dataset: "set".to_owned(),
        split: "test".to_owned(),
        scores: ScoreConfig { samples: 7, ..ScoreConfig::default() },
        bootstrap: false,
        labels_only: false,
    };
    let cases = [Scored { id: "a".to_owned(), rater_names: vec![], scores }];
    let evaluation = Evaluation::new(settings, &cases, vec![]).unwrap();
    for key in ["log_likelihood", "effective_samples"] {
        let figure = evaluation.figure(key).unwrap();
        assert_eq!((figure.mean, figure.standard_error, figure.values, figure.cases), (None, None, 0, 0));
        let csv = cases_csv(&cases);
        let [head, row] = [0, 1].map(|line| csv.lines().nth(line).unwrap().split(',').collect::<Vec<_>>());
        assert_eq!(row[head.iter().position(|name| *name == key).unwrap()], "");
    }
    let table = evaluation.to_string();
    assert!(table.starts_with("run 7 on test: 1 cases, 7 samples,"), "{table}");
    let line = table.lines().find(|line| line.starts_with("log-likelihood of raters")).unwrap();
    assert_eq!(line.split_whitespace().skip(3).collect::<Vec<_>>(), ["–", "0", "0"]);
    let json = serde_json::to_string(&evaluation).unwrap();
    assert_eq!(serde_json::from_str::<Evaluation>(&json).unwrap(), evaluation);
    assert!(json.contains("\"kind\":\"sampled\""));
}

#[test]
fn the_memory_of_samples_is_foreseen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    sampled("a").write(&path).unwrap();
    let header = DistributionFile::read_header(&path, &Limits::default()).unwrap();
    let mut more = header.clone();
    more.samples += 1000;
    let config = ScoreConfig::default();
    assert_eq!(memory(&more, 1, &config) - memory(&header, 1, &config), 12_000);
    assert!(header.check_samples(7).is_ok());
    assert!(header.check_samples(8).unwrap_err().reason.ends_with("but 8 are needed"));
    file("a").write(&path).unwrap();
    let header = DistributionFile::read_header(&path, &Limits::default()).unwrap();
    assert!(header.check_samples(u64::MAX).is_ok(), "a distribution gives any number of them");
}
