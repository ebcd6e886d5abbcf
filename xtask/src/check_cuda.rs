//! `cargo xtask check-cuda`: compiles what is meant for a GPU, on a machine without one.
//!
//! Elsewhere the C++ part of `ssn-cuda` is compiled only where CUDA's headers are installed, and its kernels only when a
//! GPU first needs them.

use crate::error::{Error, Exit};
use crate::install::{self, CUDA_COMPILER, Manifest};
use crate::libtorch::CUDA_HEADERS;
use crate::{checkout, host, process, python, setup};
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
    fetch(&folder, &python)?;
    let own = || checkout::libtorch().join("torch");
    let torch = setup::named_by_environment()?.map_or_else(own, |(_, torch)| torch);
    check_shim(host::compiler()?, &torch, &folder)?;
    let variants = check_kernels(&python, &folder)?;
    eprintln!("The C++ part of ssn-cuda compiles, and so do its kernels in {variants} variants.");
    Ok(Exit::Success)
}

/// Brings headers and compiler into the folder, unless they are there.
fn fetch(folder: &Path, python: &Path) -> Result<(), Error> {
    let fits = |manifest: Manifest| manifest.fits(&CUDA_COMPILER) && CUDA_COMPILER.missing(folder).is_none();
    let is_there = || Manifest::read(folder).is_some_and(fits);
    if is_there() {
        return Ok(());
    }
    python::check_pip(python)?;
    eprintln!("Fetching CUDA's headers and run-time compiler ({}).", CUDA_COMPILER.sizes);
    let _lock = install::lock(folder)?;
    // Another check may have fetched them while this one waited for the lock.
    if is_there() { Ok(()) } else { install::fill(folder, &CUDA_COMPILER, None, python) }
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
    let lines = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::DoesNotCompile { what: "the C++ part of ssn-cuda does", lines })
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
        return Err(Error::BadAnswer { command: "nvrtc.py".to_owned(), reason: process::last_line(&output) });
    }
    if output.status.success() {
        return Ok(message);
    }
    Err(Error::DoesNotCompile { what: "kernels of ssn-cuda do", lines: message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_compiler_says_is_told() {
        // A shell fails on these arguments with a message of its own.
        let (compiler, nowhere) = (Command::new("/bin/sh"), Path::new("/nowhere"));
        let error = check_shim(compiler, nowhere, nowhere).unwrap_err();
        assert!(error.to_string().starts_with("the C++ part of ssn-cuda does not compile"), "{error}");
        assert!(error.details().is_some_and(|message| message.contains("sh:")), "{:?}", error.details());
        assert_eq!(error.exit(), Exit::BadData);
    }

    #[test]
    fn a_script_that_fails_by_itself_is_not_taken_for_a_kernel_that_does() {
        let error = check_kernels(Path::new("/bin/sh"), Path::new("/nowhere")).unwrap_err();
        assert!(matches!(error, Error::BadAnswer { .. }), "{error}");
    }
}
