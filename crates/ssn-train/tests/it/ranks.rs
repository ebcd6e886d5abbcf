//! Ranks train the network that one process trains: the same losses and the same weights, up to rounding.

use std::sync::Arc;
use std::thread;

use ssn_core::Lattice;
use ssn_core::random::fill_normals;
use ssn_data::{Batch, Origin, Replica};
use ssn_io::ErrorKind;
use ssn_nn::backbones::{BackboneConfig, DeepMedicConfig, DeepMedicOutput};
use ssn_nn::communicator::Communicator;
use ssn_nn::communicator::ThreadCommunicator;
use ssn_nn::{
    Execution, HeadConfig, LearningRate, Method, Model, ModelConfig, Precision, ProbUnetConfig, Schedule,
    StochasticConfig, Warmup,
};
use ssn_train::{LossConfig, Trainer};
use tch::{Device, Kind};

const STEPS: u64 = 50;

fn unet(norm: &str) -> ModelConfig {
    let text = format!(
        r#"
        channels = 1
        classes = 2
        [backbone.unet]
        widths = [4, 6, 8]
        strides = [[1, 2, 2], [1, 2, 2]]
        kernels = [[1, 3, 3], [1, 3, 3], [1, 3, 3]]
        decoder_widths = [6, 4]
        norm = {{ kind = "{norm}" }}
        activation = "leaky-relu"
        [head.stochastic]
        rank = 3
    "#
    );
    toml::from_str(&text).unwrap()
}

fn deepmedic() -> ModelConfig {
    let backbone = DeepMedicConfig {
        scales: vec![[3; 3], [1; 3]],
        feature_maps: vec![4; 4],
        fully_connected: vec![6, 6],
        output: DeepMedicOutput::Features(4),
        ..DeepMedicConfig::brats()
    };
    ModelConfig {
        channels: 1,
        classes: 2,
        backbone: BackboneConfig::Deepmedic(backbone),
        head: HeadConfig::Stochastic(StochasticConfig { rank: 2, ..StochasticConfig::default() }),
    }
}

/// A part of the batch of a number: something that can be learned, the sign of the image.
fn batch(number: u64, [image, target]: [[usize; 3]; 2], of: usize, share: Replica) -> Batch {
    let items = share.items(of).unwrap();
    let voxels = |size: [usize; 3]| size.iter().product::<usize>();
    let (mut images, mut targets) = (vec![], vec![]);
    for item in items.clone() {
        let mut values = vec![0.0; voxels(image)];
        fill_normals(number, 0, item as u64, &mut values);
        let at = |place: usize| {
            let [_, h, w] = target;
            let [d, h, w] = [place / (h * w), place / w % h, place % w];
            let [d, h, w] = [0, 1, 2].map(|axis| [d, h, w][axis] + (image[axis] - target[axis]) / 2);
            (d * image[1] + h) * image[2] + w
        };
        targets.extend((0..voxels(target)).map(|place| u8::from(values[at(place)] > 0.0)));
        images.extend(values);
    }
    let (b, [d, h, w], [td, th, tw]) = (items.len(), image, target);
    let origin = Origin { case: 0, id: String::new(), rater: Some(0), center: [0; 3] };
    Batch {
        number,
        first: items.start,
        of,
        image_shape: [b, 1, d, h, w],
        grids: vec![Lattice::whole(image)],
        images,
        target_shape: [b, 1, td, th, tw],
        targets,
        masks: None,
        origins: vec![origin; b],
    }
}

/// What a test trains.
#[derive(Clone)]
struct Task {
    config: ModelConfig,
    precision: Precision,
    sizes: [[usize; 3]; 2],
    batch: usize,
    syncs_batch_norm: bool,
}

/// The losses of all steps, and all tensors of the model after them.
type Outcome = (Vec<f64>, Vec<(String, Vec<f64>)>);

/// Trains alone, or as one of several ranks.
fn train(task: &Task, comm: Option<Arc<dyn Communicator>>) -> Outcome {
    tch::set_num_threads(1);
    let model = Model::new(&task.config, Execution::on(Device::Cpu, task.precision), 3).unwrap();
    let rate = LearningRate::new(1e-3, Schedule::Constant, Warmup::default(), 1000).unwrap();
    let loss = LossConfig { samples: 4, pretrain_steps: 5, ..LossConfig::default() };
    let mut trainer = Trainer::new(model, Method::adam(), rate, loss, 9).unwrap();
    let share = comm
        .as_ref()
        .map_or(Replica::SINGLE, |comm| Replica { rank: comm.rank(), world_size: comm.world_size() });
    if let Some(comm) = comm {
        trainer = trainer.with_communicator(comm, task.syncs_batch_norm).unwrap();
    }
    let losses =
        (0..STEPS).map(|k| trainer.step(&batch(k, task.sizes, task.batch, share)).unwrap().loss).collect();
    let tensors = trainer.model().parameters().entries().iter();
    let tensors = tensors.map(|entry| {
        let values = entry.tensor.detach().to_kind(Kind::Double).flatten(0, -1);
        (entry.name.clone(), values.try_into().unwrap())
    });
    (losses, tensors.collect())
}

fn train_by(task: &Task, count: usize) -> Vec<Outcome> {
    thread::scope(|scope| {
        let threads: Vec<_> = ThreadCommunicator::new(count)
            .into_iter()
            .map(|comm| scope.spawn(move || train(task, Some(comm as Arc<dyn Communicator>))))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// ‖a − b‖ / ‖b‖.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|x| x * x).sum::<f64>().sqrt();
    norm(&mut a.iter().zip(b).map(|(a, b)| a - b)) / norm(&mut b.iter().copied()).max(1e-300)
}

fn all(tensors: &[(String, Vec<f64>)]) -> Vec<f64> {
    tensors.iter().flat_map(|(_, values)| values).copied().collect()
}

fn agree(task: &Task, counts: &[usize], most: f64) {
    let alone = train(task, None);
    assert!(alone.0[STEPS as usize - 1] < alone.0[5], "nothing was learned: {:?}", alone.0);
    for &count in counts {
        let comm = train_by(task, count);
        for (rank, found) in comm.iter().enumerate() {
            assert_eq!(found, &comm[0], "rank {rank} of {count} has other weights than rank 0");
        }
        let (losses, weights) = (distance(&comm[0].0, &alone.0), distance(&all(&comm[0].1), &all(&alone.1)));
        eprintln!(
            "{count} ranks, {:?}: losses differ by {losses:.1e}, weights by {weights:.1e}",
            task.precision
        );
        assert!(losses < most && weights < most, "{count} ranks: {losses:e} and {weights:e}");
    }
}

const IN_PLANE: [[usize; 3]; 2] = [[1, 16, 16], [1, 16, 16]];

#[test]
fn ranks_train_a_unet_as_one_process_does() {
    for (precision, most) in [(Precision::F64, 1e-9), (Precision::F32, 1e-4)] {
        let task =
            Task { config: unet("batch"), precision, sizes: IN_PLANE, batch: 6, syncs_batch_norm: true };
        agree(&task, &[2, 4], most);
    }
}

#[test]
fn ranks_train_a_deepmedic_as_one_process_does() {
    for (precision, most) in [(Precision::F64, 1e-9), (Precision::F32, 1e-4)] {
        let sizes = [[30; 3], [6; 3]];
        agree(
            &Task { config: deepmedic(), precision, sizes, batch: 4, syncs_batch_norm: true },
            &[2, 4],
            most,
        );
    }
}

#[test]
fn ranks_train_other_norms_and_networks_as_one_process_does() {
    let latent = HeadConfig::ProbUnet(ProbUnetConfig { latent: 3, ..ProbUnetConfig::default() });
    let latent = ModelConfig { head: latent, ..unet("batch") };
    // Norms of single images do not care.
    for (config, syncs_batch_norm) in [(unet("instance"), true), (unet("instance"), false), (latent, true)] {
        agree(
            &Task { config, precision: Precision::F64, sizes: IN_PLANE, batch: 3, syncs_batch_norm },
            &[3],
            1e-9,
        );
    }
}

#[test]
fn ranks_that_normalize_by_themselves_agree_and_learn() {
    let task = Task {
        config: unet("batch"),
        precision: Precision::F64,
        sizes: IN_PLANE,
        batch: 5,
        syncs_batch_norm: false,
    };
    let (alone, comm) = (train(&task, None), train_by(&task, 2));
    // Weights and running statistics, though each has seen other items.
    assert_eq!(comm[0], comm[1]);
    let weights = distance(&all(&comm[0].1), &all(&alone.1));
    assert!(weights > 1e-6, "statistics were those of the whole batch: {weights:e}");
    let last = |losses: &[f64]| losses[40..].iter().sum::<f64>() / 10.0;
    let ratio = last(&comm[0].0) / last(&alone.0);
    eprintln!("the last losses are {ratio:.3} times those of whole batches");
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
}

#[test]
fn a_step_that_is_not_finite_on_one_rank_is_applied_on_none() {
    let task = Task {
        config: unet("batch"),
        precision: Precision::F32,
        sizes: IN_PLANE,
        batch: 4,
        syncs_batch_norm: true,
    };
    let run = |comm: Arc<ThreadCommunicator>| {
        let share = Replica { rank: comm.rank(), world_size: 2 };
        let model = Model::new(&task.config, Execution::on(Device::Cpu, task.precision), 3).unwrap();
        let rate = LearningRate::new(1e-3, Schedule::Constant, Warmup::default(), 1000).unwrap();
        let trainer = Trainer::new(model, Method::adam(), rate, LossConfig::default(), 9).unwrap();
        let mut trainer = trainer.with_communicator(comm, true).unwrap();
        let weights = |trainer: &Trainer| -> Vec<Vec<f32>> {
            let entries = trainer.model().parameters().entries().iter();
            entries.map(|entry| entry.tensor.detach().flatten(0, -1).try_into().unwrap()).collect()
        };
        trainer.step(&batch(0, task.sizes, task.batch, share)).unwrap();
        let before = weights(&trainer);
        let mut bad = batch(1, task.sizes, task.batch, share);
        if share.rank == 1 {
            bad.images[5] = f32::NAN;
        }
        let error = trainer.step(&bad).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NonFinite, "{error}");
        assert_eq!(weights(&trainer), before);
        trainer.step(&batch(2, task.sizes, task.batch, share)).unwrap().loss
    };
    let losses: Vec<f64> = thread::scope(|scope| {
        let threads: Vec<_> =
            ThreadCommunicator::new(2).into_iter().map(|comm| scope.spawn(|| run(comm))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(losses[0], losses[1]);
}
