//! What an evaluation scores, keeps and refuses.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use ssn_core::{Control, LowRankNormal, Progress};
use ssn_data::Shard;
use ssn_eval::evaluation::OtherTool;
use ssn_eval::{
    About, CaseDescription, DistributionFile, Error, ErrorKind, EvaluateConfig, Evaluated, ModelId,
    PredictionKind, Predictions, Region, SampleConfig, SplitChoice, StoredImage, evaluate, evaluate_shard,
    sample,
};
use ssn_io::{Geometry, Image, Limits, Voxels, write};
use tempfile::TempDir;

const CASES: [&str; 3] = ["a", "b", "c"];

/// Writes a mask of 8 × 8 pixels with the first `marked` of them.
fn mask(path: &Path, marked: usize) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let voxels = Voxels::U8((0..64).map(|i| if i < marked { 255 } else { 0 }).collect());
    let image = Image::new(voxels, [1, 1, 8, 8], Geometry::default(), &Limits::default()).unwrap();
    write(path, &image).unwrap();
}

/// Two raters and two samples of three cases, as files of another tool.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        for (number, case) in CASES.iter().enumerate() {
            for (rater, name) in ["alice", "bob"].into_iter().enumerate() {
                mask(&files.path(&format!("raters/{name}/{case}.png")), 16 + 4 * rater + number);
            }
            for sample in 0..2 {
                mask(&files.path(&format!("out/{case}_{sample}.png")), 14 + 6 * sample);
            }
        }
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn config(&self) -> EvaluateConfig {
        let (samples, raters) = (Some(self.path("out")), Some(self.path("raters")));
        let other = OtherTool { samples, raters, ..OtherTool::default() };
        EvaluateConfig { other, fast: true, ..EvaluateConfig::new(self.path("scores")) }
    }

    fn evaluate(&self) -> Evaluated {
        evaluate(&self.config(), Control::default()).unwrap()
    }

    fn record(&self, case: &str) -> PathBuf {
        self.path("scores/evaluation/cases").join(format!("{case}.json"))
    }

    /// Returns the files of the evaluation, with their contents.
    fn written(&self) -> Vec<(String, Vec<u8>)> {
        let tables = ["summary.json", "cases.csv", "raters.csv"];
        let tables = tables.map(|name| self.path(&format!("scores/evaluation/{name}")));
        let all = tables.into_iter().chain(CASES.map(|case| self.record(case)));
        all.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap()))
            .collect()
    }

    fn refusal(&self, config: &EvaluateConfig) -> (ErrorKind, String) {
        let error: Error = evaluate(config, Control::default()).map(|_| ()).unwrap_err();
        (error.kind, error.to_string().replace(&self.0.path().display().to_string(), "FOLDER"))
    }
}

#[test]
fn only_changed_cases_are_scored_again() {
    let files = Files::new();
    files.evaluate();
    let (before, time) =
        (files.written(), |case| fs::metadata(files.record(case)).unwrap().modified().unwrap());
    let times = CASES.map(time);
    // A score that nobody computed would be kept if its checksum were not compared.
    let text = fs::read_to_string(files.record("b")).unwrap();
    fs::write(files.record("b"), text.replace("\"samples\":2", "\"samples\":3")).unwrap();
    files.evaluate();
    assert_eq!(files.written(), before, "a damaged record is made again");
    assert_eq!([CASES[0], CASES[2]].map(time), [times[0], times[2]], "whole ones stay");

    mask(&files.path("raters/bob/c.png"), 40);
    files.evaluate();
    let after = files.written();
    let changed: Vec<&str> = before
        .iter()
        .zip(&after)
        .filter(|(before, after)| before != after)
        .map(|((name, _), _)| name.as_str())
        .collect();
    assert_eq!(changed, ["summary.json", "cases.csv", "raters.csv", "c.json"]);
    assert_eq!(time(CASES[0]), times[0]);
}

#[test]
fn shards_come_to_the_files_of_one_process() {
    let files = Files::new();
    files.evaluate();
    let config =
        EvaluateConfig { out: Some(files.path("parts")), other: OtherTool::default(), ..files.config() };
    let config = EvaluateConfig { split: Some(SplitChoice::All), ..config };
    let shard = |number| evaluate_shard(&config, Shard::new(number, 2).unwrap(), Control::default()).unwrap();
    let waiting = shard(2).map(|_| ()).unwrap_err();
    assert_eq!((waiting.done, waiting.of), (1, 2));
    assert!(!files.path("parts/summary.json").exists(), "no table of some cases");
    assert_eq!(shard(1).unwrap().cases.len(), 3);
    for (name, bytes) in files.written() {
        let part = if name.starts_with(['a', 'b', 'c']) && name.ends_with(".json") { "cases/" } else { "" };
        assert!(fs::read(files.path(&format!("parts/{part}{name}"))).unwrap() == bytes, "{name}");
    }
}

#[test]
fn other_settings_are_refused_unless_the_evaluation_is_replaced() {
    let files = Files::new();
    files.evaluate();
    let other = EvaluateConfig { seed: 1, ..files.config() };
    let (kind, sentence) = files.refusal(&other);
    assert_eq!(kind, ErrorKind::Usage);
    assert_eq!(
        sentence,
        "FOLDER/scores/evaluation holds an evaluation with scores.seed 0, but 1 is asked for; choose another folder with \
         --out or replace it with --overwrite"
    );
    let replaced = EvaluateConfig { overwrite: true, ..other };
    assert_eq!(evaluate(&replaced, Control::default()).unwrap().evaluation.settings.scores.seed, 1);
}

#[test]
fn what_cannot_be_scored_is_named() {
    let files = Files::new();
    let none = OtherTool { raters: Some(files.path("raters")), ..OtherTool::default() };
    let unknown = vec![("core".to_owned(), vec!["tumor".to_owned()])];
    let background = vec![("all".to_owned(), vec!["background".to_owned()])];
    let no_raters = OtherTool { samples: Some(files.path("out")), ..OtherTool::default() };
    files.evaluate();
    let refused = [
        EvaluateConfig { other: none, ..files.config() },
        EvaluateConfig { other: no_raters, ..files.config() },
        EvaluateConfig { groups: unknown, ..files.config() },
        EvaluateConfig { groups: background, ..files.config() },
        EvaluateConfig { temperature: 0.5, ..files.config() },
        EvaluateConfig { samples: 3, other: OtherTool::default(), ..files.config() },
    ];
    let sentences: Vec<String> = refused.iter().map(|config| files.refusal(config).1).collect();
    insta::assert_snapshot!(sentences.join("\n"));
}

#[test]
fn cases_without_a_prediction_are_named_and_may_be_left_out() {
    let files = Files::new();
    files.evaluate();
    for file in fs::read_dir(files.path("scores")).unwrap().map(|entry| entry.unwrap().path()) {
        if file.is_file() && file.file_name().unwrap().to_string_lossy().starts_with("b.") {
            fs::remove_file(file).unwrap();
        }
    }
    let config =
        EvaluateConfig { other: OtherTool::default(), split: Some(SplitChoice::All), ..files.config() };
    let config = EvaluateConfig { out: Some(files.path("again")), ..config };
    let (kind, sentence) = files.refusal(&config);
    assert_eq!(kind, ErrorKind::BadData);
    assert!(
        sentence.starts_with("1 of 3 cases of the part all have no prediction in FOLDER/scores: b;"),
        "{sentence}"
    );
    let found = evaluate(&EvaluateConfig { allow_missing: true, ..config }, Control::default()).unwrap();
    assert_eq!((found.cases.len(), found.evaluation.missing), (2, vec!["b".to_owned()]));
}

/// Evaluates, and returns the warnings as well.
fn evaluate_with_warnings(config: &EvaluateConfig) -> (Evaluated, Vec<String>) {
    let warnings = Mutex::new(vec![]);
    let progress = |progress: Progress<'_>| {
        if let Progress::Warning(text) = progress {
            warnings.lock().unwrap().push(text.to_owned());
        }
    };
    (evaluate(config, Control::watched(&progress)).unwrap(), warnings.into_inner().unwrap())
}

#[test]
fn cases_of_training_are_left_out_unless_all_are_asked_for() {
    let files = Files::new();
    let about = About {
        model: ModelId { sha256: "5f".to_owned(), name: "run".to_owned() },
        seed: 0,
        dataset: files.path("raters").display().to_string(),
        split: "all".to_owned(),
        images: None,
        labels: None,
        labels_only: true,
    };
    let predict = |name: &str, trained: &[&str]| {
        let folder = Predictions::create(&files.path(name), about.clone()).unwrap();
        for case in CASES {
            let description = CaseDescription {
                case: case.to_owned(),
                classes: ["background", "foreground"].map(str::to_owned).to_vec(),
                kind: PredictionKind::Stochastic,
                size: [1, 8, 8],
                geometry: Geometry::default(),
                network_grid: None,
                region: Region::whole([1, 8, 8]),
                model: about.model.clone(),
                image: Some(StoredImage { trained_on: trained.contains(&case), ..StoredImage::default() }),
                labels_only: false,
            };
            let noise =
                LowRankNormal::new(2, 64, 0, vec![0f32; 128], vec![1f32; 128], vec![0f32; 0]).unwrap();
            let file = DistributionFile::new(description, noise, None).unwrap();
            file.write(&folder.distribution_path(case)).unwrap();
        }
        EvaluateConfig { fast: true, samples: 2, ..EvaluateConfig::new(files.path(name)) }
    };
    let some = predict("some", &["b"]);
    let (found, warnings) = evaluate_with_warnings(&some);
    let ids: Vec<&str> = found.cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!((ids, found.evaluation.missing.len()), (vec!["a", "c"], 0));
    assert!(warnings[0].starts_with("the model trained on 1 of the cases"), "{warnings:?}");
    let all = EvaluateConfig { split: Some(SplitChoice::All), ..some };
    assert_eq!(evaluate(&all, Control::default()).unwrap().cases.len(), 3);
    let (kind, sentence) = files.refusal(&predict("every", &CASES));
    assert_eq!(kind, ErrorKind::BadData);
    assert!(sentence.starts_with("the model trained on all 3 cases"), "{sentence}");
}

#[test]
fn inverted_masks_are_the_first_line_of_the_verdict() {
    let files = Files::new();
    for case in CASES {
        // What no rater marked.
        let voxels = Voxels::U8((0..64).map(|i| if i < 22 { 0 } else { 255 }).collect());
        let image = Image::new(voxels, [1, 1, 8, 8], Geometry::default(), &Limits::default()).unwrap();
        fs::create_dir_all(files.path("inverted")).unwrap();
        write(&files.path(&format!("inverted/{case}.png")), &image).unwrap();
    }
    let (labels, raters) = (Some(files.path("inverted")), Some(files.path("raters")));
    let other = OtherTool { labels, raters, ..OtherTool::default() };
    let (found, warnings) = evaluate_with_warnings(&EvaluateConfig { other, ..files.config() });
    let expected = "The class foreground has a DSC of 0.0 %, but would have ";
    assert!(found.evaluation.verdict[0].starts_with(expected), "{:?}", found.evaluation.verdict);
    assert_eq!(warnings.last(), found.evaluation.verdict.first());
    let (found, warnings) =
        evaluate_with_warnings(&EvaluateConfig { predictions: files.path("good"), ..files.config() });
    assert!(!found.evaluation.verdict[0].starts_with("The class") && warnings.is_empty(), "{warnings:?}");
}

#[test]
fn a_stopped_evaluation_continues() {
    let (files, whole) = (Files::new(), Files::new());
    whole.evaluate();
    let stop = AtomicBool::new(false);
    let progress = |event: Progress<'_>| {
        if let Progress::Begin { name: "scoring", .. } = event {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let stopped =
        evaluate(&files.config(), Control { progress: &progress, stop: &stop }).map(|_| ()).unwrap_err();
    assert_eq!(stopped.kind, ErrorKind::Stopped);
    assert_eq!(stopped.to_string(), "stopped after 0 of 3 cases; run the same command to continue");
    assert!(!files.path("scores/evaluation/summary.json").exists());
    files.evaluate();
    let table = |files: &Files| fs::read_to_string(files.path("scores/evaluation/cases.csv")).unwrap();
    assert_eq!(table(&files), table(&whole));
}

#[test]
fn stopped_samples_are_drawn_again() {
    let files = Files::new();
    files.evaluate();
    let config =
        SampleConfig { samples: 2, ..SampleConfig::new(vec![files.path("scores")], files.path("drawn")) };
    let stop = AtomicBool::new(false);
    let progress = |event: Progress<'_>| {
        if let Progress::Done { .. } = event {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let stopped = sample(&config, Control { progress: &progress, stop: &stop }).map(|_| ()).unwrap_err();
    assert_eq!(
        (stopped.kind, stopped.to_string().as_str()),
        (ErrorKind::Stopped, "stopped after 2 samples; run the same command to draw them again")
    );
    assert_eq!(sample(&config, Control::default()).unwrap().cases, CASES.len());
}
