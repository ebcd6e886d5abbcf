//! Predictions in memory: the bits of `ssn predict`, and what stops or refuses them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use ssn::data::{Dataset, LabelPolicy};
use ssn::eval::{DistributionFile, StoredPrecision};
use ssn::io::Limits;
use ssn::prelude::*;
use ssn::{Predictor, PredictorOptions, Result, TrainConfig, Volume};

use crate::lab::{Lab, SHORT, train_on};

fn options() -> PredictorOptions {
    PredictorOptions {
        device: DeviceChoice::Cpu,
        precision: StoredPrecision::Single,
        samples: 3,
        ..PredictorOptions::default()
    }
}

fn trained(lab: &Lab, name: &str, seed: u64, settings: &[&str]) -> TrainConfig {
    tch::set_num_threads(1);
    let settings = SHORT.into_iter().chain(["loss.likelihood_steps=1"]).chain(settings.iter().copied());
    let config = TrainConfig { seed: Some(seed), ..lab.run(name, "small", settings) };
    train_on(1, &config, None).unwrap();
    config
}

/// Returns the images of the dataset as they are in memory.
fn volumes(lab: &Lab) -> Vec<Volume> {
    let dataset = Dataset::open(&lab.path("data")).unwrap().with_labels(LabelPolicy::Ignored);
    let volume = |index| {
        let case = dataset.load_raw(index).unwrap();
        let [d, h, w] = case.shape;
        let volume =
            Volume::new(&case.id, case.image, [case.channels, d, h, w]).unwrap().geometry(case.geometry);
        match case.mask {
            Some(mask) => volume.mask(mask).unwrap(),
            None => volume,
        }
    };
    (0..dataset.entries.len()).map(volume).collect()
}

/// Compares the predictions of a model in memory with the files of `ssn predict`.
fn assert_same_as_files(lab: &Lab, run: &TrainConfig, options: &PredictorOptions) {
    let out = run.out.with_extension(format!("files-{}-{}", options.ensemble.len(), options.tile.is_some()));
    let config = PredictConfig {
        split: Some(ssn::eval::SplitChoice::All),
        ensemble: options.ensemble.clone(),
        tile: options.tile,
        device: options.device,
        precision: options.precision,
        samples: options.samples,
        ..PredictConfig::new(&run.out, &out)
    };
    predict(&config, Control::default()).unwrap();
    let predictor = Predictor::open(&run.out, options, Control::default()).unwrap();
    let folder = Predictions::open(&out).unwrap();
    let seen = Mutex::new(0);
    let each = |found: DistributionFile| {
        let path = folder.distribution_path(&found.description().case);
        let file = DistributionFile::read(&path, &Limits::default()).unwrap();
        assert!(found.distribution() == file.distribution(), "another distribution of {path:?}");
        assert!(found.samples() == file.samples(), "other samples of {path:?}");
        let (a, b) = (found.description(), file.description());
        assert_eq!((a.region, a.size, a.geometry, &a.model), (b.region, b.size, b.geometry, &b.model));
        *seen.lock().unwrap() += 1;
        Ok(())
    };
    predictor.predict_all(volumes(lab).into_iter().map(Ok), Control::default(), each).unwrap();
    assert_eq!(seen.into_inner().unwrap(), 10);
}

#[test]
fn predicts_the_bits_of_the_command_in_2d() {
    let lab = Lab::new([1, 24, 24], 3);
    let first = trained(&lab, "first", 0, &[]);
    assert_same_as_files(&lab, &first, &options());
    assert_same_as_files(&lab, &first, &PredictorOptions { tile: Some([1, 16, 16]), ..options() });
    let second = trained(&lab, "second", 1, &[]);
    // Members must not have trained on what they predict, unless all is asked for.
    assert_same_as_files(&lab, &first, &PredictorOptions { ensemble: vec![second.out], ..options() });
    let head = ["model.head={phiseg={latent_levels=2}}", "batches.patch.rater={kind=\"random\"}"];
    assert_same_as_files(&lab, &trained(&lab, "phiseg", 0, &head), &options());
}

#[test]
fn predicts_the_bits_of_the_command_in_3d() {
    let lab = Lab::new([16, 16, 16], 2);
    // Images have a region of interest, and are resampled to a spacing of the network's own.
    let run = trained(&lab, "run", 0, &["data.spacing=[1.5, 1.5, 1.0]"]);
    assert_same_as_files(&lab, &run, &options());
}

#[test]
fn stops_between_tiles_and_works_again() {
    let lab = Lab::new([1, 32, 32], 2);
    let run = trained(&lab, "run", 0, &[]);
    let options = PredictorOptions { tile: Some([1, 16, 16]), voxels_at_once: Some(256), ..options() };
    let predictor = Predictor::open(&run.out, &options, Control::default()).unwrap();
    let volume = volumes(&lab).remove(0);
    let stop = AtomicBool::new(false);
    let progress = |event: Progress<'_>| {
        if let Progress::Done { .. } = event {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let stopped = predictor.predict(volume.clone(), Control { progress: &progress, stop: &stop });
    assert_eq!(stopped.unwrap_err().kind, ErrorKind::Stopped);
    let whole = predictor.predict(volume, Control::default()).unwrap();
    assert_eq!(whole.description().size, [1, 32, 32]);
}

#[test]
fn what_a_model_does_not_take_is_refused() {
    let lab = Lab::new([1, 16, 16], 2);
    let run = trained(&lab, "run", 0, &[]);
    let predictor = Predictor::open(&run.out, &options(), Control::default()).unwrap();
    let message = |volume: Result<Volume>| {
        volume.and_then(|volume| predictor.predict(volume, Control::default())).unwrap_err().to_string()
    };
    let volume = |values: Vec<f32>| Volume::new("x", values, [1, 1, 16, 16]);
    assert_eq!(
        message(volume(vec![0.0; 3])),
        "the image has 3 values, but its shape [1, 1, 16, 16] requires 256"
    );
    assert!(message(Volume::new("x", vec![0.0; 512], [2, 1, 16, 16])).contains("2 channels"));
    let mut values = vec![0.0; 256];
    values[17] = f32::NAN;
    let found = message(volume(values));
    assert!(found.contains("NaN at voxel [0, 1, 1]"), "{found}");
    assert!(message(volume(vec![0.0; 256]).and_then(|v| v.mask(vec![2; 256]))).contains("0 or 1"));
    assert!(
        message(volume(vec![0.0; 256]).and_then(|v| v.spacing([1.0, 0.0, 1.0]))).contains("must be positive")
    );
}

#[test]
fn a_predictor_moves_to_another_thread() {
    fn assert_send<T: Send>() {}
    assert_send::<Predictor>();
}
