//! `cargo xtask setup`: after it, a plain `cargo build` finds the right libtorch.
//!
//! The choice is made in this order: the one that the environment names; the one that is already installed; a
//! link to the PyTorch of the active Python, if it is of the right version; the pinned wheels.

use crate::error::{Error, Exit};
use crate::install::{self, Manifest, WheelSet};
use crate::libtorch::{self, CUDA_HEADERS, VERSION};
use crate::{checkout, host, python};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Install the libtorch that the project builds against.
///
/// Nothing is fetched if LIBTORCH or LIBTORCH_USE_PYTORCH names a libtorch of the right version, if one is
/// already installed, or if the active Python has the right PyTorch, to which a link is made then; with `--cuda`, the
/// headers that a PyTorch lacks are put beside the link. The wheels are pinned in `xtask/requirements`; pip keeps what
/// it fetches in its cache, too, unless PIP_NO_CACHE_DIR=1.
#[derive(Debug, Default, clap::Args)]
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

/// Runs the command.
pub fn run(args: &Args) -> Result<Exit, Error> {
    if let Some(found) = find_or_install(args)? {
        eprintln!("{found} Nothing to install.");
    }
    Ok(Exit::Success)
}

/// For the other commands: makes sure that there is a libtorch to build against, silently if there is.
pub fn ensure() -> Result<(), Error> {
    find_or_install(&Args::default()).map(drop)
}

/// A sentence about the libtorch that is there, or nothing after an installation, which says itself what it does.
fn find_or_install(args: &Args) -> Result<Option<String>, Error> {
    host::compiler()?;
    let root = match &args.dir {
        Some(dir) => std::path::absolute(dir).map_err(Error::io("resolve", dir))?,
        None => checkout::libtorch(),
    };
    // Only the checkout's own folder competes with what the environment names.
    if args.dir.is_none() {
        if let Some((variable, folder)) = named_by_environment()? {
            return check_named(variable, &folder, args.cuda).map(Some);
        }
    } else if !install::is_usable(&root)? {
        return Err(Error::NotOurs { folder: root });
    }
    match installed(&root, args) {
        Ok(Some(found)) if !args.force => return Ok(Some(found)),
        Err(fault) if !args.force => eprintln!(
            "The libtorch in {} cannot be used as it is ({fault}): installing it again.",
            root.display()
        ),
        _ => {}
    }
    // Whatever can be found wanting is found before the folder is touched.
    let python = host::python()?;
    let linked = linkable(&python, args);
    let set = WheelSet::of_libtorch(args.cuda, linked.is_some());
    if !set.is_empty() {
        python::check_pip(&python)?;
    }
    match &linked {
        Some(torch) => eprintln!(
            "Linking {}, which is PyTorch {VERSION} (`--download` installs one that does not depend on that Python).",
            torch.display()
        ),
        None => eprintln!("Installing libtorch {VERSION} ({}) into {}.", parts(args.cuda), root.display()),
    }
    eprintln!("pip fetches {}.", set.sizes);
    let start = Instant::now();
    let _lock = install::lock(&root)?;
    // Another setup may have finished while this one waited for the lock.
    if !args.force
        && let Ok(Some(found)) = installed(&root, args)
    {
        return Ok(Some(found));
    }
    install::fill(&root, set, linked.as_deref(), &python)?;
    let done = installed(&root, args).and_then(|done| done.ok_or_else(|| "it left nothing".into()));
    let done = done.map_err(|reason| Error::BadAnswer { command: "pip install".into(), reason })?;
    eprintln!("{done} It took {} s.", start.elapsed().as_secs());
    Ok(None)
}

/// The variable by which the user's environment names a `torch` folder, in the order in which `torch-sys` looks.
pub fn named_by_environment() -> Result<Option<(&'static str, PathBuf)>, Error> {
    if host::uses_pytorch() {
        let python = host::python()?;
        let folder = python::torch_folder(&python)?.ok_or(Error::NoPytorch { python })?;
        return Ok(Some(("LIBTORCH_USE_PYTORCH", folder)));
    }
    Ok(host::libtorch().map(|folder| ("LIBTORCH", folder)))
}

/// Describes the libtorch that the environment names, or refuses it.
fn check_named(variable: &'static str, folder: &Path, cuda: bool) -> Result<String, Error> {
    let subject = format!("{variable} is set, and {}", folder.display());
    if let Err(fault) = libtorch::check(folder, cuda) {
        return Err(Error::WrongLibtorch { subject, fault, variable });
    }
    let beside = folder.with_file_name(CUDA_HEADERS);
    let mut headers = host::cuda_headers().into_iter().chain([beside.clone()]);
    if cuda && !headers.any(|folder| libtorch::has_cuda_headers(&folder)) {
        return Err(Error::NoCudaHeaders { subject, folder: beside });
    }
    let parts = parts(libtorch::check(folder, true).is_ok());
    Ok(format!("{subject} is libtorch {VERSION} ({parts})."))
}

/// The complete installation in the folder, described; if it is there but of no use, the error says why.
fn installed(root: &Path, args: &Args) -> Result<Option<String>, String> {
    let torch = root.join("torch");
    let Some(manifest) = Manifest::read(root) else {
        let fault = "it has no manifest: it was interrupted, or made by hand or by another version";
        return if torch.symlink_metadata().is_ok() { Err(fault.into()) } else { Ok(None) };
    };
    let linked = manifest.linked();
    let set = |cuda| WheelSet::of_libtorch(cuda, linked.is_some());
    let cuda = manifest.fits(set(true));
    if !cuda && !manifest.fits(set(false)) {
        return Err("its wheels are not the pinned ones".into());
    }
    if let Some(missing) = set(cuda).missing(root) {
        return Err(format!("{missing} is missing"));
    }
    if args.cuda && !cuda {
        return Err("it is made for the CPU alone".into());
    }
    if let Some(target) = linked {
        if args.download {
            return Err("it is a link, and `--download` asks for one of its own".into());
        }
        if args.cuda && !libtorch::fits_pinned_cuda(target) {
            return Err(format!("it links to {}, which is for another CUDA", target.display()));
        }
    }
    libtorch::check(&torch, args.cuda).map_err(|fault| format!("torch {fault}"))?;
    let (root, parts) = (root.display(), parts(cuda));
    Ok(Some(match linked {
        None => format!("libtorch {VERSION} ({parts}) is complete in {root}."),
        Some(target) => format!("libtorch {VERSION} ({parts}) in {root} is a link to {}.", target.display()),
    }))
}

fn parts(cuda: bool) -> &'static str {
    if cuda { "CPU and CUDA" } else { "CPU" }
}

/// The `torch` folder of the active Python, if it can serve.
fn linkable(python: &Path, args: &Args) -> Option<PathBuf> {
    let torch = python::torch_folder(python).ok().flatten().filter(|_| !args.download)?;
    libtorch::check(&torch, args.cuda).ok()?;
    (!args.cuda || libtorch::fits_pinned_cuda(&torch)).then_some(torch)
}
