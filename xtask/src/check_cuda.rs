//! `cargo xtask check-cuda`: compiles what is meant for a GPU, on a machine without one.
//!
//! Elsewhere the C++ part of `ssn-cuda` is compiled only where CUDA's headers are installed, and its kernels only when a
//! GPU first needs them.

mod variants;

use crate::error::Error;
use crate::exit::Exit;
use crate::host::Host;
use crate::install::{self, CUDA_COMPILER, Manifest};
use crate::libtorch::CUDA_HEADERS;
use crate::python::Python;
use crate::{checkout, compiler, process, setup};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of NVRTC's libraries in the wheels.
const LIBRARIES: &str = "nvidia/cu13/lib";

/// Compile the C++ part and the kernels of `ssn-cuda`, without a GPU.
///
/// CUDA's headers and its run-time compiler are fetched once (93 MB) into `cuda-check` in Cargo's target folder.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the command.
pub fn run(_: &Args) -> Result<Exit, Error> {
    let host = Host::from_env();
    setup::ensure(&host)?;
    let python = Python::find(&host)?;
    let folder = process::target_directory(&host)?.join("cuda-check");
    fetch(&folder, &python)?;
    check_shim(&host, &torch(&host, &python)?, &folder)?;
    let variants = variants::all();
    check_kernels(&python.program, &folder, &variants)?;
    eprintln!("The C++ part of ssn-cuda compiles, and so do its kernels in {} variants.", variants.len());
    Ok(Exit::Success)
}

/// Brings headers and compiler into the folder, unless they are there.
fn fetch(folder: &Path, python: &Python) -> Result<(), Error> {
    let is_there = || Manifest::read(folder).is_some_and(|manifest| manifest.fits(&CUDA_COMPILER));
    if is_there() {
        return Ok(());
    }
    setup::check_platform()?;
    python.check_pip()?;
    eprintln!("Fetching CUDA's headers and run-time compiler ({}).", CUDA_COMPILER.sizes);
    let _lock = install::lock(folder)?;
    // Another check may have fetched them while this one waited for the lock.
    if is_there() { Ok(()) } else { install::fill(folder, &CUDA_COMPILER, None, python) }
}

/// The libtorch that the project builds against.
fn torch(host: &Host, python: &Python) -> Result<PathBuf, Error> {
    if host.use_pytorch {
        return python.torch_folder()?.ok_or_else(|| Error::NoPytorch { python: python.program.clone() });
    }
    Ok(host.libtorch.clone().unwrap_or_else(|| checkout::libtorch().join("torch")))
}

fn check_shim(host: &Host, torch: &Path, folder: &Path) -> Result<(), Error> {
    let shim = checkout::root().join("crates/ssn-cuda/shim");
    let include = torch.join("include");
    let mut command = compiler::command(host)?;
    // As the build script has them, but for the result.
    command.arg(format!("@{}", shim.join("flags").display())).arg("-fsyntax-only");
    command.arg("-isystem").arg(&include).arg("-isystem").arg(include.join("torch/csrc/api/include"));
    command.arg("-isystem").arg(folder.join(CUDA_HEADERS)).arg(shim.join("shim.cpp"));
    let output = process::capture(&mut command)?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::DoesNotCompile { what: "the C++ part of ssn-cuda does", message })
}

fn check_kernels(python: &Path, folder: &Path, variants: &[String]) -> Result<(), Error> {
    let libraries = folder.join(LIBRARIES);
    let mut command = Command::new(python);
    command.arg(checkout::root().join("xtask/src/check_cuda/nvrtc.py"));
    command.arg(libraries.join("libnvrtc.so.13")).arg(kernels()).args(variants);
    // NVRTC looks for a library of its own by name alone.
    let output = process::capture(command.env("LD_LIBRARY_PATH", &libraries))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if message.is_empty() {
        // Not the kernels' fault. A traceback ends with what happened.
        let errors = String::from_utf8_lossy(&output.stderr);
        let reason = errors.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it failed").to_owned();
        return Err(Error::BadAnswer { command: "nvrtc.py".to_owned(), reason });
    }
    Err(Error::DoesNotCompile { what: "kernels of ssn-cuda do", message })
}

/// The folder of the kernels.
fn kernels() -> PathBuf {
    checkout::root().join("crates/ssn-cuda/kernels")
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_compiler_says_is_told() {
        // A shell fails on these arguments with a message of its own.
        let host = Host { cxx: Some("/bin/sh -e".into()), ..Host::default() };
        let error = check_shim(&host, Path::new("/nowhere"), Path::new("/nowhere")).unwrap_err();
        assert!(error.to_string().starts_with("the C++ part of ssn-cuda does not compile"), "{error}");
        assert!(error.details().is_some_and(|message| message.contains("sh:")), "{:?}", error.details());
        assert_eq!(error.exit(), Exit::BadData);
    }

    #[test]
    fn a_script_that_fails_by_itself_is_not_taken_for_a_kernel_that_does() {
        let error = check_kernels(Path::new("/bin/sh"), Path::new("/nowhere"), &[]).unwrap_err();
        assert!(matches!(error, Error::BadAnswer { .. }), "{error}");
    }
}
