//! From a dataset to predictions, scores and bundles; and what is refused on the way.

use std::fs;
use std::path::Path;
use std::process::Command;

use ssn_core::Control;
use ssn_eval::{DistributionFile, Output, PredictionKind, Predictions};
use ssn_eval::{EvaluateConfig, evaluate};
use ssn_io::{Limits, read};
use ssn_nn::{Execution, Mode, Precision, Prediction};
use ssn_testing::process::run_to_end;
use ssn_train::run::{CheckpointChoice, TrainedModel};

use crate::common::{Images, Lab, fails, finishes};

fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_ssn-engine"))
}

fn predict(words: &[&Path]) -> Command {
    let mut predict = command();
    predict.arg("predict").args(words).arg("--quiet");
    predict
}

#[test]
fn a_run_predicts_its_test_cases_and_they_are_scored() {
    for images in [Images::Flat, Images::Volumes] {
        let lab = Lab::new(images);
        let (run, out) = (lab.uncut("run"), lab.path("predictions"));
        finishes(predict(&[&run]).arg("--out").arg(&out).args([
            "--probabilities",
            "--nifti",
            "--split",
            "all",
        ]));
        let folder = Predictions::open(&out).unwrap();
        let cases = folder.cases().unwrap();
        assert_eq!(cases.len(), 8);
        let index = fs::read_to_string(out.join("prediction.csv")).unwrap();
        assert!(index.starts_with(
            "id,distribution,prediction,prob_maps,marginal_entropy,logit_mean,cov_diag,cov_factor"
        ));

        // Label maps lie where the images lie.
        let source = if images == Images::Flat {
            "images/synthetic-00003.png"
        } else {
            "images/synthetic-00003.nii.gz"
        };
        let image = read(&lab.data().join(source), &Limits::default()).unwrap();
        let labels =
            read(&folder.find_output("synthetic-00003", Output::Prediction).unwrap(), &Limits::default())
                .unwrap();
        assert_eq!((labels.shape, labels.geometry), (image.shape, image.geometry));
        let factor = read(&out.join("synthetic-00003_cov_factor.nii.gz"), &Limits::default()).unwrap();
        assert_eq!(factor.shape[0], 2 * 2, "rank times classes");
        let [[first, mixed], [_, second]] = gram_of_two(&folder.read("synthetic-00003").unwrap());
        assert!(
            first >= second && mixed.abs() < 1e-3 * first,
            "columns are no modes: {first} {mixed} {second}"
        );

        let evaluated = evaluate(&EvaluateConfig::new(&out), Control::default()).unwrap();
        assert_eq!((evaluated.evaluation.cases, evaluated.cases[0].scores.samples), (8, 100));

        // Labels that are corrected are scored anew.
        let label = |rater: u8| {
            let ending = if images == Images::Flat { "png" } else { "nii.gz" };
            lab.data().join(format!("labels/synthetic-00003_{rater}.{ending}"))
        };
        for rater in 1..4 {
            fs::copy(label(0), label(rater)).unwrap();
        }
        let again = evaluate(&EvaluateConfig::new(&out), Control::default()).unwrap();
        let changed: Vec<&str> = (evaluated.cases.iter().zip(&again.cases))
            .filter(|(old, new)| old.scores != new.scores)
            .map(|(old, _)| old.id.as_str())
            .collect();
        assert_eq!(changed, ["synthetic-00003"]);
    }
}

/// The inner products of the two columns of a factor of rank 2.
fn gram_of_two(file: &DistributionFile) -> [[f64; 2]; 2] {
    let (distribution, n) =
        (file.distribution(), file.distribution().classes() * file.distribution().voxels());
    let at = |q: usize, x: usize| f64::from(distribution.factor().get(q * n + x));
    [0, 1].map(|p| [0, 1].map(|q| (0..n).map(|x| at(p, x) * at(q, x)).sum()))
}

#[test]
fn a_preset_on_a_dataset_is_the_preset() {
    let lab = Lab::new(Images::Flat);
    let run = lab.path("run");
    let mut train = command();
    train.args(["train", "--quiet", "--skip-check", "--preset", "lidc", "--data"]).arg(lab.data());
    finishes(
        train.args(["--set", "training.steps=1", "--set", "training.validate_every=0", "--out"]).arg(&run),
    );
    let config = fs::read_to_string(run.join("config.toml")).unwrap();
    for line in ["batch_size = 12", "initial_scale = 1.0", "pretrain_steps = 0"] {
        assert!(config.contains(line), "{line} is missing in\n{config}");
    }
}

#[test]
fn a_run_goes_on_after_its_dataset_was_moved() {
    let lab = Lab::new(Images::Flat);
    let (run, moved) = (lab.uncut("run"), lab.path("moved"));
    fs::rename(lab.data(), &moved).unwrap();
    fails(&mut lab.resume(&run), 65, &["data"]);
    finishes(lab.resume(&run).arg("--data").arg(&moved));
}

#[test]
fn a_prediction_that_was_stopped_goes_on() {
    let lab = Lab::new(Images::Flat);
    let (run, out) = (lab.uncut("run"), lab.path("predictions"));
    let all = |out: &Path| {
        let mut command = predict(&[&run]);
        command.arg("--out").arg(out).args(["--split", "all", "--json"]);
        command
    };
    let first = run_to_end(&mut all(&out)).stdout;
    assert!(first.contains("\"predicted\": 8"), "{first}");
    let file = out.join("synthetic-00002.ssn.safetensors");
    let before = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    let second = run_to_end(&mut all(&out)).stdout;
    assert!(second.contains("\"predicted\": 1") && second.contains("\"kept\": 7"), "{second}");
    assert_eq!(fs::read(&file).unwrap(), before, "the same bytes again");
    // What is asked for in addition is made as well.
    finishes(all(&out).arg("--probabilities"));
    assert!(out.join("synthetic-00005_prob_maps.nii.gz").is_file());
    // What lies there and is not ours stays.
    for name in ["synthetic-00005_prediction.png", "prediction.csv", "synthetic-00002.ssn.safetensors"] {
        let other = lab.path(&format!("other-{name}"));
        fs::create_dir(&other).unwrap();
        fs::write(other.join(name), "of the user").unwrap();
        fails(all(&other).arg("--overwrite"), 2, &[name, "does not list it"]);
        assert_eq!(fs::read(other.join(name)).unwrap(), b"of the user");
    }
}

#[test]
fn networks_with_latent_variables_go_the_same_way() {
    for (images, head) in [
        (Images::Flat, "model.head=prob-unet"),
        (Images::Flat, "model.head={phiseg={latent_levels=2}}"),
        (Images::Volumes, "model.head={phiseg={latent_levels=1,latent=1}}"),
    ] {
        let lab = Lab::new(images).with(&[head, "batches.patch.rater={kind=\"random\"}"]);
        let (run, out) = (lab.uncut("run"), lab.path("predictions"));
        let drawn = |samples: &str| {
            let json =
                run_to_end(predict(&[&run]).arg("--out").arg(&out).args(["--json", "--samples", samples]))
                    .stdout;
            let folder = Predictions::open(&out).unwrap();
            let found = folder.cases().unwrap();
            (json, folder.read(found[0].id()).unwrap(), found.len())
        };
        let (_, few, cases) = drawn("6");
        assert_eq!((few.description().kind, few.sample_count()), (PredictionKind::Sampled, 6));
        // More of them begin with those that were there, and fewer are there already.
        let (json, more, _) = drawn("9");
        assert!(json.contains(&format!("\"predicted\": {cases}")), "{json}");
        let voxels = few.distribution().voxels();
        assert!(few.samples().unwrap() == &more.samples().unwrap()[..6 * voxels], "{head}");
        let (json, _, _) = drawn("9");
        assert!(json.contains("\"predicted\": 0"), "{json}");

        let args = EvaluateConfig { samples: 9, ..EvaluateConfig::new(&out) };
        let evaluated = evaluate(&args, Control::default()).unwrap();
        assert_eq!((evaluated.evaluation.cases, evaluated.cases[0].scores.samples), (cases, 9));
        fails(
            command()
                .arg("export")
                .arg(&run)
                .args(["--format", "torchscript", "--out"])
                .arg(lab.path("net.pt")),
            2,
            &["needs no sampling"],
        );
        if images == Images::Volumes {
            continue; // Images alone have no region of interest, as these cases have.
        }
        // A bundle draws the same samples of an image of the same name.
        let (bundle, other) = (lab.path("bundle.safetensors"), lab.path("other"));
        finishes(command().arg("export").arg(&run).arg("--out").arg(&bundle));
        let image = lab.data().join(format!("images/{}.png", more.description().case));
        finishes(predict(&[&bundle, &image]).arg("--out").arg(&other).args(["--samples", "9"]));
        let again = Predictions::open(&other).unwrap().read(&more.description().case).unwrap();
        assert!(again.samples() == more.samples(), "{head}");
    }
}

#[test]
fn a_bundle_predicts_the_same_without_its_run() {
    let lab = Lab::new(Images::Volumes).with(&["model.head=deterministic"]);
    let run = lab.uncut("run");
    let (bundle, image) = (lab.path("bundle.safetensors"), lab.data().join("images/synthetic-00001.nii.gz"));
    finishes(command().arg("export").arg(&run).arg("--out").arg(&bundle));
    let distribution = |model: &Path, name: &str| {
        let out = lab.path(name);
        finishes(predict(&[model, &image]).arg("--out").arg(&out));
        DistributionFile::read(&out.join("synthetic-00001.ssn.safetensors"), &Limits::default()).unwrap()
    };
    let (of_run, of_bundle) = (distribution(&run, "a"), distribution(&bundle, "b"));
    assert_eq!(of_run.distribution(), of_bundle.distribution());
    assert_eq!(of_bundle.description().kind, PredictionKind::Deterministic);
    fails(command().arg("export").arg(&run).arg("--out").arg(&bundle), 2, &["exists already"]);
}

#[test]
fn torchscript_gives_what_the_network_gives() {
    let lab = Lab::new(Images::Flat);
    let (run, module) = (lab.uncut("run"), lab.path("module.pt"));
    finishes(command().arg("export").arg(&run).arg("--out").arg(&module).args(["--format", "torchscript"]));
    let module = tch::CModule::load(&module).unwrap();
    let image = tch::Tensor::randn([1, 1, 1, 16, 16], (tch::Kind::Float, tch::Device::Cpu));
    let rows = module.forward_ts(&[&image]).unwrap();
    assert_eq!(rows.size(), [1, (2 + 2) * 2, 256]);
    let trained = TrainedModel::open(&run, CheckpointChoice::Best, Execution::cpu(Precision::F32)).unwrap();
    let Prediction::Stochastic(expected) = trained.model.forward(&image, None, Mode::Evaluation).unwrap()
    else {
        panic!("the network is stochastic");
    };
    // Rows of the mean, the diagonal and the factor, whose shape is [1, rank, classes, voxels].
    let factor = expected.factor().view([1, 4, 256]);
    for (what, first, count, expected) in
        [("mean", 0, 2, expected.mean()), ("diagonal", 2, 2, expected.diagonal()), ("factor", 4, 4, &factor)]
    {
        let found = rows.narrow(1, first, count);
        assert!(found.allclose(expected, 1e-5, 1e-6, false), "{what}: {found} and {expected}");
    }
}

#[test]
fn what_cannot_be_predicted_is_told() {
    let lab = Lab::new(Images::Flat);
    let (run, out) = (lab.uncut("run"), lab.path("predictions"));
    finishes(predict(&[&run]).arg("--out").arg(&out));
    let other = lab.with(&["training.seed=5"]);
    let another = other.uncut("another");
    fails(predict(&[&another]).arg("--out").arg(&out), 65, &["it holds predictions of another model"]);
    fails(&mut predict(&[&other.path("nowhere")]), 65, &["nowhere"]);
    let untrained = other.path("untrained");
    fails(other.begin(&untrained).args(["--time-limit", "1e-7"]), 75, &[]);
    fails(&mut predict(&[&untrained]), 2, &["the run has done no step", "ssn train --resume"]);
    fails(predict(&[&run]).args(["--tile", "4,4"]), 2, &["--tile <D,H,W>", "expected three whole numbers"]);
    let missing = other.path("missing.png");
    fails(predict(&[&run, &missing]).arg("--out").arg(other.path("p")), 65, &["missing.png"]);
    let checkpoint = fs::read_dir(run.join("checkpoints")).unwrap().find_map(|entry| {
        let model = entry.unwrap().path().join("model.safetensors");
        model.is_file().then_some(model)
    });
    fails(
        &mut predict(&[&checkpoint.unwrap(), &other.data()]),
        65,
        &["it holds weights, but neither class names"],
    );
}

#[test]
fn the_demo_compares_three_networks_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("demo");
    let demo = |seed: &str| {
        let mut demo = command();
        demo.args(["demo", "--quiet", "--cases", "20", "--seed", seed, "--out"]).arg(&out);
        for setting in [
            "training.steps=4",
            "loss.pretrain_steps=1",
            "loss.likelihood_steps=1",
            "model.plan.width=2",
            "model.plan.levels=2",
        ] {
            demo.args(["--set", setting]);
        }
        demo
    };
    let ended = finishes(&mut demo("3"));
    let line = format!("ssn view {}\n", out.join("predictions/low-rank").display());
    assert!(ended.stdout.ends_with(&line), "{}", ended.stdout);
    let table = fs::read_to_string(out.join("scores.md")).unwrap();
    for row in ["deterministic", "diagonal", "low-rank", "raters"] {
        assert!(table.contains(row), "{table}");
    }
    for file in [
        "samples.png",
        "samples.svg",
        "demo.json",
        "demo.toml",
        "runs/diagonal/metrics.csv",
        "report/report.html",
        "report-low-rank/report.html",
        "viewer.html",
        "runs/low-rank/progress.png",
    ] {
        assert!(out.join(file).is_file(), "{file}");
    }
    finishes(&mut demo("3"));
    assert_eq!(fs::read_to_string(out.join("scores.md")).unwrap(), table);
    fails(&mut demo("4"), 2, &["a demo with other settings is in it"]);
    fails(demo("3").args(["--set", "training.steps=9"]), 2, &["a demo with other settings is in it"]);
}
