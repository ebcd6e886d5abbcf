//! A network as TorchScript, for programs that know PyTorch and not us.

use std::fs;
use std::path::Path;

use ssn_io::write_atomically;
use tch::{CModule, Kind, Tensor};

use crate::error::{NnError, Result};
use crate::heads::Prediction;
use crate::layers::Mode;
use crate::model::Model;

/// Writes what a network does in evaluation, atomically.
///
/// The module takes an image of exactly this shape. Weights are constants of it.
///
/// # Shapes
/// `image` `[b, c, d, h, w]` → `[b, (2 + r)·c, v]`: c rows of the mean, c of the diagonal, r·c of the factor, the rank
/// running slowest; or `[b, c, v]` of logits where there is no distribution.
pub fn save_torchscript(path: &Path, model: Model, image: [i64; 5]) -> Result<()> {
    let execution = model.execution();
    for entry in model.parameters().entries() {
        // A constant cannot ask for its gradient.
        let _ = entry.tensor.set_requires_grad(false);
    }
    let input = Tensor::f_zeros(image, (Kind::Float, execution.device))?;
    let mut failed = None;
    let mut forward = |inputs: &[Tensor]| match rows(&model, &inputs[0]) {
        Ok(rows) => vec![rows],
        Err(error) => {
            failed = Some(error);
            vec![inputs[0].shallow_clone()]
        }
    };
    let module = tch::no_grad(|| CModule::create_by_tracing("ssn", "forward", &[input], &mut forward))?;
    if let Some(error) = failed {
        return Err(error);
    }
    let save = |source| NnError::Save { path: path.to_owned(), source };
    let folder = tempfile::tempdir().map_err(save)?;
    let aside = folder.path().join("module.pt");
    module.save(&aside)?;
    let bytes = fs::read(&aside).map_err(save)?;
    write_atomically(path, |out| out.write_all(&bytes)).map_err(|error| save(error.source))
}

/// What a network says about an image, as rows of voxels.
fn rows(model: &Model, image: &Tensor) -> Result<Tensor> {
    Ok(match model.forward(image, None, Mode::Evaluation)? {
        Prediction::Deterministic(logits) => logits,
        Prediction::Stochastic(distribution) => {
            let [mean, diagonal, factor] = distribution.parts();
            Tensor::f_cat(&[mean, diagonal, &factor.f_flatten(1, 2)?], 1)?
        }
    })
}
