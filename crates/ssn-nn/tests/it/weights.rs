//! Weights come back as they were saved, or with a sentence that says why not.

use std::path::Path;

use ssn_nn::backbones::{BackboneConfig, UNetPlan, plan_unet};
use ssn_nn::weights::{assign, import, load, save};
use ssn_nn::{Execution, HeadConfig, Model, ModelConfig, Precision, StochasticConfig};
use tch::Tensor;

const F32: Precision = Precision::F32;

fn small() -> ModelConfig {
    let (unet, _) = plan_unet(UNetPlan::new([1, 16, 16], [1.0; 3], 4)).unwrap();
    ModelConfig { backbone: BackboneConfig::Unet(unet), ..ModelConfig::lidc() }
}

fn model(config: &ModelConfig, seed: u64) -> Model {
    Model::new(config, Execution::cpu(F32), seed).unwrap()
}

fn tensors(model: &Model) -> Vec<(String, Tensor)> {
    model.parameters().entries().iter().map(|p| (p.name.clone(), p.tensor.detach())).collect()
}

#[test]
fn a_saved_model_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    for config in [small(), ModelConfig::brats(), ModelConfig::brats_deterministic()] {
        let model = model(&config, 7);
        save(&path, &model).unwrap();
        let loaded = load::<()>(&path, Execution::cpu(F32)).unwrap().model;
        assert_eq!(loaded.config(), &config);
        assert_eq!(tensors(&loaded), tensors(&model));
        let again = folder.path().join("again.safetensors");
        save(&again, &loaded).unwrap();
        assert_eq!(
            std::fs::read(&path).unwrap(),
            std::fs::read(&again).unwrap(),
            "the same model, the same bytes"
        );
    }
}

#[test]
fn every_flipped_byte_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let config = ModelConfig { head: HeadConfig::Deterministic, ..small() };
    save(&path, &model(&config, 7)).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    // Every byte of the description, and places all over the weights.
    let description = bytes.windows(6).position(|window| window == b"sha256").unwrap();
    let step = bytes.len() / 100;
    let places = (0..description).chain((0..100).map(|k| k * step + k % 7));
    for (number, place) in places.enumerate() {
        let mut damaged = bytes.clone();
        damaged[place] ^= [0x01, 0x02, 0x10][number % 3];
        std::fs::write(&path, &damaged).unwrap();
        let Err(error) = load::<()>(&path, Execution::cpu(F32)) else {
            panic!("byte {place} was not noticed")
        };
        assert!(error.to_string().contains("model.safetensors: "), "{error}");
    }
}

#[test]
fn files_that_are_no_models_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let message = || load::<()>(&path, Execution::cpu(F32)).unwrap_err().to_string();
    assert!(message().contains("No such file"), "{}", message());
    std::fs::write(&path, b"hello").unwrap();
    assert!(message().contains("it is no safetensors file"), "{}", message());
    let foreign = safetensors::serialize(
        [("x", safetensors::tensor::TensorView::new(safetensors::Dtype::U8, vec![1], &[1]).unwrap())],
        None,
    );
    std::fs::write(&path, foreign.unwrap()).unwrap();
    assert!(message().contains("it does not say what it holds"), "{}", message());
}

#[test]
fn weights_of_another_shape_name_layer_shapes_and_setting() {
    let rank = |rank| ModelConfig {
        head: HeadConfig::Stochastic(StochasticConfig { rank, ..StochasticConfig::default() }),
        ..small()
    };
    let (five, ten) = (model(&rank(5), 0), model(&rank(10), 0));
    let before = tensors(&ten);
    let error = assign(ten.parameters(), &tensors(&five)).unwrap_err().to_string();
    assert_eq!(
        error,
        "head.factor.weight has shape [10, 32, 1, 1, 1] in the file and [20, 32, 1, 1, 1] in the network; set \
         head.rank and classes as they were when the weights were trained"
    );
    assert_eq!(before, tensors(&ten), "nothing was changed");
}

#[test]
fn what_is_missing_and_what_is_unknown_is_reported() {
    let target = model(&small(), 0);
    let mut given = tensors(&model(&small(), 1));
    given.retain(|(name, _)| name != "head.mean.bias");
    given.push(("extra.weight".to_owned(), Tensor::from_slice(&[1f32])));
    let report = assign(target.parameters(), &given).unwrap();
    assert_eq!(report.missing, ["head.mean.bias"]);
    assert_eq!(report.unexpected, ["extra.weight"]);
    assert_eq!(report.matched.len(), target.parameters().entries().len() - 1);
    assert!(!report.is_complete());
}

#[test]
fn the_authors_network_is_read_off_its_weights() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let imported = import(&folder.join("small_2d.pt"), Execution::cpu(F32)).unwrap();
    assert!(imported.report.is_complete());
    let config = imported.model.config();
    let BackboneConfig::Deepmedic(backbone) = &config.backbone else { panic!("{config:?}") };
    assert_eq!((config.channels, config.classes), (1, 2));
    assert_eq!(backbone.scales, [[1, 3, 3], [1, 1, 1]]);
    assert_eq!((backbone.kernel, backbone.feature_maps.as_slice()), ([1, 3, 3], [6, 8, 8].as_slice()));
    let HeadConfig::Stochastic(head) = config.head else { panic!("{config:?}") };
    assert_eq!(head.rank, 4);
}

#[test]
fn the_authors_deterministic_network_is_read_too() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let imported = import(&folder.join("deterministic_2d.pt"), Execution::cpu(F32)).unwrap();
    assert!(imported.report.is_complete(), "{:?}", imported.report);
    let (config, stochastic) =
        (imported.model.config(), import(&folder.join("small_2d.pt"), Execution::cpu(F32)));
    assert_eq!((config.head, config.classes), (HeadConfig::Identity, 8));
    let stochastic = stochastic.unwrap();
    let name = "backbone.fully_connected.1.conv.weight";
    assert_eq!(imported.model.parameters().get(name), stochastic.model.parameters().get(name));
}

#[test]
fn weights_of_other_networks_are_refused_with_advice() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let message = |name: &str| import(&folder.join(name), Execution::cpu(F32)).unwrap_err().to_string();
    let program = message("backbone.pt");
    assert!(program.contains("backbone.pt: ") && program.contains("model.state_dict()"), "{program}");
    let foreign = message("foreign_names.pt");
    assert!(foreign.contains("not those of the authors' DeepMedic"), "{foreign}");
    assert!(foreign.contains("export TorchScript and use it as backbone"), "{foreign}");
    let wide = message("wrong_widths.pt");
    assert!(wide.contains("after a layer with 6 channels"), "{wide}");
}
