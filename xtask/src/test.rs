//! `cargo xtask test`: libtorch if it is missing, then the tests of the workspace.

use crate::error::{Error, Exit};
use crate::{process, setup};

/// Run the tests of the workspace: first the examples in the documentation, then all others.
///
/// The main runner is `cargo nextest run` if it is installed, which leaves out slow tests (`.config/nextest.toml`), otherwise
/// `cargo test`. Its closing lines are the last ones printed, unless tests lacked a tool: those are named then.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Cargo features of all tests, such as `ssn-data/hdf5,ssn-engine/mpi`.
    #[arg(long)]
    pub features: Option<String>,

    /// Arguments for the main runner, such as `-p PACKAGE` or a part of a test's name.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<String>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Exit, Error> {
    setup::ensure()?;
    let nextest = process::capture(process::cargo().args(["nextest", "--version"]))?.status.success();
    let features: Vec<&str> = args.features.iter().flat_map(|features| ["--features", features]).collect();
    // `--tests` leaves out the examples, whose linking takes a minute.
    let runner = || {
        let mut command = process::cargo();
        command.args(if nextest { &["nextest", "run"][..] } else { &["test"] }).arg("--tests");
        command.args(scope(&args.args)).args(&features);
        command
    };
    // One build of libraries and tests keeps all cores busy; the examples then need no library of their own.
    if args.args.is_empty() {
        let built = process::run(runner().arg("--no-run"))?;
        if built != Exit::Success {
            return Ok(built);
        }
    }
    // nextest cannot run the examples of the documentation; Cargo can, and runs them on their own.
    let doc = process::run(process::cargo().args(["test", "--doc", "--workspace"]).args(&features))?;
    let skipped = process::target_directory()?.join("skipped-tests");
    let _ = std::fs::remove_file(&skipped);
    let main = process::run(runner().env(ssn_testing::SKIPPED, &skipped).args(&args.args))?;
    tell_skipped(&std::fs::read_to_string(&skipped).unwrap_or_default());
    if doc != Exit::Success && main == Exit::Success {
        eprintln!("error: the examples in the documentation failed (see above); all other tests passed");
        return Ok(doc);
    }
    Ok(main)
}

/// Names the tests that could not be run here, with what they lack.
fn tell_skipped(lines: &str) {
    let count = lines.lines().count();
    if count > 0 {
        eprintln!(
            "{count} of the tests that passed could not be run here and were skipped:\n{}",
            lines.trim_end()
        );
    }
}

/// The whole workspace, unless the arguments choose packages: `--workspace` would
/// override them.
fn scope(args: &[String]) -> &'static [&'static str] {
    let chooses = |arg: &String| arg.starts_with("--package") || (arg.starts_with("-p") && arg != "-");
    let mut own = args.iter().take_while(|arg| *arg != "--");
    if own.any(chooses) { &[] } else { &["--workspace"] }
}

#[cfg(test)]
mod tests {
    use super::scope;

    #[test]
    fn chosen_packages_are_not_overridden() {
        let whole = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(ToString::to_string).collect();
            scope(&args).contains(&"--workspace")
        };
        assert!(whole(&[]) && whole(&["gradients"]) && whole(&["--", "-p"]));
        assert!(!whole(&["-p", "ssn-core"]) && !whole(&["--package=ssn-core"]));
    }
}
