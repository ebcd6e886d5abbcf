//! Learning on libtorch: distributions of logits as tensors, the losses that train them, and training.
//!
//! Data flows one way: a [`Model`] makes a [`Prediction`] of an image, a loss compares it with a [`Target`].
//!
//! Letters in shapes: `b` batch, `c` channels or classes, `f` features, `d h w` space, `v` voxels, `r` rank,
//! `m` Monte-Carlo samples, `t` targets of an image.
//!
//! ```
//! use ssn_core::{Sampler, Steering};
//! use ssn_net::{Execution, Mode, Model, ModelConfig, Precision, Prediction};
//! use tch::{Device, Kind, Tensor};
//!
//! // The paper's network with its first weights: one forward pass, and samples without the network from then on.
//! let model = Model::new(&ModelConfig::lidc(), Execution::cpu(Precision::F32), 0)?;
//! let image = Tensor::zeros([1, 1, 1, 128, 128], (Kind::Float, Device::Cpu));
//! let prediction = tch::no_grad(|| model.forward(&image, None, Mode::Evaluation))?;
//! let Prediction::Stochastic(distribution) = prediction else { unreachable!("the head is stochastic") };
//! let distribution = distribution.to_host(0)?;
//! let samples = Sampler::new(&distribution, 42, &Steering::default())?.labels(0..3)?;
//! assert!(samples[0] != samples[1] && samples[0].labels().len() == 128 * 128);
//! # Ok::<(), ssn_net::NetError>(())
//! ```

pub mod average;
pub mod backbones;
pub mod blocks;
pub mod checkpoint;
pub mod clip;
pub mod distribution;
pub mod error;
pub mod head;
pub mod interval;
pub mod latent;
pub mod loss;
pub mod model;
pub mod noise;
pub mod optim;
pub mod parameters;
mod purpose;
pub mod ranks;
pub mod run;
pub mod schedule;
pub mod space;
pub mod target;
pub mod tiles;
pub mod toy;
pub mod train;
pub mod vector_functions;
pub mod weights;
pub mod whole_image;

pub use blocks::Mode;
pub use clip::clip_gradient_norm;
pub use distribution::LowRankNormal;
pub use error::{NetError, Result};
pub use head::{HeadConfig, PhisegConfig, Prediction, ProbUnetConfig, StochasticConfig};
pub use loss::monte_carlo_loss;
pub use model::{Execution, MemoryOrder, Model, ModelConfig, Precision};
pub use noise::{Noise, NoiseSource, Pairing, StepNoise};
pub use optim::{Method, Optimizer};
pub use schedule::{LearningRate, Schedule, Warmup};
pub use target::Target;
pub use train::{LossConfig, StepReport, Trainer};
pub use vector_functions::settle_vector_functions;
