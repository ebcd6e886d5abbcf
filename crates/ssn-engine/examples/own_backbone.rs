//! A program like `ssn-engine` with a backbone of its own: two convolutions, named `plain` in configs.
//!
//! `cargo run --package ssn-engine --example own_backbone -- train --data DATASET --set 'model.backbone={plain={width=16}}'`
//! trains it; `train --resume run` and `predict run` work as with the backbones of `ssn`.

use ssn::nn::backbones::{Backbone, BackbonePlan, Pass, register};
use ssn::nn::layers::{Convolution, ConvolutionShape};
use ssn::nn::parameters::{Init, Scope};
use tch::Tensor;

/// The settings in a config: `backbone = { plain = { width = 16 } }`.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Plain {
    width: i64,
}

#[derive(Debug)]
struct Network([Convolution; 2]);

impl BackbonePlan for Plain {
    fn features(&self) -> i64 {
        self.width
    }

    fn build(&self, scope: &mut Scope<'_>, channels: i64) -> ssn::nn::Result<Box<dyn Backbone>> {
        let mut layer = |name, inputs| {
            let shape = ConvolutionShape::same(inputs, self.width, [1, 5, 5]); // 2D images have depth 1
            Convolution::new(&mut scope.sub(name), shape, Init::HeNormal)
        };
        Ok(Box::new(Network([layer("first", channels)?, layer("second", self.width)?])))
    }
}

impl Backbone for Network {
    fn forward(&self, pass: &Pass<'_>) -> ssn::nn::Result<Tensor> {
        let x = self.0[0].forward(&pass.layout.apply(pass.image()?)?)?.relu();
        Ok(self.0[1].forward(&x)?.relu())
    }
}

fn main() -> std::process::ExitCode {
    ssn_engine::main_with(|| register::<Plain>("plain"))
}
