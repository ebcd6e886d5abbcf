//! Training learns, goes on where it was to the bit, and survives what must not happen.

use std::sync::Arc;

use ssn_data::{
    AugmentConfig, Batch, BatchConfig, BatchSampler, CaseOrder, PatchConfig, PatchSampler, RaterChoice,
    Synthetic, SyntheticConfig,
};
use ssn_io::ErrorKind;
use ssn_nn::backbones::BackboneConfig;
use ssn_nn::layers::NormKind;
use ssn_nn::loss::{Loss, Similarity, register_loss};
use ssn_nn::random::Pairing;
use ssn_nn::{
    Execution, HeadConfig, LearningRate, LowRankNormalTensors, Method, Model, ModelConfig, NoiseSource,
    Precision, Schedule, StochasticConfig, Target, Warmup,
};
use ssn_train::checkpoint::{BestValidation, Checkpoints, RunState};
use ssn_train::{LossConfig, LossKind, Trainer};
use tch::{Kind, Tensor};

use crate::common::small_unet;
use crate::own_likelihood::OwnLikelihood;

const SEED: u64 = 11;
const CPU: Execution = Execution { precision: Precision::F32, device: tch::Device::Cpu };

fn model_config(patch: [i64; 3], channels: i64) -> ModelConfig {
    ModelConfig {
        channels,
        classes: 2,
        backbone: BackboneConfig::Unet(small_unet(patch, NormKind::BATCH)),
        head: HeadConfig::Stochastic(StochasticConfig { rank: 3, ..StochasticConfig::default() }),
    }
}

fn trainer(model: Model) -> Trainer {
    trainer_of(model, LossConfig { samples: 8, pretrain_steps: 3, dice: 0.1, ..LossConfig::default() })
}

fn trainer_of(model: Model, loss: LossConfig) -> Trainer {
    let rate = LearningRate::new(5e-3, Schedule::Constant, Warmup::default(), 1000).unwrap();
    Trainer::new(model, Method::adam(), rate, loss, SEED).unwrap()
}

fn new_trainer(patch: [i64; 3]) -> Trainer {
    trainer(Model::new(&model_config(patch, 1), CPU, SEED).unwrap())
}

/// Batches of the synthetic set, 2D or 3D.
fn recipe(three_dimensional: bool) -> (BatchSampler, [i64; 3]) {
    recipe_of(three_dimensional, RaterChoice::Random)
}

fn recipe_of(three_dimensional: bool, rater: RaterChoice) -> (BatchSampler, [i64; 3]) {
    let config = if three_dimensional { SyntheticConfig::volume() } else { SyntheticConfig::default() };
    // Few and small cases: making one takes longer than a step.
    let (cases, volume) = (12, [if three_dimensional { 16 } else { 1 }, 40, 40]);
    let cases = Arc::new(Synthetic::new(SyntheticConfig { cases, size: volume, ..config }).unwrap());
    let size = if three_dimensional { [8, 16, 16] } else { [1, 32, 32] };
    let patch = PatchConfig {
        sampler: PatchSampler::Random { size, foreground_probability: 0.5 },
        target_size: None,
        rater,
    };
    let config = BatchConfig {
        batch_size: 4,
        order: CaseOrder::Shuffled,
        patch,
        augment: AugmentConfig::default(),
        input_grids: None,
    };
    (BatchSampler::new(cases, SEED, config, 1 << 28).unwrap(), size.map(|n| n as i64))
}

fn weights(model: &Model) -> Vec<(String, Tensor)> {
    model.parameters().entries().iter().map(|p| (p.name.clone(), p.tensor.detach().copy())).collect()
}

fn progress(step: u64) -> RunState {
    RunState::new(step, SEED)
}

#[test]
fn the_loss_falls() {
    tch::set_num_threads(1);
    let (recipe, patch) = recipe(false);
    let mut trainer = new_trainer(patch);
    let losses: Vec<f64> = (0..60).map(|k| trainer.step(&recipe.batch(k).unwrap()).unwrap().loss).collect();
    let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
    assert!(mean(&losses[50..]) < 0.5 * mean(&losses[..10]), "{losses:?}");
}

#[test]
fn a_resumed_run_is_the_uncut_run_to_the_bit() {
    tch::set_num_threads(1);
    for three_dimensional in [false, true] {
        let (recipe, patch) = recipe(three_dimensional);
        let mut uncut = new_trainer(patch);
        let reports: Vec<_> = (0..8).map(|k| uncut.step(&recipe.batch(k).unwrap()).unwrap()).collect();

        let folder = tempfile::tempdir().unwrap();
        let checkpoints = Checkpoints::new(&folder.path().join("checkpoints")).unwrap();
        let mut first = new_trainer(patch);
        for k in 0..5 {
            first.step(&recipe.batch(k).unwrap()).unwrap();
        }
        checkpoints.save(&progress(5), &mut first).unwrap();
        drop(first);

        let checkpoint = checkpoints.newest().unwrap().checkpoint.unwrap();
        let mut resumed = checkpoint.resume(trainer(checkpoint.model(CPU).unwrap())).unwrap();
        for k in 5..8 {
            assert_eq!(resumed.step(&recipe.batch(k).unwrap()).unwrap(), reports[k as usize]);
        }
        assert_eq!(weights(resumed.model()), weights(uncut.model()));
    }
}

/// Cross-entropy of the mean for two steps, likelihood for two, and then the energy distance to all raters.
const ENERGY: LossConfig = LossConfig {
    own: None,
    kind: LossKind::Energy,
    samples: 8,
    pairing: Pairing::Antithetic,
    likelihood_exponent: 1.0,
    similarity: Similarity::Tanimoto,
    diversity_weight: 1.0,
    likelihood_weight: 0.0,
    pretrain_steps: 2,
    likelihood_steps: 2,
    dice: 0.0,
    max_gradient_norm: None,
};

#[test]
fn the_phases_of_an_energy_loss_resume_to_the_bit() {
    tch::set_num_threads(1);
    for (three_dimensional, cut) in [(false, 3), (false, 4), (true, 5)] {
        let (recipe, patch) = recipe_of(three_dimensional, RaterChoice::All);
        let new = || trainer_of(Model::new(&model_config(patch, 1), CPU, SEED).unwrap(), ENERGY);
        let mut uncut = new();
        let reports: Vec<_> = (0..8).map(|k| uncut.step(&recipe.batch(k).unwrap()).unwrap()).collect();
        let has_ess: Vec<bool> = reports.iter().map(|report| report.ess.is_some()).collect();
        assert_eq!(has_ess, [false, false, true, true, false, false, false, false]);
        // The optimizer started anew with the energy loss.
        let counts = uncut.optimizer().next_steps().collect::<Vec<_>>();
        assert!(counts.iter().all(|&count| count == 5), "{counts:?}");

        let folder = tempfile::tempdir().unwrap();
        let checkpoints = Checkpoints::new(&folder.path().join("checkpoints")).unwrap();
        let mut first = new();
        for k in 0..cut {
            first.step(&recipe.batch(k).unwrap()).unwrap();
        }
        checkpoints.save(&progress(cut), &mut first).unwrap();
        let checkpoint = checkpoints.newest().unwrap().checkpoint.unwrap();
        let mut resumed = checkpoint.resume(trainer_of(checkpoint.model(CPU).unwrap(), ENERGY)).unwrap();
        for k in cut..8 {
            assert_eq!(resumed.step(&recipe.batch(k).unwrap()).unwrap(), reports[k as usize]);
        }
        assert_eq!(weights(resumed.model()), weights(uncut.model()));
    }
}

#[test]
fn the_energy_distance_to_all_raters_falls() {
    tch::set_num_threads(1);
    let (recipe, patch) = recipe_of(false, RaterChoice::All);
    let loss = LossConfig { pretrain_steps: 0, likelihood_steps: 0, ..ENERGY };
    let mut trainer = trainer_of(Model::new(&model_config(patch, 1), CPU, SEED).unwrap(), loss);
    let losses: Vec<f64> = (0..80).map(|k| trainer.step(&recipe.batch(k).unwrap()).unwrap().loss).collect();
    let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
    assert!(mean(&losses[70..]) < 0.7 * mean(&losses[..10]), "{losses:?}");
}

#[test]
fn settings_of_losses_that_do_not_fit_are_refused() {
    let message =
        |loss: LossConfig| loss.check().and_then(|()| loss.check_steps(10)).unwrap_err().to_string();
    insta::assert_snapshot!(
        [
            message(LossConfig { samples: 2, ..ENERGY }),
            message(LossConfig { samples: 1, pairing: Pairing::Independent, ..ENERGY }),
            message(LossConfig { kind: LossKind::Likelihood, ..ENERGY }),
            message(LossConfig { likelihood_weight: 0.1, ..LossConfig::default() }),
            message(LossConfig { diversity_weight: -1.0, ..ENERGY }),
            message(LossConfig { pretrain_steps: 10, ..ENERGY }),
            message(LossConfig { likelihood_steps: 8, ..ENERGY }),
        ]
        .join("\n")
    );
}

#[test]
fn the_mean_over_the_last_steps_is_what_is_saved_and_goes_on_with_the_run() {
    tch::set_num_threads(1);
    let (recipe, patch) = recipe(false);
    let step = |trainer: &mut Trainer, k: u64| trainer.step(&recipe.batch(k).unwrap()).unwrap();
    let (mut plain, mut uncut) = (new_trainer(patch), new_trainer(patch).with_ema(15).unwrap());
    let mut after = vec![];
    for k in 0..24 {
        assert_eq!(step(&mut plain, k), step(&mut uncut, k), "a mean changes no step");
        after.push(weights(plain.model()));
    }
    // Steps weigh 1 up to the ninth, and then 9 over their number.
    let result = |trainer: &mut Trainer| trainer.with_eval_model(|model| Ok(weights(model))).unwrap();
    for (tensor, (name, mean)) in result(&mut uncut).iter().enumerate() {
        let mut expected = after[0][tensor].1.copy();
        for (k, weights) in after.iter().enumerate().skip(1) {
            expected += (weights[tensor].1.copy() - &expected) * (9.0 / (k as f64 + 1.0)).min(1.0);
        }
        assert!(mean.allclose(&expected, 1e-5, 1e-7, false), "{name}");
    }
    assert_eq!(weights(uncut.model()), after[23], "the next step begins with the last weights");

    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path()).unwrap();
    let mut first = new_trainer(patch).with_ema(15).unwrap();
    for k in 0..13 {
        step(&mut first, k);
    }
    checkpoints.save(&progress(13), &mut first).unwrap();
    let checkpoint = checkpoints.newest().unwrap().checkpoint.unwrap();
    let saved = checkpoint.model(CPU).unwrap();
    assert_eq!(weights(&saved), result(&mut first), "predictions have the mean");
    assert_ne!(weights(&saved), weights(first.model()));
    let mut resumed = checkpoint.resume(trainer(saved).with_ema(15).unwrap()).unwrap();
    for k in 13..24 {
        step(&mut resumed, k);
    }
    assert_eq!(weights(resumed.model()), after[23]);
    assert_eq!(result(&mut resumed), result(&mut uncut));

    let path = folder.path().join("step-000000013/weights.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(checkpoints.newest().unwrap().damaged.len(), 1, "it is compared with what was saved");
}

#[test]
fn a_step_that_is_not_finite_is_not_applied() {
    tch::set_num_threads(1);
    let (recipe, patch) = recipe(false);
    let mut trainer = new_trainer(patch);
    for k in 0..4 {
        trainer.step(&recipe.batch(k).unwrap()).unwrap();
    }
    let before = weights(trainer.model());
    let mut poisoned: Batch = recipe.batch(4).unwrap();
    poisoned.images[17] = f32::NAN;
    let error = trainer.step(&poisoned).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NonFinite);
    assert!(error.to_string().contains("in step 5 is not finite"), "{error}");
    assert_eq!(weights(trainer.model()), before, "weights and statistics are as they were");
    let report = trainer.step(&recipe.batch(5).unwrap()).unwrap();
    assert!(report.loss.is_finite());
}

#[test]
fn a_batch_out_of_order_is_refused() {
    let (recipe, patch) = recipe(false);
    let message = new_trainer(patch).step(&recipe.batch(3).unwrap()).unwrap_err().to_string();
    assert_eq!(message, "the number of the batch is 3, but it must be that of the step");
}

fn save(checkpoints: &Checkpoints, trainer: &mut Trainer, step: u64, best: Option<u64>) {
    let best = best.map(|step| BestValidation { step, score: 0.5 });
    checkpoints.save(&RunState { best, ..progress(step) }, trainer).unwrap();
    best.iter().for_each(|best| checkpoints.name_best(best).unwrap());
}

#[test]
fn the_last_two_generations_and_the_best_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path()).unwrap();
    let mut trainer = new_trainer([1, 32, 32]);
    for (step, best) in [(10, Some(10)), (20, Some(20)), (30, Some(20)), (40, Some(20)), (50, Some(20))] {
        save(&checkpoints, &mut trainer, step, best);
    }
    assert_eq!(checkpoints.steps().unwrap(), [20, 40, 50]);
    assert_eq!(checkpoints.best().unwrap().unwrap().progress.step, 20);
    assert_eq!(checkpoints.newest().unwrap().checkpoint.unwrap().progress.step, 50);
}

#[test]
fn a_damaged_generation_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path()).unwrap();
    let mut trainer = new_trainer([1, 32, 32]);
    for step in [10, 20] {
        save(&checkpoints, &mut trainer, step, None);
    }
    let damage = |file: &str, change: fn(&mut Vec<u8>)| {
        let path = folder.path().join("step-000000020").join(file);
        let whole = std::fs::read(&path).unwrap();
        let mut bytes = whole.clone();
        change(&mut bytes);
        std::fs::write(&path, bytes).unwrap();
        let newest = checkpoints.newest().unwrap();
        assert_eq!(newest.checkpoint.unwrap().progress.step, 10, "{file}");
        assert_eq!(newest.damaged.len(), 1);
        assert!(newest.damaged[0].reason.contains("step-000000020"), "{:?}", newest.damaged);
        std::fs::write(&path, whole).unwrap();
        assert_eq!(checkpoints.newest().unwrap().checkpoint.unwrap().progress.step, 20);
    };
    for file in ["model.safetensors", "optimizer.safetensors", "progress.json", "manifest.json"] {
        damage(file, |bytes| bytes.truncate(bytes.len() / 2));
        damage(file, |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        });
    }
}

#[test]
fn what_a_killed_save_leaves_is_no_generation_and_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path()).unwrap();
    save(&checkpoints, &mut new_trainer([1, 32, 32]), 10, Some(10));
    for name in [".ssn-partial-abc", ".removed-5"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        std::fs::write(folder.path().join(name).join("model.safetensors"), b"half").unwrap();
    }
    std::fs::write(folder.path().join(".ssn-partial-def"), b"half").unwrap();
    let newest = checkpoints.newest().unwrap();
    assert!(newest.checkpoint.unwrap().progress.step == 10 && newest.damaged.is_empty());
    checkpoints.remove_unfinished().unwrap();
    let entries = std::fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["best.json", "step-000000010"]);
}

#[test]
fn a_generation_that_was_set_aside_leaves_its_place_to_another() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path()).unwrap();
    let mut trainer = new_trainer([1, 32, 32]);
    // Twice, since what was set aside before must not be in the way.
    for _ in 0..2 {
        save(&checkpoints, &mut trainer, 20, None);
        std::fs::remove_file(folder.path().join("step-000000020/progress.json")).unwrap();
        let newest = checkpoints.newest().unwrap();
        let aside = checkpoints.set_aside(&newest.damaged).unwrap();
        assert_eq!(aside, [folder.path().join("damaged-000000020")]);
        assert!(aside[0].join("model.safetensors").exists());
        assert!(checkpoints.steps().unwrap().is_empty());
    }
    save(&checkpoints, &mut trainer, 20, None);
    assert_eq!(checkpoints.newest().unwrap().checkpoint.unwrap().progress.step, 20);
}

/// Gives a number for the whole batch.
#[derive(Debug)]
struct WholeBatch;

impl Loss for WholeBatch {
    fn loss(
        &self,
        distribution: &LowRankNormalTensors,
        _: &Target,
        _: NoiseSource<'_>,
    ) -> ssn_nn::Result<Tensor> {
        Ok(distribution.mean().sum(Kind::Double))
    }
}

fn own(name: &'static str, loss: impl Loss + 'static) -> LossConfig {
    register_loss(name, loss).unwrap();
    let own = serde_json::from_value(name.into()).unwrap();
    LossConfig { own: Some(own), samples: 8, pretrain_steps: 2, ..LossConfig::default() }
}

#[test]
fn the_likelihood_as_an_own_loss_trains_alike() {
    tch::set_num_threads(1);
    let (sampler, patch) = recipe(false);
    let run = |loss: LossConfig| {
        let mut trainer = trainer_of(Model::new(&model_config(patch, 1), CPU, SEED).unwrap(), loss);
        (0..5).map(|k| trainer.step(&sampler.batch(k).unwrap()).unwrap()).collect::<Vec<_>>()
    };
    let mine = own("likelihood-of-a-test", OwnLikelihood { syncs: false });
    // The optimizer starts anew with an own loss: only the first step after pretraining is comparable.
    for (own, built_in) in run(mine).iter().zip(run(LossConfig { own: None, ..mine })).take(3) {
        assert_eq!(
            (own.loss, own.gradient_norm),
            (built_in.loss, built_in.gradient_norm),
            "step {}",
            own.step
        );
    }
    assert_eq!(run(mine), run(mine));
}

#[test]
fn own_losses_are_checked() {
    tch::set_num_threads(1);
    let (sampler, patch) = recipe(false);
    let mut trainer =
        trainer_of(Model::new(&model_config(patch, 1), CPU, SEED).unwrap(), own("whole-batch", WholeBatch));
    let failed = (0..3).find_map(|k| trainer.step(&sampler.batch(k).unwrap()).err()).unwrap().to_string();
    assert!(
        failed.contains("the loss has shape [], but [4], one number for each image, is needed"),
        "{failed}"
    );
    let unknown = serde_json::from_str::<LossConfig>(r#"{ "own": "whole-batc" }"#).unwrap_err().to_string();
    assert!(unknown.contains("unknown loss `whole-batc`") && unknown.contains("`whole-batch`"), "{unknown}");
    assert!(register_loss("whole-batch", WholeBatch).is_err(), "the name is taken");
    let both = LossConfig { kind: LossKind::Energy, ..own("another-of-a-test", WholeBatch) };
    assert!(both.check().unwrap_err().to_string().contains("loss.own"));
}
