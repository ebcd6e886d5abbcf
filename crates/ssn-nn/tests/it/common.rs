//! What tests of this crate and of `ssn-train` build on.

use std::sync::{Mutex, MutexGuard, PoisonError};

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

/// Takes libtorch's random numbers, which all tests of a process share: a test that draws any holds the guard until its end.
pub fn take_random_numbers() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the random numbers and sets their seed.
pub fn begin_at_seed(seed: i64) -> MutexGuard<'static, ()> {
    let alone = take_random_numbers();
    tch::manual_seed(seed);
    alone
}
