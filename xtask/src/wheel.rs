//! `cargo xtask wheel`: the Python package.

use crate::error::{Error, Exit};
use crate::{checkout, process};
use std::ffi::OsString;

/// Build the Python package as a wheel in `dist`, by `tools/wheel.sh`, which says what its options are.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// --no-engine, --cuda, --debug, --built, --test or --environment.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<OsString>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Exit, Error> {
    let script = checkout::root().join("tools/wheel.sh");
    process::run(process::in_checkout(script.as_os_str()).args(&args.options))
}
