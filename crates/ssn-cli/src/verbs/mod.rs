//! One short file per verb that needs no libtorch.

pub mod check;
pub mod evaluate;
pub mod info;
pub mod init;
pub mod prepare;
pub mod report;
pub mod sample;
pub mod view;
