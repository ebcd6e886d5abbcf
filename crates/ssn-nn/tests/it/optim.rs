//! Optimizers, clipping and schedules against PyTorch's values, and the state that a resumed run continues from.

use serde::Deserialize;
use ssn_io::{Error, Place};
use ssn_nn::NnError;
use ssn_nn::{LearningRate, Method, Optimizer, Schedule, Warmup, clip_gradient_norm};
use std::collections::BTreeMap;
use tch::{Device, Kind, Tensor};

/// Steps of the golden runs; `optim.py` has the same.
const STEPS: u64 = 50;
/// Relative difference allowed in double and in single precision.
const TOLERANCE_F64: f64 = 1e-12;
const TOLERANCE_F32: f64 = 1e-5;

#[derive(Deserialize)]
struct Golden {
    runs: Vec<Run>,
    schedules: Vec<Rates>,
}

#[derive(Deserialize)]
struct Run {
    name: String,
    method: Method,
    rate: f64,
    clip: Option<f64>,
    schedule: Schedule,
    warmup: Warmup,
    f64: Vec<Checkpoint>,
    f32: Vec<Checkpoint>,
}

#[derive(Deserialize)]
struct Checkpoint {
    steps: u64,
    loss: f64,
    norm: Option<f64>,
    values: BTreeMap<String, Vec<f64>>,
}

#[derive(Deserialize)]
struct Rates {
    rate: f64,
    schedule: Schedule,
    warmup: Warmup,
    rates: Vec<f64>,
}

fn golden() -> Golden {
    tch::set_num_threads(1);
    serde_json::from_str(include_str!("../golden/optim.json")).unwrap()
}

fn series(n: i64, scale: f64, shift: f64, kind: Kind) -> Tensor {
    (Tensor::arange(n, (Kind::Double, Device::Cpu)) * scale + shift).sin().to_kind(kind)
}

/// The start of the golden problem.
fn start(kind: Kind) -> Vec<(String, Tensor)> {
    let parameters = [
        ("w", series(12, 0.7, 0.3, kind).reshape([3, 4])),
        ("v", series(4, 1.3, 1.0, kind)),
        ("u", series(2, 2.1, 0.4, kind)),
    ];
    parameters.into_iter().map(|(name, tensor)| (name.to_owned(), tensor.set_requires_grad(true))).collect()
}

/// The loss of the golden problem: a small network on six points with a double well beside it, which every third
/// step leaves out.
fn loss(parameters: &[(String, Tensor)], step: u64) -> Tensor {
    let [w, v, u] = [0, 1, 2].map(|i| &parameters[i].1);
    let kind = w.kind();
    let (x, y) = (series(18, 0.9, 0.1, kind).reshape([6, 3]), series(6, 1.7, 0.6, kind));
    let out = x.matmul(w).tanh().matmul(v); // [6]
    let value = (&out - y).square().mean(kind) + 0.1 * (w * 3.0).cos().sum(kind);
    if step.is_multiple_of(3) {
        return value;
    }
    value + 0.25 * (u.square() - 1.0).square().sum(kind) + u.get(0) * 0.3 * out.mean(kind)
}

/// One step; gives the loss and the norm before clipping.
fn advance(optimizer: &mut Optimizer, run: &Run, rate: &LearningRate, step: u64) -> (f64, Option<f64>) {
    optimizer.zero_grad().unwrap();
    let value = loss(optimizer.parameters(), step);
    value.backward();
    let norm = run.clip.map(|limit| clip_gradient_norm(optimizer.parameters(), limit).unwrap());
    optimizer.step(rate.at(step)).unwrap();
    (value.double_value(&[]), norm)
}

fn rate_of(run: &Run) -> LearningRate {
    LearningRate::new(run.rate, run.schedule.clone(), run.warmup, STEPS).unwrap()
}

fn values(tensor: &Tensor) -> Vec<f64> {
    Vec::try_from(tensor.detach().flatten(0, -1).to_kind(Kind::Double)).unwrap()
}

/// The largest difference from the golden values of a run, relative to the largest value of the tensor.
fn difference(run: &Run, kind: Kind, checkpoints: &[Checkpoint]) -> f64 {
    let mut optimizer = Optimizer::new(run.method, start(kind)).unwrap();
    let rate = rate_of(run);
    let (mut worst, mut left) = (0f64, checkpoints.iter().peekable());
    for step in 0..STEPS {
        let (loss, norm) = advance(&mut optimizer, run, &rate, step);
        let Some(golden) = left.next_if(|golden| golden.steps == step + 1) else { continue };
        let mut compare = |found: &[f64], golden: &[f64]| {
            assert_eq!(found.len(), golden.len());
            let scale = golden.iter().fold(0f64, |scale, g| scale.max(g.abs()));
            for (f, g) in found.iter().zip(golden) {
                assert!(f.is_finite());
                worst = worst.max((f - g).abs() / scale);
            }
        };
        compare(&[loss], &[golden.loss]);
        compare(norm.as_slice(), golden.norm.as_slice());
        for (name, tensor) in optimizer.parameters() {
            compare(&values(tensor), &golden.values[name]);
        }
    }
    assert!(left.next().is_none(), "{}: a checkpoint was not compared", run.name);
    worst
}

#[test]
fn fifty_steps_are_those_of_pytorch() {
    let golden = golden();
    assert_eq!(golden.runs.len(), 14);
    for run in &golden.runs {
        let double = difference(run, Kind::Double, &run.f64);
        let single = difference(run, Kind::Float, &run.f32);
        println!("{:32} f64 {double:.1e}  f32 {single:.1e}", run.name);
        assert!(double <= TOLERANCE_F64, "{}: f64 differs by {double:e}", run.name);
        assert!(single <= TOLERANCE_F32, "{}: f32 differs by {single:e}", run.name);
    }
}

#[test]
fn rates_are_those_of_pytorch() {
    let golden = golden();
    assert_eq!(golden.schedules.len(), 12);
    let mut worst = 0f64;
    for Rates { rate, schedule, warmup, rates } in golden.schedules {
        let ours = LearningRate::new(rate, schedule.clone(), warmup, STEPS).unwrap();
        assert_eq!(rates.len(), STEPS as usize);
        for (step, golden) in rates.iter().enumerate() {
            let found = ours.at(step as u64);
            worst = worst.max((found - golden).abs() / golden);
            assert!(
                (found - golden).abs() <= TOLERANCE_F64 * golden,
                "{schedule:?} {step}: {found} is not {golden}"
            );
        }
    }
    println!("rates {worst:.1e}");
}

#[test]
fn a_restored_state_continues_to_the_bit() {
    for run in &golden().runs {
        let rate = rate_of(run);
        for (kind, half) in [(Kind::Double, 1), (Kind::Float, 25)] {
            let mut whole = Optimizer::new(run.method, start(kind)).unwrap();
            (0..half).for_each(|step| _ = advance(&mut whole, run, &rate, step));
            let state = whole.state().unwrap();
            let parameters: Vec<_> =
                whole.parameters().iter().map(|(name, p)| (name.clone(), detached_copy(p))).collect();
            (half..STEPS).for_each(|step| _ = advance(&mut whole, run, &rate, step));

            let mut resumed = Optimizer::new(run.method, parameters).unwrap();
            resumed.load_state(&state).unwrap();
            (half..STEPS).for_each(|step| _ = advance(&mut resumed, run, &rate, step));
            same_bits(&run.name, whole.parameters(), resumed.parameters());
            same_bits(&run.name, &whole.state().unwrap(), &resumed.state().unwrap());
        }
    }
}

fn detached_copy(parameter: &Tensor) -> Tensor {
    parameter.detach().copy().set_requires_grad(true)
}

fn same_bits(run: &str, a: &[(String, Tensor)], b: &[(String, Tensor)]) {
    assert_eq!(a.len(), b.len());
    for ((name, a), (other, b)) in a.iter().zip(b) {
        assert_eq!(name, other);
        assert!(a.kind() == b.kind() && a.equal(b), "{run}: {name} differs");
    }
}

#[test]
fn state_has_pytorch_names() {
    let names = |method| {
        let parameters =
            vec![("a.weight".to_owned(), Tensor::zeros([2], kind_cpu()).set_requires_grad(true))];
        let state = Optimizer::new(method, parameters).unwrap().state().unwrap();
        state.into_iter().map(|(name, _)| name.replace("/a.weight", "")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(Method::adam()), "adam.step adam.exp_avg adam.exp_avg_sq");
    assert_eq!(names(Method::adamw()), "adamw.step adamw.exp_avg adamw.exp_avg_sq");
    assert_eq!(names(Method::sgd(0.0)), "sgd.step");
    assert_eq!(names(Method::sgd(0.9)), "sgd.step sgd.momentum_buffer");
    assert_eq!(names(Method::rmsprop()), "rmsprop.step rmsprop.square_avg");
    let all = r#"{"rmsprop": {"momentum": 0.1, "centered": true}}"#;
    assert_eq!(
        names(serde_json::from_str(all).unwrap()),
        "rmsprop.step rmsprop.square_avg rmsprop.grad_avg rmsprop.momentum_buffer"
    );
}

fn kind_cpu() -> (Kind, Device) {
    (Kind::Double, Device::Cpu)
}

#[test]
fn another_state_is_refused_and_changes_nothing() {
    let mut optimizer = Optimizer::new(Method::adam(), start(Kind::Double)).unwrap();
    let run = &golden().runs[0];
    (0..5).for_each(|step| _ = advance(&mut optimizer, run, &rate_of(run), step));
    let before = optimizer.state().unwrap();
    let fresh = || Optimizer::new(Method::adam(), start(Kind::Double)).unwrap().state().unwrap();
    let mut refused = |state: &[(String, Tensor)]| {
        let error = optimizer.load_state(state).unwrap_err().to_string();
        let problem = error.strip_prefix("the state of the optimizer cannot be restored: ").unwrap();
        let (entry, problem) = problem.split_once(' ').unwrap();
        (entry.to_owned(), problem.to_owned())
    };

    let mut state = fresh();
    let (name, last) = state.pop().unwrap();
    assert_eq!(refused(&state), ("adam.exp_avg_sq/u".into(), "is missing".into()));
    state.push((name.clone(), last.reshape([2, 1])));
    let shape = "has shape [2, 1], but its parameter needs [2]".to_owned();
    assert_eq!(refused(&state), (name.clone(), shape));
    state.pop();
    state.push((name.clone(), last.to_kind(Kind::Float)));
    let kind = "holds Float, but its parameter needs Double".to_owned();
    assert_eq!(refused(&state), (name.clone(), kind));
    state.pop();
    state.extend([(name.clone(), last.shallow_clone()), (name.clone(), last.shallow_clone())]);
    assert_eq!(refused(&state), (name.clone(), "occurs twice".into()));
    state.pop();
    state.push(("adam.exp_avg/x".into(), last));
    assert_eq!(
        refused(&state),
        ("adam.exp_avg/x".into(), "belongs to no parameter of this model and method".into())
    );
    let mut state = fresh();
    state[0].1 = Tensor::from(-1i64);
    assert_eq!(refused(&state), ("adam.step/w".into(), "is -1, but a count of steps is at least 0".into()));
    let other = Optimizer::new(Method::adamw(), start(Kind::Double)).unwrap().state().unwrap();
    assert_eq!(refused(&other), ("adam.step/w".into(), "is missing".into()));
    let error = optimizer.load_state(&other).unwrap_err().to_string();
    assert_eq!(error, "the state of the optimizer cannot be restored: adam.step/w is missing");

    same_bits("refused", &before, &optimizer.state().unwrap());
    optimizer.load_state(&fresh()).unwrap();
}

#[test]
fn bad_settings_are_named() {
    let refused = |json: &str| match Optimizer::new(serde_json::from_str(json).unwrap(), vec![]) {
        Err(NnError::Other(Error { place: Place::Setting(field), .. })) => field,
        other => panic!("{json}: {other:?}"),
    };
    for method in ["adam", "adamw"] {
        assert_eq!(refused(&format!(r#"{{"{method}": {{"beta1": 1}}}}"#)), "beta1");
        assert_eq!(refused(&format!(r#"{{"{method}": {{"beta2": -0.1}}}}"#)), "beta2");
        assert_eq!(refused(&format!(r#"{{"{method}": {{"eps": 0}}}}"#)), "eps");
        assert_eq!(refused(&format!(r#"{{"{method}": {{"weight_decay": -1}}}}"#)), "weight_decay");
    }
    assert_eq!(refused(r#"{"sgd": {"momentum": 1}}"#), "momentum");
    assert_eq!(refused(r#"{"sgd": {"momentum": 0.5, "dampening": 2}}"#), "dampening");
    assert_eq!(refused(r#"{"sgd": {"nesterov": true}}"#), "nesterov");
    assert_eq!(refused(r#"{"sgd": {"nesterov": true, "momentum": 0.9, "dampening": 0.1}}"#), "nesterov");
    assert_eq!(refused(r#"{"sgd": {"weight_decay": -1}}"#), "weight_decay");
    assert_eq!(refused(r#"{"rmsprop": {"alpha": 1}}"#), "alpha");
    assert_eq!(refused(r#"{"rmsprop": {"momentum": -1}}"#), "momentum");
    assert_eq!(refused(r#"{"rmsprop": {"eps": -1}}"#), "eps");
    assert_eq!(refused(r#"{"rmsprop": {"weight_decay": -1}}"#), "weight_decay");

    for unknown in [r#"{"adam": {"beta3": 1}}"#, r#"{"lion": {}}"#] {
        assert!(serde_json::from_str::<Method>(unknown).is_err());
    }
    assert!(serde_json::from_str::<Schedule>(r#"{"cosine": {"stop": 1}}"#).is_err());
    assert!(serde_json::from_str::<Warmup>(r#"{"step": 1}"#).is_err());
    let text = serde_json::to_string(&Method::adamw()).unwrap();
    assert_eq!(serde_json::from_str::<Method>(&text).unwrap(), Method::adamw());
    let defaults = [("adam", Method::adam()), ("adamw", Method::adamw()), ("sgd", Method::sgd(0.0))];
    for (name, method) in defaults.into_iter().chain([("rmsprop", Method::rmsprop())]) {
        assert_eq!(serde_json::from_str::<Method>(&format!(r#"{{"{name}": {{}}}}"#)).unwrap(), method);
    }
}

#[test]
fn parameters_that_cannot_be_trained_are_named() {
    let tensor = |kind| Tensor::zeros([2], (kind, Device::Cpu));
    let leaf = || tensor(Kind::Float).set_requires_grad(true);
    let refused = |tensors: Vec<(&str, Tensor)>| {
        let parameters = tensors.into_iter().map(|(name, tensor)| (name.to_owned(), tensor)).collect();
        let error = Optimizer::new(Method::adam(), parameters).unwrap_err().to_string();
        error.strip_prefix("the parameter ").unwrap().replace(" cannot be trained", "")
    };
    assert_eq!(refused(vec![("a", leaf()), ("a", leaf())]), "a: another one has the same name");
    assert_eq!(refused(vec![("a", leaf()), ("b", tensor(Kind::Float))]), "b: it does not require a gradient");
    assert_eq!(refused(vec![("a", leaf() * 2.0)]), "a: it is computed from other tensors");
    let half = tensor(Kind::BFloat16).set_requires_grad(true);
    assert_eq!(refused(vec![("a", half)]), "a: it is neither f32 nor f64");
}

#[test]
fn a_bad_learning_rate_changes_nothing() {
    let mut optimizer = Optimizer::new(Method::adam(), start(Kind::Double)).unwrap();
    loss(optimizer.parameters(), 1).backward();
    for rate in [-0.1, f64::NAN, f64::INFINITY] {
        let error = optimizer.step(rate).unwrap_err();
        assert!(error.to_string().starts_with("learning_rate is "), "{error}");
    }
    same_bits("rate", optimizer.parameters(), &start(Kind::Double));
}

#[test]
fn gradients_that_are_not_finite_are_reported_and_kept() {
    let mut parameters = start(Kind::Float);
    assert_eq!(clip_gradient_norm(&parameters, 1.0).unwrap(), 0.0);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = clip_gradient_norm(&parameters, bad).unwrap_err();
        assert!(error.to_string().starts_with("max_norm is "), "{error}");
    }
    let gradients = |factors: [f64; 3], parameters: &mut [(String, Tensor)]| {
        for ((_, parameter), factor) in parameters.iter_mut().zip(factors) {
            parameter.zero_grad();
            (parameter.sum(Kind::Float) * factor).backward();
        }
    };
    let refused = |parameters: &[(String, Tensor)]| match clip_gradient_norm(parameters, 1.0) {
        Err(NnError::GradientNorm { of, norm }) => (of, norm),
        other => panic!("{other:?}"),
    };
    gradients([1.0, f64::INFINITY, f64::NAN], &mut parameters);
    assert_eq!(refused(&parameters), ("v".to_owned(), f64::INFINITY));
    gradients([1.0, 2.0, f64::NAN], &mut parameters);
    let (of, norm) = refused(&parameters);
    assert!(of == "u" && norm.is_nan());
    assert_eq!(values(&parameters[0].1.grad()), [1.0; 12]);

    // √12 · 5 = 17.3 and √4 · 0.5 = 1 with u's √2 · 0: within the limit nothing changes, above it all shrink.
    gradients([5.0, 0.5, 0.0], &mut parameters);
    let norm = clip_gradient_norm(&parameters, 20.0).unwrap();
    assert!((norm - 301f64.sqrt()).abs() < 1e-5);
    assert_eq!(values(&parameters[1].1.grad()), [0.5; 4]);
    clip_gradient_norm(&parameters, 1.0).unwrap();
    assert!((clip_gradient_norm(&parameters, 1.0).unwrap() - 1.0).abs() < 1e-6);
}

#[test]
fn parameters_keep_their_memory_and_lose_their_gradients() {
    let mut optimizer = Optimizer::new(Method::adam(), start(Kind::Float)).unwrap();
    let addresses = |optimizer: &Optimizer| -> Vec<_> {
        optimizer.parameters().iter().map(|(_, parameter)| parameter.data_ptr()).collect()
    };
    let before = addresses(&optimizer);
    for step in [1, 2, 4] {
        loss(optimizer.parameters(), step).backward();
        optimizer.step(0.1).unwrap();
        assert!(optimizer.parameters().iter().all(|(_, parameter)| parameter.grad().defined()));
        optimizer.zero_grad().unwrap();
        assert!(optimizer.parameters().iter().all(|(_, parameter)| !parameter.grad().defined()));
    }
    assert_eq!(before, addresses(&optimizer));
}
