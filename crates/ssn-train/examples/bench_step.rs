//! One training step on the CPU: `bench_step NETWORK PRECISION STEPS` prints JSON.
//!
//! NETWORK is `unet` (the paper's for LIDC, batch 4 of 128²) or `deepmedic` (the paper's for BraTS, one patch of 110³), PRECISION
//! `f32` or `bf16`. A step is forward, loss, backward and update, with fresh noise.
//! Before and after, the deterministic network on the same trunk takes the same steps, so that the cost of the
//! stochastic part shows.

use std::error::Error;
use std::time::Instant;

use ssn_nn::loss::mean_loss;
use ssn_nn::parameters::StepContext;
use ssn_nn::{
    Execution, HeadConfig, Method, Mode, Model, ModelConfig, NoiseSource, Optimizer, Pairing, Precision,
    Prediction, StepNoise, Target, monte_carlo_loss,
};
use tch::{Device, Kind, Tensor};

const SAMPLES: i64 = 20;

struct Task {
    config: ModelConfig,
    image: Tensor,
    target: Target,
    mask: Option<Tensor>,
    method: Method,
    pairing: Pairing,
}

fn task(network: &str) -> Result<Task, Box<dyn Error>> {
    let options = (Kind::Float, Device::Cpu);
    let labels = |classes, v: i64, b: i64| {
        Target::classes(Tensor::randint(classes, [b, 1, v], (Kind::Int64, Device::Cpu)), classes)
    };
    Ok(match network {
        "unet" => Task {
            config: ModelConfig::lidc(),
            image: Tensor::randn([4, 1, 1, 128, 128], options),
            target: labels(2, 128 * 128, 4)?,
            mask: None,
            method: Method::adam(),
            pairing: Pairing::Independent,
        },
        "deepmedic" => Task {
            config: ModelConfig::brats(),
            image: Tensor::randn([1, 4, 110, 110, 110], options),
            target: labels(4, 27_000, 1)?,
            mask: Some(Tensor::ones([1, 30, 30, 30], options)),
            method: Method::RmsProp {
                alpha: 0.9,
                momentum: 0.6,
                eps: 1e-8,
                weight_decay: 1e-4,
                centered: false,
            },
            pairing: Pairing::Antithetic,
        },
        other => return Err(format!("{other} is no network of this benchmark: unet or deepmedic").into()),
    })
}

/// A network with its optimizer.
struct Learner {
    model: Model,
    optimizer: Optimizer,
}

impl Learner {
    fn new(config: &ModelConfig, task: &Task, execution: Execution) -> Result<Self, Box<dyn Error>> {
        let model = Model::new(config, execution, 0)?;
        let optimizer = Optimizer::new(task.method, model.parameters().named_trainable())?;
        Ok(Self { model, optimizer })
    }

    /// Seconds of one step: forward, loss, backward, and the update.
    fn step(&mut self, task: &Task, number: u64) -> Result<[f64; 4], Box<dyn Error>> {
        let start = Instant::now();
        self.optimizer.zero_grad()?;
        let step = StepContext { dropout_seed: number, ..StepContext::default() };
        self.model.parameters().set_step(step);
        let prediction = self.model.forward(&task.image, task.mask.as_ref(), Mode::Training)?;
        let forward = start.elapsed().as_secs_f64();
        let loss = match &prediction {
            Prediction::Deterministic(logits) => mean_loss(logits, &task.target)?,
            Prediction::Stochastic(d) => {
                let noise = StepNoise::new(1, number, d.noise_shape(SAMPLES), task.pairing)?;
                monte_carlo_loss(d, &task.target, NoiseSource::Step(&noise))?.loss
            }
        };
        let loss = loss.mean(Kind::Double);
        let with_loss = start.elapsed().as_secs_f64();
        loss.backward();
        let with_backward = start.elapsed().as_secs_f64();
        self.optimizer.step(1e-3)?;
        let all = start.elapsed().as_secs_f64();
        if !loss.double_value(&[]).is_finite() {
            return Err("the loss is not finite".into());
        }
        Ok([forward, with_loss - forward, with_backward - with_loss, all - with_backward])
    }
}

/// The times of the steps of a new network; the first two, which fill caches and compile kernels, are left out.
fn run(
    config: &ModelConfig,
    task: &Task,
    execution: Execution,
    steps: u64,
) -> Result<Vec<[f64; 4]>, Box<dyn Error>> {
    let mut learner = Learner::new(config, task, execution)?;
    let times: Result<Vec<_>, _> = (0..steps + 2).map(|number| learner.step(task, number)).collect();
    Ok(times?.split_off(2))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [network, precision, steps] = arguments.as_slice() else {
        return Err("bench_step NETWORK PRECISION STEPS".into());
    };
    let precision = match precision.as_str() {
        "f32" => Precision::F32,
        "bf16" => Precision::Bf16,
        other => return Err(format!("{other} is no precision of this benchmark: f32 or bf16").into()),
    };
    let steps: u64 = steps.parse()?;
    if steps == 0 {
        return Err("STEPS must be at least 1".into());
    }
    tch::manual_seed(0);
    let task = task(network)?;
    let execution = Execution::cpu(precision);
    // The same trunk with logits in place of the distribution.
    let plain = ModelConfig { head: HeadConfig::Deterministic, ..task.config.clone() };
    let mut plain_steps = run(&plain, &task, execution, steps.div_ceil(2))?;
    let parts = run(&task.config, &task, execution, steps)?;
    plain_steps.extend(run(&plain, &task, execution, steps.div_ceil(2))?);
    let of = |steps: &[[f64; 4]], value: fn(&[f64; 4]) -> f64| median(steps.iter().map(value).collect());
    let learning: fn(&[f64; 4]) -> f64 = |part| part[..3].iter().sum();
    let (stochastic, deterministic) = (of(&parts, learning), of(&plain_steps, learning));
    println!(
        "{}",
        serde_json::json!({
            "seconds": of(&parts, |part| part.iter().sum()), "forward": of(&parts, |part| part[0]),
            "loss": of(&parts, |part| part[1]), "backward": of(&parts, |part| part[2]),
            "update": of(&parts, |part| part[3]), "learning": stochastic, "deterministic": deterministic,
            "overhead": stochastic / deterministic - 1.0,
            "steps": steps, "threads": tch::get_num_threads(),
        })
    );
    Ok(())
}
