//! What several tests build on.

use ssn_nn::backbones::{UNetConfig, UNetPlan, plan_unet};
use ssn_nn::layers::NormKind;
use ssn_nn::space::Size;

/// A planned U-Net with an eighth of the channels.
pub fn small_unet(patch: Size, norm: NormKind) -> UNetConfig {
    let Ok((config, _)) = plan_unet(UNetPlan::new(patch, [1.0; 3], 4)) else {
        panic!("{patch:?} is no patch")
    };
    let narrow = |widths: &[i64]| widths.iter().map(|width| width / 8).collect();
    UNetConfig {
        widths: narrow(&config.widths),
        decoder_widths: narrow(&config.decoder_widths),
        norm,
        ..config
    }
}
