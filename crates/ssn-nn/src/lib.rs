//! Networks on libtorch: layers, backbones, heads, distributions of logits as tensors, and the losses that train them.
//!
//! Data flows one way: a [`Model`] makes a [`Prediction`] of an image, a loss compares it with a [`Target`].
//!
//! Letters in shapes: `b` batch, `c` channels or classes, `f` features, `d h w` space, `v` voxels, `r` rank,
//! `m` Monte-Carlo samples, `t` targets of an image.
//!
//! ```
//! use ssn_core::{Sampler, Steering};
//! use ssn_nn::{Execution, Mode, Model, ModelConfig, Precision, Prediction};
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
//! # Ok::<(), ssn_nn::NnError>(())
//! ```

pub mod backbones;
pub mod communicator;
pub mod distribution;
pub mod error;
pub mod heads;
pub mod layers;
pub mod loss;
pub mod model;
pub mod optim;
pub mod parameters;
pub mod random;
pub mod space;

pub use distribution::LowRankNormalTensors;
pub use error::{NnError, Result};
pub use heads::{HeadConfig, PhisegConfig, Prediction, ProbUnetConfig, StochasticConfig};
pub use layers::Mode;
pub use loss::{Target, monte_carlo_loss};
pub use model::weights;
pub use model::{Execution, Model, ModelConfig, Precision};
pub use optim::{LearningRate, Method, Optimizer, Schedule, Warmup, clip_gradient_norm};
pub use random::{Noise, NoiseSource, Pairing, StepNoise};
