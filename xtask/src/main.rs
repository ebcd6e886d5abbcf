//! The developer's command, `cargo xtask`: what a checkout needs beside `cargo build`.
//!
//! Each subcommand has a file of its own with a `run` function; adding one takes a module, a variant of
//! [`Command`] and an arm in [`main`]. Nothing here links libtorch, so that the command that installs
//! libtorch builds without it.

use clap::{Parser, Subcommand};
use std::process::ExitCode;

mod api;
mod bench;
mod check_cuda;
mod checkout;
mod demo;
mod docs;
mod error;
mod golden;
mod host;
mod process;
mod setup;
mod test;
mod torture;
mod wheel;

/// Tasks of a developer's checkout: install libtorch, run the tests, show the demonstration.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Setup(setup::Args),
    Test(test::Args),
    Demo(demo::Args),
    Docs(docs::Args),
    Api(api::Args),
    Golden(golden::Args),
    Bench(bench::Args),
    CheckCuda(check_cuda::Args),
    Wheel(wheel::Args),
    Torture(torture::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Setup(args) => setup::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Docs(args) => docs::run(&args),
        Command::Api(args) => api::run(&args),
        Command::Golden(args) => golden::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::CheckCuda(args) => check_cuda::run(&args),
        Command::Wheel(args) => wheel::run(&args),
        Command::Torture(args) => torture::run(&args),
    };
    let exit = result.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        error.exit
    });
    exit.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent_and_test_passes_every_further_word_on() {
        Cli::command().debug_assert();
        let cli =
            Cli::parse_from(["xtask", "test", "--features", "a/b", "-p", "ssn-core", "--", "--nocapture"]);
        let Command::Test(args) = cli.command else { panic!("not the test command") };
        assert_eq!(args.features.as_deref(), Some("a/b"));
        assert_eq!(args.args, ["-p", "ssn-core", "--", "--nocapture"]);
    }
}
