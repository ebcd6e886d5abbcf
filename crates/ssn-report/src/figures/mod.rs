//! One file per figure.

mod axis;
pub mod curves;
pub mod histogram;
pub mod matrix;
pub mod sample_dice;
pub mod strips;
pub mod toy;
