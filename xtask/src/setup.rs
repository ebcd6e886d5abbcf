//! `cargo xtask setup`: after it, a plain `cargo build` finds the right libtorch.
//!
//! The choice is made in this order: the one that the environment names; the one that is already installed; a
//! link to the PyTorch of the active Python, if it is of the right version; the pinned wheels.

use crate::error::Error;
use crate::exit::Exit;
use crate::host::Host;
use crate::install::{self, Manifest, WheelSet};
use crate::libtorch::{self, CUDA_HEADERS, Parts, VERSION};
use crate::python::Python;
use crate::{checkout, compiler};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Install the libtorch that the project builds against.
///
/// Nothing is fetched if LIBTORCH or LIBTORCH_USE_PYTORCH names a libtorch of the right version, if one is
/// already installed, or if the active Python has the right PyTorch, to which a link is made then; with `--cuda`, the
/// headers that a PyTorch lacks are put beside the link. What is fetched is pinned in `xtask/requirements`; pip keeps it
/// in its cache, too, unless PIP_NO_CACHE_DIR=1.
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

/// Refuses a platform for which no wheels are pinned.
pub fn check_platform() -> Result<(), Error> {
    if cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
        Ok(())
    } else {
        Err(Error::UnsupportedPlatform)
    }
}

fn settle(host: &Host, request: &Request) -> Result<Outcome, Error> {
    let Request { root, parts, .. } = request;
    compiler::find(host)?;
    if request.in_checkout {
        if let Some(found) = named_by_environment(host, *parts)? {
            return Ok(Outcome::Found(found));
        }
    } else if !install::is_usable(root)? {
        return Err(Error::NotOurs { folder: root.clone() });
    }
    match installed(request) {
        Ok(Some(found)) if !request.force => return Ok(Outcome::Found(found)),
        Err(fault) if !request.force => eprintln!(
            "The libtorch in {} cannot be used as it is ({fault}): installing it again.",
            root.display()
        ),
        _ => {}
    }
    // Whatever can be found wanting is found before the folder is touched.
    let python = Python::find(host)?;
    let linked = linkable(&python, request);
    let set = WheelSet::of(*parts, linked.is_some());
    if !set.is_empty() {
        check_platform()?;
        python.check_pip()?;
    }
    let doing = match &linked {
        Some(torch) => format!("Linking {}, which is PyTorch {VERSION},", torch.display()),
        None => format!("Installing libtorch {VERSION} ({parts})"),
    };
    eprintln!("{doing} into {}: pip fetches {}.", root.display(), set.sizes);
    let start = Instant::now();
    let _lock = install::lock(root)?;
    // Another setup may have finished while this one waited for the lock.
    if !request.force
        && let Ok(Some(found)) = installed(request)
    {
        return Ok(Outcome::Found(found));
    }
    install::fill(root, set, linked, &python)?;
    match installed(request) {
        Ok(Some(done)) => Ok(Outcome::Installed(format!("{done} It took {} s.", start.elapsed().as_secs()))),
        Ok(None) => Err(install::not_believed("it left nothing")),
        Err(fault) => Err(install::not_believed(&fault)),
    }
}

/// The libtorch that the user's environment names, in the order in which `torch-sys` looks.
fn named_by_environment(host: &Host, parts: Parts) -> Result<Option<String>, Error> {
    let (variable, folder, remedy) = if host.use_pytorch {
        let python = Python::find(host)?;
        let folder = python.torch_folder()?.ok_or(Error::NoPytorch { python: python.program })?;
        ("LIBTORCH_USE_PYTORCH", folder, "install that version with pip, or unset LIBTORCH_USE_PYTORCH")
    } else if let Some(folder) = &host.libtorch {
        ("LIBTORCH", folder.clone(), "point LIBTORCH to that version, or unset it")
    } else {
        return Ok(None);
    };
    let subject = format!("{variable} is set, and {}", folder.display());
    match libtorch::check(&folder, parts) {
        Ok(found) if parts == Parts::Cpu || has_headers(host, &folder) => {
            Ok(Some(format!("{subject} is libtorch {VERSION} ({found}).")))
        }
        Ok(_) => Err(Error::NoCudaHeaders { subject, folder: folder.with_file_name(CUDA_HEADERS) }),
        Err(fault) => Err(Error::WrongLibtorch { subject, fault, remedy }),
    }
}

/// Whether a build against this libtorch finds CUDA's headers: beside it, or in CUDA_HOME.
fn has_headers(host: &Host, torch: &Path) -> bool {
    let named = host.cuda_home.as_ref().map(|home| home.join("include"));
    let mut folders = named.into_iter().chain([torch.with_file_name(CUDA_HEADERS)]);
    folders.any(|folder| libtorch::missing_header(&folder).is_none())
}

/// The complete installation in the folder, described; if it is there but of no use, the error says why.
fn installed(request: &Request) -> Result<Option<String>, String> {
    let (root, torch) = (request.root.display(), request.root.join("torch"));
    let Some(manifest) = Manifest::read(&request.root) else {
        return match torch.symlink_metadata() {
            Ok(_) => {
                Err("it has no manifest: it was interrupted, or made by hand or by another version".into())
            }
            Err(_) => Ok(None),
        };
    };
    let linked = manifest.linked.as_deref();
    let fitting = |parts: &Parts| manifest.fits(WheelSet::of(*parts, linked.is_some()));
    let parts = [Parts::Cpu, Parts::Cuda].into_iter().find(fitting);
    let parts = parts.ok_or("its wheels are not the pinned ones")?;
    if parts < request.parts {
        return Err(format!("it is made for the {parts} alone"));
    }
    if request.download && linked.is_some() {
        return Err("it is a link, and `--download` asks for one of its own".into());
    }
    if linked.is_some() && fs::read_link(&torch).ok().as_deref() != linked {
        return Err("torch is not the link that was made".into());
    }
    libtorch::check(&torch, request.parts).map_err(|fault| format!("torch {fault}"))?;
    if request.parts == Parts::Cuda {
        if linked.is_some_and(|target| !libtorch::fits_pinned_cuda(target)) {
            return Err("it links to a PyTorch for another CUDA".into());
        }
        if let Some(missing) = libtorch::missing_header(&request.root.join(CUDA_HEADERS)) {
            return Err(format!("it has no {}, which building the CUDA part needs", missing.display()));
        }
    }
    Ok(Some(match linked {
        None => format!("libtorch {VERSION} ({parts}) is complete in {root}."),
        Some(target) => format!("libtorch {VERSION} ({parts}) in {root} is a link to {}.", target.display()),
    }))
}

/// The `torch` folder of the active Python, if it can serve.
fn linkable(python: &Python, request: &Request) -> Option<PathBuf> {
    let torch = python.torch_folder().ok().flatten().filter(|_| !request.download)?;
    libtorch::check(&torch, request.parts).ok()?;
    (request.parts == Parts::Cpu || libtorch::fits_pinned_cuda(&torch)).then_some(torch)
}
