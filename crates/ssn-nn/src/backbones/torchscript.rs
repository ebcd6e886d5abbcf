//! A TorchScript file as backbone, trained with the rest.

use std::cell::RefCell;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssn_core::random::derive_seed;
use ssn_io::torch_file::without_debug_records;
use tch::{CModule, Kind, Tensor};

use super::{Backbone, BackbonePlan, Pass};
use crate::error::{NnError, Result};
use crate::layers::Mode;
use crate::parameters::{Role, Scope, SharedStep};
use crate::random::DROPOUT;
use crate::space;

/// The settings of a TorchScript backbone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TorchScriptConfig {
    /// The file, as `torch.jit.script(network).save(…)` writes it.
    pub torchscript: PathBuf,
    /// The channels of the feature map that it gives.
    pub features: i64,
}

/// A network from a TorchScript file. It computes in its own precision, whatever the model's. It gets `[b, c, h, w]` where the depth is 1, and `[b, c, d, h, w]` otherwise.
#[derive(Debug)]
pub struct TorchScript {
    // Training and evaluation are a state of the module; a forward pass sets it.
    module: RefCell<CModule>,
    /// The type of its numbers, which its input must have.
    kind: Kind,
    /// Seeds its dropout.
    step: SharedStep,
    config: TorchScriptConfig,
}

impl TorchScript {
    /// Loads the file and registers its parameters under their own names.
    pub fn new(scope: &mut Scope, config: &TorchScriptConfig) -> Result<Self> {
        let bytes = ssn_io::read_file(&config.torchscript).map_err(|error| config.problem(error))?;
        Self::from_bytes(scope, config, &bytes)
    }

    /// The same from the bytes of the file, as a saved model holds them.
    pub fn from_bytes(scope: &mut Scope, config: &TorchScriptConfig, mut bytes: &[u8]) -> Result<Self> {
        let unreadable = |error: tch::TchError| {
            let first = error.to_string().lines().next().unwrap_or_default().to_owned();
            config.problem(format!(
                "it is no TorchScript file ({first}); export it with torch.jit.script(network).save(…)"
            ))
        };
        let module = CModule::load_data_on_device(&mut bytes, scope.device()).map_err(unreadable)?;
        let (mut trained, mut kind) = (false, Kind::Float);
        for (name, tensor) in module.named_parameters()? {
            let role = if tensor.requires_grad() { Role::Trainable } else { Role::Buffer };
            trained |= role == Role::Trainable;
            kind = tensor.kind();
            let _ = scope.register(&name, tensor, role)?;
        }
        // Running statistics; counters of batches are the same on all ranks.
        for (name, tensor) in ssn_cuda::autograd::module_buffers(&module)? {
            if tensor.kind() == kind {
                let _ = scope.register(&name, tensor, Role::Buffer)?;
            }
        }
        if !trained {
            return Err(
                config.problem("it has no parameters that can be trained; export it without freezing it")
            );
        }
        Ok(Self { module: RefCell::new(module), kind, step: scope.step(), config: config.clone() })
    }
}

impl Backbone for TorchScript {
    /// Returns the network with its present parameters and statistics, as a TorchScript file.
    fn program(&self) -> Result<Option<Vec<u8>>> {
        let folder = tempfile::tempdir().map_err(|error| self.config.problem(error))?;
        let path = folder.path().join("backbone.pt");
        // Training or evaluation is part of the file: the same network gives the same one.
        let mut module = self.module.borrow_mut();
        module.f_set_eval()?;
        module.save(&path)?;
        let bytes = ssn_io::read_file(&path).map_err(|error| self.config.problem(error))?;
        without_debug_records(&bytes).map(Some).map_err(|error| self.config.problem(error))
    }

    fn forward(&self, pass: &Pass<'_>) -> Result<Tensor> {
        let image = pass.image()?;
        let mut module = self.module.borrow_mut();
        match pass.mode {
            Mode::Training => {
                module.f_set_train()?;
                // Its dropout draws from libtorch's own generators: a step draws the same noise in every run, and a
                // resumed run needs no state of them.
                let (seed, first) = self.step.dropout();
                tch::manual_seed(derive_seed(seed, DROPOUT, first as u64) as i64);
            }
            Mode::Evaluation => module.f_set_eval()?,
        }
        let planar = space::spatial(image)?[0] == 1;
        let input = if planar { space::squeeze_depth(image)? } else { image.shallow_clone() };
        let failed = |error: tch::TchError| {
            let text = error.to_string();
            let reason = text.lines().map(str::trim).rfind(|line| line.starts_with("RuntimeError"));
            let reason = reason.or(text.lines().next()).unwrap_or_default().to_owned();
            self.config.problem(format!("it fails on an image of shape {:?}: {reason}", input.size()))
        };
        let features = module.forward_ts(&[input.f_to_kind(self.kind)?]).map_err(failed)?;
        let mut expected = input.size();
        expected[1] = self.config.features;
        if features.size() != expected {
            return Err(self.config.problem(format!(
                "its output has shape {:?}, but {expected:?} is needed; set backbone.features to the channels of its \
                 last layer, and let it give features at every voxel of the image",
                features.size(),
            )));
        }
        if planar { space::unsqueeze_depth(&features) } else { Ok(features) }
    }
}

impl BackbonePlan for TorchScriptConfig {
    fn features(&self) -> i64 {
        self.features
    }

    fn build(&self, scope: &mut Scope<'_>, _channels: i64) -> Result<Box<dyn Backbone>> {
        Ok(Box::new(TorchScript::new(scope, self)?))
    }

    fn build_program(&self, scope: &mut Scope<'_>, program: &[u8], from: &Path) -> Result<Box<dyn Backbone>> {
        // Its errors name the file that holds it now.
        let config = Self { torchscript: from.to_owned(), ..self.clone() };
        Ok(Box::new(TorchScript::from_bytes(scope, &config, program)?))
    }

    /// Its batch norm sees only the items of its rank.
    fn can_sync_batch_norm(&self) -> bool {
        false
    }

    fn describe(&self, _name: &str) -> String {
        "TorchScript network".to_owned()
    }
}

impl TorchScriptConfig {
    fn problem(&self, reason: impl Display) -> NnError {
        NnError::file(&self.torchscript, reason)
    }
}
