//! A TorchScript file as backbone: trained, saved and loaded with the rest.

use std::path::{Path, PathBuf};

use ssn_nn::backbones::{BackboneConfig, TorchScriptConfig};
use ssn_nn::weights;
use ssn_nn::{
    Execution, HeadConfig, Method, Mode, Model, ModelConfig, NoiseSource, Optimizer, Pairing, Precision,
    Prediction, StepNoise, StochasticConfig, Target, monte_carlo_loss,
};
use tch::{Device, Kind, Tensor};

use crate::common::begin_at_seed;

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/backbone.pt")
}

fn config(torchscript: PathBuf, features: i64) -> ModelConfig {
    ModelConfig {
        channels: 1,
        classes: 2,
        backbone: BackboneConfig::Torchscript(TorchScriptConfig { torchscript, features }),
        head: HeadConfig::Stochastic(StochasticConfig { rank: 2, ..StochasticConfig::default() }),
    }
}

fn model() -> Model {
    Model::new(&config(file(), 6), Execution::cpu(Precision::F32), 0).unwrap()
}

/// Bright squares on noise, and where they are.
fn task() -> (Tensor, Target) {
    let _alone = begin_at_seed(5);
    let image = Tensor::randn([4, 1, 1, 16, 16], (Kind::Float, Device::Cpu)) * 0.3;
    let labels = Tensor::zeros([4, 16, 16], (Kind::Int64, Device::Cpu));
    for i in 0..4 {
        let _ = image.get(i).narrow(2, 2 + 2 * i, 6).narrow(3, 4, 6).g_add_scalar_(1.5);
        let _ = labels.get(i).narrow(0, 2 + 2 * i, 6).narrow(1, 4, 6).fill_(1);
    }
    (image, Target::classes(labels.view([4, 1, -1]), 2).unwrap())
}

fn loss(model: &Model, step: u64, image: &Tensor, target: &Target) -> Tensor {
    let prediction = model.forward(image, None, Mode::Training).unwrap();
    let Prediction::Stochastic(d) = prediction else { unreachable!() };
    let noise = StepNoise::new(1, step, d.noise_shape(10), Pairing::Independent).unwrap();
    monte_carlo_loss(&d, target, NoiseSource::Step(&noise)).unwrap().loss.mean(Kind::Double)
}

fn train(model: &Model, steps: u64) -> Vec<f64> {
    let (image, target) = task();
    let mut optimizer = Optimizer::new(Method::adam(), model.parameters().named_trainable()).unwrap();
    let mut losses = vec![];
    for step in 0..steps {
        optimizer.zero_grad().unwrap();
        let loss = loss(model, step, &image, &target);
        loss.backward();
        optimizer.step(0.01).unwrap();
        losses.push(loss.double_value(&[]));
    }
    losses
}

#[test]
fn its_parameters_are_trained() {
    tch::set_num_threads(1);
    let model = model();
    let before = model.parameters().get("backbone.enter.0.weight").unwrap().copy();
    let losses = train(&model, 60);
    assert!(losses[59] < 0.2 * losses[0], "{} → {}", losses[0], losses[59]);
    assert_ne!(model.parameters().get("backbone.enter.0.weight").unwrap(), &before);
}

#[test]
fn it_is_saved_with_its_statistics_and_needs_no_other_file() {
    tch::set_num_threads(1);
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("net.pt");
    std::fs::copy(file(), &copy).unwrap();
    let model = Model::new(&config(copy.clone(), 6), Execution::cpu(Precision::F32), 0).unwrap();
    train(&model, 10);
    let path = folder.path().join("model.safetensors");
    weights::save(&path, &model).unwrap();
    std::fs::remove_file(copy).unwrap();
    let loaded = weights::load::<()>(&path, Execution::cpu(Precision::F32)).unwrap().model;
    let (image, _) = task();
    let mean =
        |model: &Model| tch::no_grad(|| model.forward(&image, None, Mode::Evaluation).unwrap().mean().copy());
    assert_eq!(mean(&model), mean(&loaded));
    let before = loaded.parameters().get("backbone.enter.0.weight").unwrap().copy();
    train(&loaded, 1);
    assert_ne!(
        loaded.parameters().get("backbone.enter.0.weight").unwrap(),
        &before,
        "a loaded one learns on"
    );
}

#[test]
fn files_that_do_not_fit_are_named() {
    let message =
        |config: &ModelConfig| Model::new(config, Execution::cpu(Precision::F32), 0).unwrap_err().to_string();
    let missing = message(&config(PathBuf::from("no/such.pt"), 6));
    assert!(missing.starts_with("no/such.pt: No such file"), "{missing}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.pt");
    std::fs::write(&path, b"not a network").unwrap();
    let wrong = message(&config(path.clone(), 6));
    assert!(wrong.contains("net.pt: it is no TorchScript file"), "{wrong}");
    assert!(wrong.contains("torch.jit.script(network).save"), "{wrong}");

    let model = Model::new(&config(file(), 5), Execution::cpu(Precision::F32), 0).unwrap();
    let error = model.forward(&task().0, None, Mode::Evaluation).unwrap_err().to_string();
    assert!(
        error.ends_with(
            "its output has shape [4, 6, 16, 16], but [4, 5, 16, 16] is needed; set backbone.features to the channels \
             of its last layer, and let it give features at every voxel of the image"
        ),
        "{error}"
    );
}

#[test]
fn the_config_of_the_guide_is_understood() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/any-architecture.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let block = guide.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let parsed: ModelConfig = toml::from_str(block).unwrap();
    let mut expected = config(PathBuf::from("net.pt"), 32);
    expected.head = HeadConfig::Stochastic(StochasticConfig::default());
    assert_eq!(parsed, expected);
}
