//! `cargo xtask setup`: after it, a plain `cargo build` finds the right libtorch.
//!
//! The choice is made in this order: the one that the environment names; the one that is already installed; a
//! link to the PyTorch of the active Python, if it is of the right version; the wheels.

use crate::error::Error;
use crate::exit::Exit;
use crate::host::Host;
use crate::install::{self, Lock};
use crate::libtorch::{self, Origin, VERSION};
use crate::manifest::{Manifest, Source};
use crate::pins::{CUDA_HEADERS, Parts, WHEELS, Wheel};
use crate::python::Python;
use crate::units::size;
use crate::{checkout, compiler, cuda_headers, space};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Install the libtorch that the project builds against.
///
/// Nothing is fetched if LIBTORCH or LIBTORCH_USE_PYTORCH names a libtorch of the right version, if one is
/// already installed, or if the active Python has the right PyTorch, to which a link is made then; with `--cuda`, the
/// headers that a PyTorch lacks are put beside the link.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Install also what an NVIDIA GPU needs (about 2.5 GB to fetch instead of 0.5 GB).
    #[arg(long)]
    cuda: bool,

    /// Install again even if the installation is complete.
    #[arg(long)]
    force: bool,

    /// Fetch the wheels even if the active Python has a PyTorch that could be linked.
    #[arg(long)]
    download: bool,

    /// Install into this folder instead of `libtorch` in the checkout; builds find it through
    /// LIBTORCH=DIR/torch.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// What is wanted, after the arguments are understood.
#[derive(Debug)]
struct Request {
    root: PathBuf,
    parts: Parts,
    force: bool,
    download: bool,
    /// Whether the folder is the checkout's own; only that one competes with what the environment names.
    in_checkout: bool,
}

/// What has been done, with the sentence that tells it.
#[derive(Debug)]
enum Outcome {
    Found(String),
    Installed(String),
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Exit, Error> {
    let root = match &args.dir {
        Some(dir) => std::path::absolute(dir).map_err(Error::io("resolve", dir))?,
        None => checkout::libtorch(),
    };
    let parts = if args.cuda { Parts::Cuda } else { Parts::Cpu };
    let in_checkout = args.dir.is_none();
    let request = Request { root, parts, force: args.force, download: args.download, in_checkout };
    match settle(&Host::from_env(), &request)? {
        Outcome::Found(sentence) => eprintln!("{sentence} Nothing to install."),
        Outcome::Installed(sentence) => eprintln!("{sentence}"),
    }
    Ok(Exit::Success)
}

/// For the other commands: makes sure that there is a libtorch to build against, silently if there is.
pub fn ensure(host: &Host) -> Result<(), Error> {
    let root = checkout::libtorch();
    let request = Request { root, parts: Parts::Cpu, force: false, download: false, in_checkout: true };
    if let Outcome::Installed(sentence) = settle(host, &request)? {
        eprintln!("{sentence}");
    }
    Ok(())
}

fn settle(host: &Host, request: &Request) -> Result<Outcome, Error> {
    compiler::find(host)?;
    if request.in_checkout {
        if let Some(found) = named_by_environment(host, request.parts)? {
            return Ok(Outcome::Found(found));
        }
    } else if !install::is_usable(&request.root)? {
        return Err(Error::NotOurs { folder: request.root.clone() });
    }
    if !request.force {
        match installed(request) {
            Ok(Some(found)) => {
                install::tidy(&request.root)?;
                return Ok(Outcome::Found(found));
            }
            Ok(None) => {}
            Err(problem) => eprintln!(
                "The libtorch in {} cannot be used as it is ({problem}): installing it again.",
                request.root.display()
            ),
        }
    }
    match linkable(host, request) {
        Some((torch, python)) => link(&torch, &python, request),
        None => download(host, request),
    }
}

/// The libtorch that the user's environment names, in the order in which `torch-sys` looks.
fn named_by_environment(host: &Host, parts: Parts) -> Result<Option<String>, Error> {
    if host.use_pytorch {
        let python = Python::find(host)?;
        let folder = python.torch_folder()?.ok_or(Error::NoPytorch { python: python.program })?;
        let remedy =
            "install that version with pip, or unset LIBTORCH_USE_PYTORCH and run `cargo xtask setup`";
        let subject = format!("LIBTORCH_USE_PYTORCH is set, but {}", folder.display());
        let found = libtorch::check(&folder, parts, Origin { subject, remedy })?;
        check_headers(host, &folder, parts, "unset LIBTORCH_USE_PYTORCH and run `cargo xtask setup --cuda`")?;
        let folder = folder.display();
        return Ok(Some(format!(
            "LIBTORCH_USE_PYTORCH is set, and {folder} is PyTorch {VERSION} ({found})."
        )));
    }
    let Some(folder) = &host.libtorch else { return Ok(None) };
    let remedy = "point LIBTORCH to that version, or unset it and run `cargo xtask setup`";
    let subject = format!("LIBTORCH={}", folder.display());
    let found = libtorch::check(folder, parts, Origin { subject, remedy })?;
    check_headers(host, folder, parts, "unset LIBTORCH and run `cargo xtask setup --cuda`")?;
    Ok(Some(format!("LIBTORCH is set, and {} is libtorch {VERSION} ({found}).", folder.display())))
}

/// Refuses a libtorch against which the CUDA part that is asked for would not be built.
fn check_headers(host: &Host, torch: &Path, parts: Parts, remedy: &'static str) -> Result<(), Error> {
    if parts == Parts::Cpu || cuda_headers::find(host, torch).is_some() {
        return Ok(());
    }
    let folder = torch.with_file_name(cuda_headers::FOLDER);
    let missing = cuda_headers::missing(&folder).unwrap_or(folder);
    Err(Error::NoCudaHeaders { subject: torch.display().to_string(), missing, remedy })
}

/// The complete installation in the folder, described; if it is there but of no use, the error says why.
fn installed(request: &Request) -> Result<Option<String>, String> {
    let root = request.root.as_path();
    match Manifest::read(root) {
        Some(Manifest { source: Source::Linked { .. }, .. }) if request.download => {
            Err("it is a link, and `--download` asks for one of its own".into())
        }
        Some(manifest) => match manifest.problem(root, request.parts) {
            None => Ok(Some(describe(root, &manifest))),
            Some(problem) => Err(problem),
        },
        None if root.join("torch").symlink_metadata().is_ok() => {
            Err("it has no manifest: it was interrupted, or made by hand".into())
        }
        None => Ok(None),
    }
}

fn describe(root: &Path, manifest: &Manifest) -> String {
    let (files, bytes) = manifest.weight();
    let (root, parts) = (root.display(), manifest.parts);
    match &manifest.source {
        Source::Downloaded { .. } => {
            format!("libtorch {VERSION} ({parts}) is complete in {root}: {files} files, {}.", size(bytes))
        }
        Source::Linked { target, .. } => {
            format!("libtorch {VERSION} ({parts}) in {root} is a link to {}.", target.display())
        }
    }
}

/// The PyTorch of the active Python, if it can serve; that there is none is no error.
fn linkable(host: &Host, request: &Request) -> Option<(PathBuf, Python)> {
    if request.download || !cfg!(unix) {
        return None;
    }
    let python = Python::find(host).ok()?;
    let torch = python.torch_folder().ok()??;
    let origin = Origin { subject: torch.display().to_string(), remedy: "it is not linked" };
    libtorch::check(&torch, request.parts, origin).ok()?;
    (request.parts == Parts::Cpu || libtorch::fits_pinned_cuda(&torch)).then_some((torch, python))
}

#[cfg(unix)]
fn link(torch: &Path, python: &Python, request: &Request) -> Result<Outcome, Error> {
    if request.parts == Parts::Cuda {
        check_platform()?;
        python.check_pip()?;
    }
    let lock = Lock::acquire(&request.root)?;
    let fetch = |wheel: &Wheel<'_>, folder: &Path| python.download(wheel, folder);
    let manifest = install::link(&lock, torch, CUDA_HEADERS, request.parts, fetch)?;
    let (with, without_link) = match request.parts {
        Parts::Cpu => ("", "LIBTORCH_USE_PYTORCH=1 would use it without the link; "),
        Parts::Cuda => (", with CUDA's headers beside it,", ""),
    };
    eprintln!(
        "The active Python has PyTorch {VERSION}: it is linked{with} instead of fetching {}. ({without_link}`--download` \
         installs one that does not depend on that Python.)",
        size(sum(WHEELS, request.parts, |wheel| wheel.bytes))
    );
    Ok(Outcome::Installed(describe(&request.root, &manifest)))
}

#[cfg(not(unix))]
fn link(_: &Path, _: &Python, _: &Request) -> Result<Outcome, Error> {
    Err(Error::UnsupportedPlatform)
}

/// Fetches and unpacks the wheels. Whatever can be found wanting is found before the folder is touched.
fn download(host: &Host, request: &Request) -> Result<Outcome, Error> {
    check_platform()?;
    let (root, parts) = (request.root.as_path(), request.parts);
    let python = Python::find(host)?;
    python.check_pip()?;
    let to_fetch: Vec<u64> = WHEELS
        .iter()
        .filter(|wheel| wheel.serves(parts) && install::fetched(root, wheel).is_none())
        .map(|wheel| wheel.bytes)
        .collect();
    let unpacked = sum(WHEELS, parts, |wheel| wheel.unpacked(parts));
    let needed = space::needed(&to_fetch, unpacked);
    space::check(root, needed)?;
    let fetches = match to_fetch.len() {
        0 => "the wheels are already here and".into(),
        count => format!("pip fetches {} ({count} wheels), which", size(to_fetch.iter().sum())),
    };
    eprintln!(
        "Installing libtorch {VERSION} ({parts}) into {}: {fetches} unpack to {}; {} are needed meanwhile.",
        root.display(),
        size(unpacked),
        size(needed),
    );
    let start = Instant::now();
    let lock = Lock::acquire(root)?;
    // Another setup may have finished while this one waited for the lock.
    if !request.force
        && let Ok(Some(found)) = installed(request)
    {
        return Ok(Outcome::Found(found));
    }
    let manifest = install::download(&lock, WHEELS, parts, |wheel, folder| python.download(wheel, folder))?;
    let seconds = start.elapsed().as_secs();
    Ok(Outcome::Installed(format!("{} It took {seconds} s.", describe(root, &manifest))))
}

/// Refuses a platform for which no wheels are pinned.
pub fn check_platform() -> Result<(), Error> {
    if cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
        Ok(())
    } else {
        Err(Error::UnsupportedPlatform)
    }
}

fn sum(wheels: &[Wheel<'_>], parts: Parts, weight: impl Fn(&Wheel<'_>) -> u64) -> u64 {
    wheels.iter().filter(|wheel| wheel.serves(parts)).map(weight).sum()
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests;
