//! `cargo xtask check-cuda`: compiles what is meant for a GPU, on a machine without one.
//!
//! Elsewhere the C++ part of `ssn-cuda` is compiled only where CUDA's headers are installed, and its kernels only when a
//! GPU first needs them.

use crate::error::{Error, Exit};
use crate::setup::{self, CUDA_COMPILER, CUDA_HEADERS};
use crate::{checkout, host, process};
use std::path::Path;
use std::process::Command;

/// Compile the C++ part and the kernels of `ssn-cuda`, without a GPU.
///
/// CUDA's headers and its run-time compiler are fetched once (93 MB) into `cuda-check` in Cargo's target folder.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the command.
pub fn run(_: &Args) -> Result<Exit, Error> {
    setup::ensure()?;
    let python = host::python()?;
    let folder = process::target_directory()?.join("cuda-check");
    if !CUDA_COMPILER.are_in(&folder) {
        setup::fetch(&CUDA_COMPILER, &folder)?;
    }
    let torch = setup::named_by_environment()?.unwrap_or_else(|| checkout::libtorch().join("torch"));
    check_shim(host::compiler()?, &torch, &folder)?;
    let variants = check_kernels(&python, &folder)?;
    eprintln!("The C++ part of ssn-cuda compiles, and so do its kernels in {variants} variants.");
    Ok(Exit::Success)
}

fn check_shim(mut compiler: Command, torch: &Path, folder: &Path) -> Result<(), Error> {
    let shim = checkout::root().join("crates/ssn-cuda/shim");
    let include = torch.join("include");
    // As the build script has them, but for the result.
    compiler.arg(format!("@{}", shim.join("flags").display())).arg("-fsyntax-only");
    compiler.arg("-isystem").arg(&include).arg("-isystem").arg(include.join("torch/csrc/api/include"));
    compiler.arg("-isystem").arg(folder.join(CUDA_HEADERS)).arg(shim.join("shim.cpp"));
    let output = process::capture(&mut compiler)?;
    if output.status.success() {
        return Ok(());
    }
    let lines = String::from_utf8_lossy(&output.stderr);
    Err(Error::data(format!("the C++ part of ssn-cuda does not compile:\n{}", lines.trim())))
}

/// Compiles the kernels, and gives the number of their variants.
fn check_kernels(python: &Path, folder: &Path) -> Result<String, Error> {
    let (libraries, scripts) = (folder.join("nvidia/cu13/lib"), checkout::root().join("xtask/check-cuda"));
    let mut command = Command::new(python);
    command.arg(scripts.join("nvrtc.py")).arg(libraries.join("libnvrtc.so.13"));
    command.arg(checkout::root().join("crates/ssn-cuda/kernels")).arg(scripts.join("variants.txt"));
    // NVRTC looks for a library of its own by name alone.
    let output = process::capture(command.env("LD_LIBRARY_PATH", &libraries))?;
    let message = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if message.is_empty() {
        // Not the kernels' fault.
        return Err(Error::answer("nvrtc.py", &process::last_line(&output)));
    }
    if output.status.success() {
        return Ok(message);
    }
    Err(Error::data(format!("kernels of ssn-cuda do not compile:\n{message}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_compiler_says_is_told() {
        // A shell fails on these arguments with a message of its own.
        let (compiler, nowhere) = (Command::new("/bin/sh"), Path::new("/nowhere"));
        let error = check_shim(compiler, nowhere, nowhere).unwrap_err();
        let message = error.to_string();
        assert!(
            message.starts_with("the C++ part of ssn-cuda does not compile") && message.contains("sh:"),
            "{message}"
        );
        assert_eq!(error.exit, Exit::BadData);
    }

    #[test]
    fn a_script_that_fails_by_itself_is_not_taken_for_a_kernel_that_does() {
        let error = check_kernels(Path::new("/bin/sh"), Path::new("/nowhere")).unwrap_err();
        assert!(error.to_string().starts_with("`nvrtc.py` gave"), "{error}");
    }
}
