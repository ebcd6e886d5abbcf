//! Our network, loss and gradients beside golden values of the authors' code.

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;

use safetensors::{Dtype, SafeTensors};
use serde_json::Value;
use ssn_nn::backbones::BackboneConfig;
use ssn_nn::weights::{assign, import, our_name};
use ssn_nn::{
    Execution, Mode, Model, Noise, NoiseSource, Pairing, Precision, Prediction, Target, monte_carlo_loss,
};
use tch::{Device, Kind, Tensor};

/// In double precision everything agrees to this, relative to the largest value of the tensor.
const F64_RELATIVE: f64 = 1e-10;
/// In single precision, the loss and its gradients.
const F32_RELATIVE: f64 = 1e-5;
/// In single precision, the outputs of the network.
const F32_ABSOLUTE: f64 = 1e-4;
/// A gradient that is smaller than this, beside the largest of the network, is zero in exact arithmetic.
const ZERO_BUT_FOR_ROUNDING: f64 = 1e-12;
/// The ε of the network's norms.
const NORM_EPSILON: f64 = 1e-5;

/// One line of the table.
pub struct Line {
    /// What is compared.
    pub what: String,
    /// The precision of our side.
    pub precision: Precision,
    /// The largest difference, and what it may be.
    pub difference: f64,
    pub allowed: f64,
    /// Whether the difference is relative to the largest golden value.
    pub relative: bool,
}

impl Line {
    pub fn agrees(&self) -> bool {
        self.difference <= self.allowed
    }
}

/// The number of parameters, golden and ours, and all lines of one case.
pub fn compare(folder: &Path, name: &str) -> Result<([i64; 2], Vec<Line>), Box<dyn Error>> {
    let description: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join(format!("{name}.json")))?)?;
    let bytes = std::fs::read(folder.join(format!("{name}.safetensors")))?;
    let golden = Golden::new(&bytes, &description)?;
    let mut lines = vec![];
    let mut parameters = 0;
    for precision in [Precision::F64, Precision::F32] {
        let imported = import(&folder.join(format!("{name}.pt")), Execution::cpu(precision))?;
        if !imported.report.is_complete() {
            return Err(format!("the weights do not fit: {:?}", imported.report).into());
        }
        parameters = imported.model.parameters().count();
        golden.evaluation(&imported.model, precision, &mut lines)?;
        golden.training(&imported.model, precision, &mut lines)?;
    }
    let expected = description["num_parameters"].as_i64().ok_or("no num_parameters")?;
    Ok(([expected, parameters], lines))
}

struct Golden<'a> {
    tensors: HashMap<String, Tensor>,
    description: &'a Value,
    image: Tensor,
}

impl<'a> Golden<'a> {
    fn new(bytes: &[u8], description: &'a Value) -> Result<Self, Box<dyn Error>> {
        Ok(Self { tensors: tensors(bytes)?, description, image: image(description)? })
    }

    fn get(&self, name: &str) -> Result<&Tensor, Box<dyn Error>> {
        self.tensors.get(name).ok_or_else(|| format!("there is no tensor {name}").into())
    }

    /// `[b, d, h, w]` from `[b, h, w]` or itself.
    fn mask(&self) -> Result<Tensor, Box<dyn Error>> {
        let mask = self.get("train.mask")?;
        Ok(if mask.dim() == 3 { mask.unsqueeze(1) } else { mask.shallow_clone() })
    }

    fn evaluation(
        &self,
        model: &Model,
        precision: Precision,
        lines: &mut Vec<Line>,
    ) -> Result<(), Box<dyn Error>> {
        let prediction = tch::no_grad(|| {
            model.forward(&self.image, Some(&self.mask()?), Mode::Evaluation).map_err(Box::<dyn Error>::from)
        })?;
        self.outputs("eval", &prediction, precision, lines)
    }

    fn training(
        &self,
        imported: &Model,
        precision: Precision,
        lines: &mut Vec<Line>,
    ) -> Result<(), Box<dyn Error>> {
        let model = without_dropout(imported, precision)?;
        let prediction = model.forward(&self.image, Some(&self.mask()?), Mode::Training)?;
        self.outputs("train", &prediction, precision, lines)?;
        let Prediction::Stochastic(distribution) = prediction else {
            return Err("the network is not stochastic".into());
        };
        let [b, c, v] = distribution.dims();
        let kind = precision.master();
        let noise = Noise {
            rank: self.get("train.eps_w")?.to_kind(kind),
            diagonal: self.get("train.eps_d")?.view([-1, b, c, v]).to_kind(kind),
            pairing: Pairing::Antithetic,
        };
        let target = Target::classes(self.get("train.target")?.to_kind(Kind::Int64).view([b, 1, v]), c)?;
        let loss =
            monte_carlo_loss(&distribution, &target, NoiseSource::Given(&noise))?.loss.mean(Kind::Double);
        lines.push(line("train.loss", &loss, self.get("train.loss")?, precision, true));
        loss.backward();
        let largest = |t: &Tensor| t.abs().max().double_value(&[]);
        let gradients = self.tensors.iter().filter(|(name, _)| name.starts_with("train.grad."));
        let largest_gradient = gradients.map(|(_, gradient)| largest(gradient)).fold(0.0, f64::max);
        for name in self.tensors.keys().filter(|name| name.starts_with("train.grad.")) {
            let theirs = match &name["train.grad.".len()..] {
                "first_path_first_conv" => {
                    self.description["first_path_first_conv"].as_str().ok_or("no first_path_first_conv")?
                }
                other => other,
            };
            let ours = our_name(theirs).ok_or_else(|| format!("{theirs} is unknown"))?;
            let parameter = model.parameters().get(&ours).ok_or_else(|| format!("we have no {ours}"))?;
            let mut line = line(name, &parameter.grad(), self.get(name)?, precision, true);
            // A path that gives one voxel is constant over the output, and the norm behind it removes what is
            // constant: its exact gradient is 0, and what is left is rounding, which that norm multiplies by 1/√ε.
            if largest(self.get(name)?) < ZERO_BUT_FOR_ROUNDING * largest_gradient {
                let left = largest(
                    &(parameter.grad().to_kind(Kind::Double).flatten(0, -1) - self.get(name)?.flatten(0, -1)),
                );
                line.difference = left / (largest_gradient / NORM_EPSILON.sqrt());
                line.what += " (exactly 0, beside the rest)";
            }
            lines.push(line);
        }
        Ok(())
    }

    fn outputs(
        &self,
        mode: &str,
        prediction: &Prediction,
        precision: Precision,
        lines: &mut Vec<Line>,
    ) -> Result<(), Box<dyn Error>> {
        let Prediction::Stochastic(distribution) = prediction else {
            return Err("the network is not stochastic".into());
        };
        for (part, name) in distribution.parts().into_iter().zip(["logit_mean", "cov_diag", "cov_factor"]) {
            let name = format!("{mode}.{name}");
            lines.push(line(&name, part, self.get(&name)?, precision, false));
        }
        Ok(())
    }
}

/// The difference of two tensors with the same values in order, whatever their shapes.
fn line(what: &str, ours: &Tensor, golden: &Tensor, precision: Precision, gradient: bool) -> Line {
    let flat = |t: &Tensor| t.detach().to_kind(Kind::Double).contiguous().view([-1]);
    let (ours, golden) = (flat(ours), flat(golden));
    let difference = if ours.numel() == golden.numel() {
        (&ours - &golden).abs().max().double_value(&[])
    } else {
        f64::INFINITY
    };
    let relative = gradient || precision == Precision::F64;
    let scale = if relative { golden.abs().max().double_value(&[]) } else { 1.0 };
    let allowed = match (precision, relative) {
        (Precision::F64, _) => F64_RELATIVE,
        (_, true) => F32_RELATIVE,
        (_, false) => F32_ABSOLUTE,
    };
    Line { what: what.to_owned(), precision, difference: difference / scale, allowed, relative }
}

/// The same network with dropout 0.
fn without_dropout(model: &Model, precision: Precision) -> Result<Model, Box<dyn Error>> {
    let mut config = model.config().clone();
    if let BackboneConfig::Deepmedic(backbone) = &mut config.backbone {
        backbone.dropout.fill(0.0);
    }
    let copy = Model::new(&config, Execution::cpu(precision), 0)?;
    let tensors = model.parameters().entries().iter();
    let tensors: Vec<_> = tensors.map(|entry| (entry.name.clone(), entry.tensor.detach())).collect();
    let _ = assign(copy.parameters(), &tensors)?;
    Ok(copy)
}

/// The input by its formula, `[b, c, d, h, w]`.
fn image(description: &Value) -> Result<Tensor, Box<dyn Error>> {
    let size = description["input_size"].as_array().ok_or("no input_size")?;
    let mut size: Vec<i64> = size.iter().filter_map(Value::as_i64).collect();
    while size.len() < 3 {
        size.insert(0, 1);
    }
    let batch = description["batch"].as_i64().ok_or("no batch")?;
    let channels = description["config"]["input_channels"].as_i64().ok_or("no input_channels")?;
    let shape = [batch, channels, size[0], size[1], size[2]];
    let axis = |k: usize| {
        let mut view = [1; 5];
        view[k] = -1;
        Tensor::arange(shape[k], (Kind::Double, Device::Cpu)).view(view)
    };
    let [b, c, d, h, w] = [0, 1, 2, 3, 4].map(axis);
    let slow = &b * 0.9 + &c * 0.37 + &d * 0.11 + &h * 0.07 + &w * 0.05;
    let fast = &d * &h * 0.013 - w * (c + 1.0) * 0.017;
    Ok(slow.sin() * fast.cos())
}

/// The tensors of a file by their names.
pub fn tensors(bytes: &[u8]) -> Result<HashMap<String, Tensor>, Box<dyn Error>> {
    let mut tensors = HashMap::new();
    for (name, view) in SafeTensors::deserialize(bytes)?.tensors() {
        let kind = match view.dtype() {
            Dtype::F64 => Kind::Double,
            Dtype::F32 => Kind::Float,
            Dtype::I32 => Kind::Int,
            other => return Err(format!("{name} has the type {other:?}").into()),
        };
        let shape: Vec<i64> = view.shape().iter().map(|&n| n as i64).collect();
        tensors.insert(name, Tensor::f_from_data_size(view.data(), &shape, kind)?);
    }
    Ok(tensors)
}
