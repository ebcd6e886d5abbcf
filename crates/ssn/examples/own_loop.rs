//! A training loop of one's own: two convolutions under a stochastic head, trained with the Monte-Carlo loss.
//!
//! Run with `cargo run --release --package ssn --example own_loop`. Any function from an image `[b, c, d, h, w]` to features
//! `[b, f, d, h, w]` serves; docs/guides/any-architecture.md has the way for networks of PyTorch.

use ssn::nn::heads::Head;
use ssn::nn::layers::{Convolution, ConvolutionShape, LinearInit};
use ssn::nn::parameters::{Init, Parameters, Scope};
use ssn::nn::{
    HeadConfig, Method, NoiseSource, Optimizer, Pairing, Prediction, StepNoise, StochasticConfig, Target,
    monte_carlo_loss,
};
use tch::{Device, Kind, Tensor};

const FEATURES: i64 = 8;

/// The network: its layers register their tensors in a scope, which names them.
struct TwoConvolutions {
    first: Convolution,
    second: Convolution,
}

impl TwoConvolutions {
    fn new(scope: &mut Scope, channels: i64) -> ssn::nn::Result<Self> {
        let kernel = [1, 5, 5]; // 2D images have depth 1
        let mut layer = |name, inputs| {
            let shape = ConvolutionShape::same(inputs, FEATURES, kernel);
            Convolution::new(&mut scope.sub(name), shape, Init::HeNormal)
        };
        Ok(Self { first: layer("first", channels)?, second: layer("second", FEATURES)? })
    }

    fn forward(&self, image: &Tensor) -> ssn::nn::Result<Tensor> {
        Ok(self.second.forward(&self.first.forward(image)?.relu())?.relu())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut parameters = Parameters::new(0, Kind::Float, Device::Cpu);
    let mut root = parameters.root();
    let backbone = TwoConvolutions::new(&mut root.sub("backbone"), 1)?;
    let config = HeadConfig::Stochastic(StochasticConfig { rank: 4, ..StochasticConfig::default() });
    let head = Head::new(&mut root.sub("head"), FEATURES, 2, config, LinearInit::HeNormal)?;
    println!("{} parameters", parameters.count());

    let (image, target) = squares()?;
    let mut optimizer = Optimizer::new(Method::adam(), parameters.named_trainable())?;
    let mut losses = vec![];
    for step in 0..60 {
        optimizer.zero_grad()?;
        let Prediction::Stochastic(distribution) = head.forward(&backbone.forward(&image)?, None)? else {
            unreachable!("the head is stochastic")
        };
        let noise = StepNoise::new(0, step, distribution.noise_shape(20), Pairing::Independent)?;
        let loss =
            monte_carlo_loss(&distribution, &target, NoiseSource::Step(&noise))?.loss.mean(Kind::Double);
        loss.backward();
        optimizer.step(0.01)?;
        losses.push(loss.double_value(&[]));
    }
    println!("loss {:.1} → {:.1}", losses[0], losses[59]);
    assert!(losses[59] < 0.3 * losses[0], "it has not learned");
    Ok(())
}

/// Bright squares on noise, and where they are: images `[4, 1, 1, 16, 16]`, one label map `[4, 1, 256]` of each.
fn squares() -> ssn::nn::Result<(Tensor, Target)> {
    tch::manual_seed(5);
    let image = Tensor::randn([4, 1, 1, 16, 16], (Kind::Float, Device::Cpu)) * 0.3;
    let labels = Tensor::zeros([4, 16, 16], (Kind::Int64, Device::Cpu));
    for i in 0..4 {
        let _ = image.get(i).narrow(2, 2 + 2 * i, 6).narrow(3, 4, 6).g_add_scalar_(1.5);
        let _ = labels.get(i).narrow(0, 2 + 2 * i, 6).narrow(1, 4, 6).fill_(1);
    }
    Ok((image, Target::classes(labels.view([4, 1, -1]), 2)?))
}
