//! Training steps of one process or of several ranks, and sums over ranks: `bench_ranks STEPS THREADS` prints JSON; under
//! `mpirun`, its first rank does.
//!
//! The network is the paper's for LIDC on batches of 4 images of 128². Numbers are made up: only time is measured.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use ssn_core::Lattice;
use ssn_core::random::fill_normals;
use ssn_data::{Batch, Origin, Replica};
use ssn_nn::communicator::{Communicator, is_root};
use ssn_nn::{Execution, LearningRate, Method, Model, ModelConfig, Precision, Schedule, Warmup};
use ssn_train::{LossConfig, Trainer};
use tch::Device;

const ITEMS: usize = 4;
const SIDE: usize = 128;
/// What ranks sum: the statistics of a batch norm, a small gradient, a bucket of gradients, all gradients of the network.
const BYTES: [usize; 4] = [1 << 10, 64 << 10, 4 << 20, 40 << 20];

fn batch(number: u64, share: Replica) -> Result<Batch, Box<dyn Error>> {
    let items = share.items(ITEMS)?;
    let mut images = vec![0.0; items.len() * SIDE * SIDE];
    fill_normals(number, 0, items.start as u64, &mut images);
    let origin = Origin { case: 0, id: String::new(), rater: Some(0), center: [0; 3] };
    let size = [items.len(), 1, 1, SIDE, SIDE];
    Ok(Batch {
        number,
        first: items.start,
        of: ITEMS,
        image_shape: size,
        grids: vec![Lattice::whole([1, SIDE, SIDE])],
        targets: images.iter().map(|value| u8::from(*value > 0.0)).collect(),
        images,
        target_shape: size,
        masks: None,
        origins: vec![origin; items.len()],
    })
}

/// The median of the seconds that something takes.
fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// Parameters and batch norms of a network: what ranks exchange.
fn exchanged(model: &Model) -> [usize; 2] {
    let parameters = model.parameters().trainable().map(|parameter| parameter.tensor.numel()).sum();
    let entries = model.parameters().entries().iter();
    [parameters, entries.filter(|entry| entry.name.ends_with("running_mean")).count()]
}

fn steps(model: Model, count: u64, ranks: Option<&Arc<dyn Communicator>>) -> Result<f64, Box<dyn Error>> {
    let rate = LearningRate::new(1e-4, Schedule::Constant, Warmup::default(), count + 2)?;
    let mut trainer = Trainer::new(model, Method::adam(), rate, LossConfig::default(), 1)?;
    let mut share = Replica::SINGLE;
    if let Some(ranks) = ranks {
        share = Replica { rank: ranks.rank(), world_size: ranks.world_size() };
        trainer = trainer.with_communicator(ranks.clone(), true)?;
    }
    let mut seconds = vec![];
    for number in 0..count + 2 {
        let batch = batch(number, share)?;
        let start = Instant::now();
        trainer.step(&batch)?;
        // The first ones prepare what the others use.
        if number >= 2 {
            seconds.push(start.elapsed().as_secs_f64());
        }
    }
    Ok(median(seconds))
}

fn sums(bytes: usize, ranks: &dyn Communicator) -> Result<f64, Box<dyn Error>> {
    let mut numbers = vec![1.0f32; bytes / 4];
    let turns = if bytes > 1 << 20 { 20 } else { 500 };
    let mut seconds = vec![];
    for turn in 0..turns + 5 {
        numbers.fill(1.0);
        let start = Instant::now();
        ranks.all_reduce_f32(&mut numbers)?;
        if turn >= 5 {
            seconds.push(start.elapsed().as_secs_f64());
        }
    }
    Ok(median(seconds))
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [count, threads] = arguments.as_slice() else {
        return Err("bench_ranks STEPS THREADS".into());
    };
    tch::set_num_threads(threads.parse()?);
    let world = ssn_data::launched().map(|_| ssn_train::parallel::mpi::MpiWorld::join()).transpose()?;
    let ranks = world.as_ref().map(ssn_train::parallel::mpi::MpiWorld::communicator);
    let model = Model::new(&ModelConfig::lidc(), Execution::on(Device::Cpu, Precision::F32), 1)?;
    let [parameters, norms] = exchanged(&model);
    let step = steps(model, count.parse()?, ranks.as_ref())?;
    let mut found = vec![];
    if let Some(ranks) = &ranks {
        for bytes in BYTES {
            found.push(json!({ "bytes": bytes, "seconds": sums(bytes, &**ranks)? }));
        }
    }
    if is_root(ranks.as_ref()) {
        println!("{}", json!({ "parameters": parameters, "norms": norms, "seconds": step, "sums": found }));
    }
    Ok(())
}
