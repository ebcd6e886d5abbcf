//! Every preset with every head on one and two ranks: train, stop, resume, validate, predict, evaluate, report, export.
//!
//! Presets and heads come from the lists in the code: a new one is tested without a change here.

use std::thread;

use ssn::nn::HeadConfig;
use ssn::training::run::{RunPreset, StopReason};
use ssn::{DeviceChoice, TrainConfig};

use crate::lab::{Lab, SHORT, losses, results, through_all_functions, train_on};

/// Relative differences of losses and gradient norms between one rank and two, in double precision: ranks add sums in
/// another order. The paper's U-Net amplifies rounding by about 10⁵ in three steps.
const TOLERANCE: f64 = 1e-7;

/// Returns settings that make the network of a preset small.
fn reduced(preset: RunPreset) -> Vec<&'static str> {
    let text = preset.text();
    if text.contains("[model.backbone.deepmedic]") {
        vec![
            "model.backbone.deepmedic.scales=[[3,3,3],[1,1,1]]",
            "model.backbone.deepmedic.feature_maps=[3,3]",
            "model.backbone.deepmedic.fully_connected=[4]",
            "model.backbone.deepmedic.dropout=[0.0,0.5]",
            "model.backbone.deepmedic.output={features=4}",
            "batches.patch.sampler={kind=\"random\",size=[15,15,15]}",
            "batches.patch.target_size=[3,3,3]",
            "batches.order={kind=\"epochs\",images=3,patches=2}",
        ]
    } else if text.contains("[model.backbone.unet]") {
        vec![
            "model.backbone.unet.widths=[4,6,6]",
            "model.backbone.unet.strides=[[1,2,2],[1,2,2]]",
            "model.backbone.unet.kernels=[[1,3,3],[1,3,3],[1,3,3]]",
            "model.backbone.unet.decoder_widths=[6,4]",
            "model.backbone.unet.pointwise=[4]",
        ]
    } else {
        vec!["model.plan.width=4", "model.plan.levels=3"]
    }
}

/// Settings of a head that fit the small networks.
fn head_setting(name: &str) -> String {
    match name {
        "stochastic" => "model.head={stochastic={rank=2}}".to_owned(),
        "phiseg" => "model.head={phiseg={latent_levels=2}}".to_owned(),
        name => format!("model.head=\"{name}\""),
    }
}

/// Outcome of a cell of the matrix.
enum Cell {
    Works,
    /// The combination is refused before anything is trained.
    Refused(String),
    Fails(String),
}

/// Returns the settings of a cell.
fn settings(preset: RunPreset, head: &str) -> Vec<String> {
    let mut settings: Vec<String> =
        SHORT.iter().chain(&reduced(preset)).map(|&text| text.to_owned()).collect();
    settings.push(head_setting(head));
    settings.extend(["training.sync_batch_norm=always", "optimizer.decay=constant"].map(str::to_owned));
    if preset.text().contains("likelihood_steps") {
        settings.push("loss.likelihood_steps=1".to_owned());
    }
    if head == "identity" {
        // The features are the logits of the two classes.
        settings.retain(|setting| !setting.contains("pointwise") && !setting.contains("output="));
        settings.push(
            match preset.text() {
                text if text.contains("unet]") => "model.backbone.unet.pointwise=[2]",
                text if text.contains("deepmedic]") => "model.backbone.deepmedic.output={logits=2}",
                _ => "model.plan.width=2",
            }
            .to_owned(),
        );
    }
    if ["prob-unet", "phiseg"].contains(&head) {
        settings.push("batches.patch.rater={kind=\"random\"}".to_owned());
    }
    settings
}

fn cell(lab: &Lab, preset: RunPreset, head: &str) -> Cell {
    let mut settings = settings(preset, head);
    settings.push("training.precision=f64".to_owned());
    let config = |name: &str| {
        let name = format!("{}-{head}-{name}", preset.name());
        lab.run(&name, preset.name(), settings.iter().map(String::as_str))
    };
    let mut of_ranks = vec![];
    for ranks in [1, 2] {
        let (whole, cut) = (config(&format!("{ranks}-whole")), config(&format!("{ranks}-cut")));
        match train_on(ranks, &whole, None) {
            Ok(StopReason::Finished) => {}
            Ok(other) => return Cell::Fails(format!("{ranks} ranks: training ended with {other:?}")),
            Err(error) if !whole.out.join("checkpoints").exists() => return Cell::Refused(error.to_string()),
            Err(error) => return Cell::Fails(format!("{ranks} ranks: {error}")),
        }
        let resume =
            TrainConfig { resume: Some(cut.out.clone()), preset: None, settings: vec![], ..cut.clone() };
        match train_on(ranks, &cut, Some(2)) {
            Ok(StopReason::Stopped) => {}
            other => return Cell::Fails(format!("{ranks} ranks: a stopped run ended with {other:?}")),
        }
        if let Err(error) = train_on(ranks, &resume, None) {
            return Cell::Fails(format!("{ranks} ranks, resumed: {error}"));
        }
        for ((name, expected), (_, found)) in results(&whole.out).iter().zip(results(&cut.out)) {
            if *expected != found {
                return Cell::Fails(format!("{ranks} ranks: {name} of a resumed run differs"));
            }
        }
        if let Err(error) = through_all_functions(&whole.out, DeviceChoice::Cpu, ranks == 1) {
            return Cell::Fails(format!("{ranks} ranks: {error}"));
        }
        of_ranks.push(losses(&whole.out));
    }
    let [one, two] = &of_ranks[..] else { unreachable!() };
    let worst = one.iter().zip(two).map(|(a, b)| (a - b).abs() / a.abs().max(1e-9)).fold(0.0, f64::max);
    match one.len() == two.len() && worst <= TOLERANCE {
        true => Cell::Works,
        false => {
            Cell::Fails(format!("two ranks compute {two:?}, one {one:?}: relative difference {worst:e}"))
        }
    }
}

/// Trains, resumes, predicts and scores on a GPU. Twelve steps are captured as CUDA graphs, four are not.
fn cell_on_gpu(lab: &Lab, preset: RunPreset, head: &str, precision: &str, steps: usize) -> Cell {
    let mut settings = settings(preset, head);
    settings.extend([format!("training.precision={precision}"), format!("training.steps={steps}")]);
    let config = |name: &str| {
        let name = format!("{}-{head}-{precision}-{steps}-{name}", preset.name());
        lab.run(&name, preset.name(), settings.iter().map(String::as_str))
    };
    let (whole, cut) = (config("whole"), config("cut"));
    match train_on(1, &whole, None) {
        Ok(StopReason::Finished) => {}
        Ok(other) => return Cell::Fails(format!("training ended with {other:?}")),
        Err(error) if !whole.out.join("config.toml").exists() => return Cell::Refused(error.to_string()),
        Err(error) => return Cell::Fails(error.to_string()),
    }
    let resume = TrainConfig { resume: Some(cut.out.clone()), preset: None, settings: vec![], ..cut.clone() };
    for (config, stop_after) in [(&cut, Some(steps / 2)), (&resume, None)] {
        if let Err(error) = train_on(1, config, stop_after) {
            return Cell::Fails(format!("stopped and resumed: {error}"));
        }
    }
    match through_all_functions(&whole.out, DeviceChoice::Cuda(0), false) {
        Ok(()) => Cell::Works,
        Err(error) => Cell::Fails(error),
    }
}

/// Tests a preset with every head, prints the rows of the table, and returns the failures.
fn rows(preset: RunPreset, device: DeviceChoice) -> Vec<String> {
    let size = if preset.text().contains("[model.backbone.deepmedic]") { [16; 3] } else { [1, 16, 16] };
    let lab = Lab::new(size, 2).on(device);
    let mut failures = vec![];
    for head in HeadConfig::NAMES {
        let cells = match device {
            DeviceChoice::Cpu => vec![("f64, 1 and 2 ranks".to_owned(), cell(&lab, preset, head))],
            _ => [("f32", 4), ("f32", 12), ("bf16", 4), ("bf16", 12)]
                .map(|(precision, steps)| {
                    (format!("{precision}, {steps} steps"), cell_on_gpu(&lab, preset, head, precision, steps))
                })
                .into(),
        };
        for (how, cell) in cells {
            let outcome = match cell {
                Cell::Works => "works".to_owned(),
                Cell::Refused(reason) => {
                    // The stochastic network and the ordinary one go with everything.
                    if ["stochastic", "deterministic"].contains(&head) {
                        failures.push(format!("{} {head} {how}: refused: {reason}", preset.name()));
                    }
                    format!("refused: {reason}")
                }
                Cell::Fails(reason) => {
                    failures.push(format!("{} {head} {how}: {reason}", preset.name()));
                    format!("FAILS: {reason}")
                }
            };
            println!("{:<14} {head:<14} {how:<20} {outcome}", preset.name());
        }
    }
    failures
}

/// Tests all presets: each in a thread on CPUs, one after the other on a GPU, where steps that are captured forbid other work.
fn table(device: DeviceChoice) {
    let failures: Vec<String> = match device {
        DeviceChoice::Cpu => thread::scope(|scope| {
            let presets = RunPreset::ALL.map(|preset| scope.spawn(move || rows(preset, device)));
            presets.into_iter().flat_map(|preset| preset.join().unwrap()).collect()
        }),
        _ => RunPreset::ALL.into_iter().flat_map(|preset| rows(preset, device)).collect(),
    };
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn presets_and_heads_work_on_one_and_two_ranks() {
    table(DeviceChoice::Cpu);
}

#[test]
#[ignore = "needs a GPU"]
fn presets_and_heads_work_on_a_gpu() {
    table(DeviceChoice::Cuda(0));
}
