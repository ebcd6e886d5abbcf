//! A network as TorchScript, for programs that know PyTorch and not us.

use std::fs;
use std::path::Path;

use ssn_volume::write_atomically;
use tch::{CModule, Kind, Tensor};

use crate::blocks::Mode;
use crate::error::{NetError, Result};
use crate::head::Prediction;
use crate::model::Model;

/// Writes what a network does in evaluation, atomically.
///
/// The module takes an image of exactly this shape and gives a tuple: mean `[b, c, v]`, diagonal `[b, c, v]` and factor
/// `[b, r, c, v]`, or the logits alone where there is no distribution. Weights are constants of it.
///
/// # Shapes
/// `image` `[b, c, d, h, w]`.
pub fn save_torchscript(path: &Path, model: Model, image: [i64; 5]) -> Result<()> {
    let execution = model.execution();
    for entry in model.parameters().entries() {
        // A constant cannot ask for its gradient.
        let _ = entry.tensor.set_requires_grad(false);
    }
    let input = Tensor::f_zeros(image, (Kind::Float, execution.device))?;
    let mut failed = None;
    let mut forward = |inputs: &[Tensor]| match model.forward(&inputs[0], None, Mode::Evaluation) {
        Ok(Prediction::Deterministic(logits)) => vec![logits],
        Ok(Prediction::Stochastic(distribution)) => {
            distribution.parts().iter().map(|part| part.shallow_clone()).collect()
        }
        Err(error) => {
            failed = Some(error);
            vec![inputs[0].shallow_clone()]
        }
    };
    let module = tch::no_grad(|| CModule::create_by_tracing("ssn", "forward", &[input], &mut forward))?;
    if let Some(error) = failed {
        return Err(error);
    }
    let save = |source| NetError::Save { path: path.to_owned(), source };
    let folder = tempfile::tempdir().map_err(save)?;
    let aside = folder.path().join("module.pt");
    module.save(&aside)?;
    let bytes = fs::read(&aside).map_err(save)?;
    write_atomically(path, |out| out.write_all(&bytes)).map_err(|error| save(error.source))
}
