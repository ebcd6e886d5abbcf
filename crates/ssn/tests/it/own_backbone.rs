//! A backbone that a program registers: it goes every way that the backbones of the library go.

use std::sync::Once;

use ssn::nn::backbones::{Backbone, BackboneConfig, BackbonePlan, Pass, register};
use ssn::nn::layers::{ActivationKind, Convolution, ConvolutionShape, Dropout, NormAct, NormKind};
use ssn::nn::parameters::{Init, Scope};
use ssn::prelude::{Control, PredictConfig};
use ssn::training::run::StopReason;
use ssn::{DeviceChoice, TrainConfig, predict};
use tch::Tensor;

use crate::lab::{Lab, SHORT, losses, results, through_all_functions, train_on};

/// A convolution with batch norm and dropout, and one more.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Plain {
    width: i64,
    #[serde(default)]
    dropout: f64,
    /// The features that it claims to have, if not `width`.
    claimed: Option<i64>,
}

#[derive(Debug)]
struct Network {
    first: Convolution,
    norm: NormAct,
    second: Convolution,
}

impl BackbonePlan for Plain {
    fn features(&self) -> i64 {
        self.claimed.unwrap_or(self.width)
    }

    fn build(&self, scope: &mut Scope<'_>, channels: i64) -> ssn::nn::Result<Box<dyn Backbone>> {
        let kernel = [1, 3, 3];
        let first = ConvolutionShape::same(channels, self.width, kernel);
        let second = ConvolutionShape::same(self.width, self.width, kernel);
        let dropout = Dropout::new(scope, self.dropout, 0)?;
        let mut norm = scope.sub("norm");
        let norm =
            NormAct::new(&mut norm, self.width, (NormKind::BATCH, dropout), (ActivationKind::Relu, "slope"))?;
        Ok(Box::new(Network {
            first: Convolution::new(&mut scope.sub("first"), first, Init::HeNormal)?,
            norm,
            second: Convolution::new(&mut scope.sub("second"), second, Init::HeNormal)?,
        }))
    }
}

impl Backbone for Network {
    fn forward(&self, pass: &Pass<'_>) -> ssn::nn::Result<Tensor> {
        let x = self.first.forward(&pass.layout.apply(pass.image()?)?)?;
        Ok(self.second.forward(&self.norm.forward(&x, pass.mode)?)?.relu())
    }
}

fn registered() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| register::<Plain>("plain").unwrap());
}

/// Describes a short run of the network, with a moving average of its weights.
fn run(lab: &Lab, name: &str, backbone: &str) -> TrainConfig {
    let backbone = format!("model.backbone={backbone}");
    let settings = ["training.ema=2", "training.precision=f64", "training.sync_batch_norm=always", &backbone];
    lab.run(name, "small", SHORT.into_iter().chain(["loss.likelihood_steps=1"]).chain(settings))
}

#[test]
fn an_own_backbone_trains_resumes_predicts_and_exports() {
    registered();
    for size in [[1, 16, 16], [16, 16, 16]] {
        let lab = Lab::new(size, 3);
        let mut of_ranks = vec![];
        for ranks in [1, 2] {
            let config = |name: &str| run(&lab, &format!("{name}-{ranks}"), "{ plain = { width = 5 } }");
            let (whole, cut) = (config("whole"), config("cut"));
            assert_eq!(train_on(ranks, &whole, None).unwrap(), StopReason::Finished);
            assert_eq!(train_on(ranks, &cut, Some(2)).unwrap(), StopReason::Stopped);
            let resume =
                TrainConfig { workers: Some(0), device: DeviceChoice::Cpu, ..TrainConfig::resume(&cut.out) };
            train_on(ranks, &resume, None).unwrap();
            assert!(results(&whole.out) == results(&cut.out), "a resumed run differs");
            through_all_functions(&whole.out, DeviceChoice::Cpu, false).unwrap();
            of_ranks.push(losses(&whole.out));
        }
        for (one, two) in of_ranks[0].iter().zip(&of_ranks[1]) {
            assert!((one - two).abs() <= 1e-9 * one.abs(), "one rank {one}, two ranks {two}");
        }
    }
}

#[test]
fn tiles_of_an_own_backbone_cover_the_image() {
    registered();
    let lab = Lab::new([1, 24, 24], 2);
    let config = run(&lab, "run", "{ plain = { width = 4, dropout = 0.2 } }");
    train_on(1, &config, None).unwrap();
    let tiles = PredictConfig {
        tile: Some([1, 10, 10]),
        device: DeviceChoice::Cpu,
        ..PredictConfig::new(&config.out, lab.path("tiles"))
    };
    assert!(predict(&tiles, Control::default()).unwrap().made > 0);
}

#[test]
fn settings_of_an_own_backbone_are_checked() {
    registered();
    let lab = Lab::new([1, 16, 16], 2);
    let refused = |backbone: &str| {
        let config = run(&lab, "refused", backbone);
        let error = train_on(1, &config, None).unwrap_err();
        assert!(!config.out.exists(), "{backbone}: a run folder was made");
        error.to_string()
    };
    let message = refused("{ plian = { width = 4 } }");
    assert!(message.ends_with("`features`, `plain`; did you mean `plain`?"), "{message}");
    let message = refused("{ plain = { widht = 4, width = 4 } }");
    assert!(
        message.contains("unknown field `widht`") && message.ends_with("did you mean `width`?"),
        "{message}"
    );
    let message = refused("{ plain = { dropout = 0.1 } }");
    assert!(message.contains("missing field `width`"), "{message}");
    let message = refused("{ plain = { width = 4, claimed = 9 } }");
    assert!(message.contains("the feature map of the backbone has shape [1, 4, "), "{message}");
    let message = refused("{ plain = { width = 4 }, unet = {} }");
    assert!(message.contains("missing field"), "{message}");
}

#[test]
fn names_are_taken_once() {
    registered();
    for name in ["plain", "unet"] {
        let message = register::<Plain>(name).unwrap_err().to_string();
        assert!(
            message.contains(&format!("is `{name}`, but it must be one that no other backbone has")),
            "{message}"
        );
    }
    let config = BackboneConfig::own(Plain { width: 3, dropout: 0.0, claimed: None }).unwrap();
    assert_eq!(serde_json::to_string(&config).unwrap(), r#"{"plain":{"dropout":0.0,"width":3}}"#);
}
