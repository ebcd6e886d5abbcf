//! Training on a GPU: `bench_gpu step NETWORK PRECISION STEPS` prints JSON.
//!
//! NETWORK is `unet` (the paper's for LIDC, batch 12 of 128²) or `deepmedic` (the paper's for BraTS, batch 10 of 110³), or with
//! the energy loss and four raters `unet-energy`; PRECISION `f32` or `bf16`. A step is forward, loss, backward and update with fresh noise, from a batch that is on the GPU to
//! results on the host, as for the peer. The last step is what a profiler sees that waits for the program, such as
//! `ncu --profile-from-start off --graph-profiling node`.

use std::error::Error;
use std::time::Instant;

use ssn_core::Lattice;
use ssn_data::Batch;
use ssn_nn::NnError;
use ssn_nn::{Execution, LearningRate, Method, Model, ModelConfig, Pairing, Precision, Schedule, Warmup};
use ssn_train::{LossConfig, LossKind, Trainer};
use tch::Device;

/// Steps that do not count: libtorch chooses convolutions, kernels are compiled, the step is recorded.
const WARM_UP: u64 = 8;

fn task(network: &str) -> Result<(ModelConfig, Method, LossConfig, Batch), Box<dyn Error>> {
    let batch = |config: &ModelConfig, image_shape: [usize; 5], target_shape: [usize; 5], mask: bool| {
        let size = [2, 3, 4].map(|axis| image_shape[axis]);
        let seen = config.backbone.plan().input_grids(size.map(|n| n as i64))?;
        let grids = seen.unwrap_or_else(|| vec![Lattice::whole(size)]);
        let each: usize = grids.iter().map(Lattice::voxels).sum();
        let mut state = 1u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 8
        };
        let images = (0..image_shape[0] * image_shape[1] * each)
            .map(|_| random() as f32 / (1 << 22) as f32 - 2.0)
            .collect();
        let voxels: usize = target_shape.iter().product();
        Ok::<_, NnError>(Batch {
            number: 0,
            first: 0,
            of: image_shape[0],
            image_shape,
            grids,
            images,
            target_shape,
            targets: (0..voxels).map(|_| (random() % config.classes as u32) as u8).collect(),
            masks: mask.then(|| vec![1; voxels]),
            origins: vec![],
        })
    };
    Ok(match network {
        "unet" => {
            let config = ModelConfig::lidc();
            let batch = batch(&config, [12, 1, 1, 128, 128], [12, 1, 1, 128, 128], false)?;
            (config, Method::adam(), LossConfig::default(), batch)
        }
        "unet-energy" => {
            let config = ModelConfig::lidc();
            let batch = batch(&config, [12, 1, 1, 128, 128], [12, 4, 1, 128, 128], false)?;
            let loss = LossConfig { kind: LossKind::Energy, ..LossConfig::default() };
            (config, Method::adam(), loss, batch)
        }
        "deepmedic" => {
            let method =
                Method::RmsProp { alpha: 0.9, momentum: 0.6, eps: 1e-8, weight_decay: 1e-4, centered: false };
            let loss = LossConfig { pairing: Pairing::Antithetic, ..LossConfig::default() };
            let config = ModelConfig::brats();
            let batch = batch(&config, [10, 4, 110, 110, 110], [10, 1, 30, 30, 30], true)?;
            (config, method, loss, batch)
        }
        other => {
            return Err(
                format!("{other} is no network of this benchmark: unet, unet-energy or deepmedic").into()
            );
        }
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let begin = Instant::now();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ["step", network, precision, steps] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..]
    else {
        return Err("bench_gpu step NETWORK PRECISION STEPS".into());
    };
    let precision = match precision {
        "f32" => Precision::F32,
        "bf16" => Precision::Bf16,
        other => return Err(format!("{other} is no precision of this benchmark: f32 or bf16").into()),
    };
    let steps: u64 = steps.parse()?;
    let device = Device::Cuda(0);
    ssn_cuda::load()?;
    let (config, method, loss, mut batch) = task(network)?;
    let model = Model::new(&config, Execution::on(device, precision), 0)?;
    let rate = LearningRate::new(1e-3, Schedule::Constant, Warmup::default(), steps + WARM_UP)?;
    let mut trainer = Trainer::new(model, method, rate, loss, 0)?;
    let mut seconds = vec![];
    let (mut last, mut ready, mut on_gpu) = (f64::NAN, 0.0, 0.0);
    for number in 0..steps + WARM_UP {
        batch.number = number;
        trainer.stage(&batch)?;
        ssn_cuda::synchronize()?;
        let start = Instant::now();
        let is_profiled = number + 1 == steps + WARM_UP;
        if is_profiled {
            ssn_cuda::profile(true)?;
        }
        last = trainer.step(&batch)?.loss;
        if is_profiled {
            ssn_cuda::profile(false)?;
        }
        if number >= WARM_UP {
            seconds.push(start.elapsed().as_secs_f64());
        } else {
            (ready, on_gpu) = (begin.elapsed().as_secs_f64(), trainer.gpu_seconds().unwrap_or(0.0));
        }
    }
    seconds.sort_by(f64::total_cmp);
    let [in_tensors, taken] = ssn_cuda::peak_memory(device)?;
    let on_gpu = (trainer.gpu_seconds().unwrap_or(0.0) - on_gpu) / seconds.len() as f64;
    println!(
        "{}",
        serde_json::json!({
            "seconds": seconds[seconds.len() / 2], "gpu_seconds": on_gpu, "ready_seconds": ready, "steps": steps,
            "loss": last, "peak_bytes": in_tensors, "reserved_bytes": taken,
            "device": ssn_cuda::device_properties(device)?.name,
        })
    );
    Ok(())
}
