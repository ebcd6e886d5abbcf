//! From a folder of images to scores: train, predict, sample, evaluate, report.
//!
//! Run with `cargo run --release --package ssn --example train_on_folder -- DATASET`. Without a dataset, a synthetic one with
//! four raters is made, and training is short.

use std::path::PathBuf;

use ssn::data::{Synthetic, SyntheticConfig};
use ssn::eval::MapFormat;
use ssn::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    ssn::training::warm_up_vector_math();
    let work = tempfile::tempdir()?;
    let given = std::env::args().nth(1).map(PathBuf::from);
    let data = match &given {
        Some(data) => data.clone(),
        None => {
            let folder = work.path().join("data");
            let config = SyntheticConfig { cases: 30, size: [1, 32, 32], ..SyntheticConfig::default() };
            Synthetic::new(config)?.write(&folder, &|_| {})?;
            folder
        }
    };

    // Settings are those of a config file; docs/reference/config.md lists them.
    let run = work.path().join("run");
    let mut config = TrainConfig::from_data(&data, &run);
    config.device = DeviceChoice::Cpu;
    if given.is_none() {
        config.settings = ["training.steps=40", "training.validate_every=20", "loss.pretrain_steps=10"]
            .map(str::to_owned)
            .to_vec();
    }
    let show = |event: Progress<'_>| match event {
        Progress::Message(line) => println!("{line}"),
        Progress::Current { what, .. } => eprint!("\r{what}    "),
        _ => {}
    };
    let control = Control { progress: &show, ..Control::default() };
    let trained = train(&config, control)?;
    trained.outcome()?;
    println!("{} steps, best {:?}", trained.steps, trained.best);

    // One file per test case holds the distribution; the network is not needed any more.
    let predictions = work.path().join("predictions");
    predict(&PredictConfig { device: DeviceChoice::Cpu, ..PredictConfig::new(&run, &predictions) }, control)?;
    let samples = work.path().join("samples");
    let sampling = SampleConfig {
        samples: 3,
        format: Some(MapFormat::Png),
        ..SampleConfig::new(vec![predictions.clone()], &samples)
    };
    println!("samples of {} cases in {}", sample(&sampling, Control::default())?.cases, samples.display());

    let evaluated =
        evaluate(&EvaluateConfig { samples: 20, ..EvaluateConfig::new(&predictions) }, Control::default())?;
    println!("{}", evaluated.evaluation);
    println!("{}", report(&ReportConfig::new(vec![predictions, run]), Control::default())?);
    Ok(())
}
