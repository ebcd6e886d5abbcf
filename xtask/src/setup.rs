//! `cargo xtask setup`: after it, a plain `cargo build` finds libtorch.
//!
//! pip installs pinned wheels, checked by their hashes, into a partial folder whose needed parts are renamed into place.
//! The list of pins is written last: a folder whose list is another one is installed again.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Exit};
use crate::{checkout, host, process};

/// The version of libtorch that `tch` 0.24 is made for; `torch-sys` rejects every other.
pub const VERSION: &str = "2.11.0";

/// The folder of CUDA's headers next to that of libtorch.
pub const CUDA_HEADERS: &str = "nvidia/cu13/include";

/// The list of pins in a complete folder. The build script of `ssn-cuda` watches it.
const INSTALLED: &str = "installed.txt";

/// Install the libtorch that the project builds against.
///
/// Installs nothing if LIBTORCH or LIBTORCH_USE_PYTORCH names a libtorch of the right version. The wheels are pinned
/// in `xtask/requirements`.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Install also what an NVIDIA GPU needs (2.5 GB to fetch instead of 0.5 GB).
    #[arg(long)]
    cuda: bool,

    /// Install into this folder instead of `libtorch` in the checkout; builds find it through LIBTORCH=DIR/torch.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Pinned wheels.
pub struct Wheels {
    /// A requirements file with hashes.
    requirements: &'static str,
    /// Files and folders that are kept; the rest of the wheels is deleted.
    kept: &'static [&'static str],
    size: &'static str,
}

const CPU: Wheels = Wheels {
    requirements: include_str!("../requirements/libtorch-cpu.txt"),
    kept: &[
        "torch/include",
        "torch/lib/libc10.so",
        "torch/lib/libgomp.so.1",
        // The linker wants it for `-ltorch`; nothing loads it.
        "torch/lib/libtorch.so",
        "torch/lib/libtorch_cpu.so",
        "nvidia/cu13/lib/libcudart.so.13",
        "nvidia/cu13/lib/libcupti.so.13",
    ],
    size: "0.5 GB",
};

const CUDA: Wheels = Wheels {
    requirements: include_str!("../requirements/libtorch-cuda.txt"),
    kept: &["torch/include", "torch/lib", "nvidia"],
    size: "2.5 GB",
};

/// What `cargo xtask check-cuda` compiles with.
pub const CUDA_COMPILER: Wheels = Wheels {
    requirements: include_str!("../requirements/cuda-compiler.txt"),
    kept: &[CUDA_HEADERS, "nvidia/cu13/lib/libnvrtc.so.13", "nvidia/cu13/lib/libnvrtc-builtins.so.13.0"],
    size: "93 MB",
};

/// Chooses wheels by their tags, whatever the version of the interpreter that runs pip.
const PIP: &str = "-I -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --require-hashes \
                   --progress-bar=off --only-binary=:all: --python-version=3.11 --implementation=cp --abi=cp311 \
                    --platform=manylinux_2_28_x86_64 --platform=manylinux_2_27_x86_64 \
                    --platform=manylinux_2_25_x86_64 --platform=manylinux_2_18_x86_64 \
                    --platform=manylinux2014_x86_64";

/// Runs the command.
pub fn run(args: &Args) -> Result<Exit, Error> {
    if !install(args)? {
        eprintln!("libtorch {VERSION} is installed; nothing to do.");
    }
    Ok(Exit::Success)
}

/// Installs libtorch if there is none.
pub fn ensure() -> Result<(), Error> {
    install(&Args::default()).map(drop)
}

/// Returns `true` if libtorch had to be installed.
fn install(args: &Args) -> Result<bool, Error> {
    host::compiler()?;
    if args.dir.is_none()
        && let Some(torch) = named_by_environment()?
    {
        check_version(&torch)?;
        if args.cuda {
            check_cuda_parts(&torch)?;
        }
        return Ok(false);
    }
    let root = match &args.dir {
        Some(dir) => std::path::absolute(dir).map_err(Error::io("resolve", dir))?,
        None => checkout::libtorch(),
    };
    // What serves a GPU serves the CPU too.
    if CUDA.are_in(&root) || !args.cuda && CPU.are_in(&root) {
        return Ok(false);
    }
    fetch(if args.cuda { &CUDA } else { &CPU }, &root)?;
    // `torch-sys` reads this file, which the wheels lack.
    let path = root.join("torch/build-version");
    fs::write(&path, format!("{VERSION}\n")).map_err(Error::io("write", &path))?;
    Ok(true)
}

/// Returns the `torch` folder that the user's environment names, in the order in which `torch-sys` looks.
pub fn named_by_environment() -> Result<Option<PathBuf>, Error> {
    if env::var_os("LIBTORCH_USE_PYTORCH").is_none() {
        return Ok(host::libtorch());
    }
    let script = "import importlib.util as u, os; print(os.path.dirname(u.find_spec('torch').origin))";
    let output = process::capture(Command::new(host::python()?).args(["-c", script]))?;
    let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match output.status.success() {
        true => Ok(Some(folder.into())),
        false => Err(Error::tool(format!(
            "LIBTORCH_USE_PYTORCH is set, but python finds no PyTorch: install it with `pip install torch=={VERSION}`, or \
             unset the variable and run `cargo xtask setup`"
        ))),
    }
}

/// Returns an error if a `torch` folder holds another version.
fn check_version(torch: &Path) -> Result<(), Error> {
    let read = |name: &str| fs::read_to_string(torch.join(name)).ok();
    // The archives of libtorch have the first file, PyTorch has the second.
    let quoted =
        |text: String| text.split_once("__version__ = ")?.1.split(['\'', '"']).nth(1).map(str::to_owned);
    let found = read("build-version").or_else(|| read("version.py").and_then(quoted));
    match found.as_deref().and_then(|found| found.trim().split('+').next()) {
        Some(VERSION) => Ok(()),
        found => Err(Error::data(format!(
            "the environment names {}, which holds libtorch {} instead of {VERSION}: install that version there, or unset \
             LIBTORCH and LIBTORCH_USE_PYTORCH and run `cargo xtask setup`",
            torch.display(),
            found.unwrap_or("of an unknown version")
        ))),
    }
}

/// Returns an error if a `torch` folder lacks what the CUDA part is built with.
fn check_cuda_parts(torch: &Path) -> Result<(), Error> {
    let beside = torch.parent().map(|root| root.join(CUDA_HEADERS));
    let named = env::var_os("CUDA_HOME").map(|home| Path::new(&home).join("include"));
    let has_headers =
        beside.into_iter().chain(named).any(|folder| folder.join("crt/host_config.h").is_file());
    let missing = match torch.join("lib/libtorch_cuda.so").is_file() {
        true if has_headers => return Ok(()),
        true => "CUDA's headers: `pip install -r xtask/requirements/cuda-headers.txt`, or set CUDA_HOME",
        false => "libtorch_cuda.so: install a PyTorch with CUDA",
    };
    Err(Error::data(format!("{}, which the environment names, lacks {missing}", torch.display())))
}

impl Wheels {
    /// Returns `true` if a folder is complete and made of these wheels.
    pub fn are_in(&self, root: &Path) -> bool {
        fs::read_to_string(root.join(INSTALLED)).is_ok_and(|text| text == self.requirements)
            && self.kept.iter().all(|path| root.join(path).exists())
    }
}

/// Installs wheels into a folder. What was there before stays until all of them have arrived.
pub fn fetch(wheels: &Wheels, root: &Path) -> Result<(), Error> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
        return Err(Error::tool(format!(
            "wheels are pinned for Linux on x86-64 with glibc: here, install PyTorch with `pip install torch=={VERSION}` and \
             set LIBTORCH_USE_PYTORCH=1"
        )));
    }
    let python = host::python()?;
    eprintln!("pip fetches {} for {}.", wheels.size, root.display());
    fs::create_dir_all(root).map_err(Error::io("create", root))?;
    let lock = fs::File::create(root.join(".lock")).map_err(Error::io("lock", root))?;
    lock.lock().map_err(Error::io("lock", root))?;
    if wheels.are_in(root) {
        return Ok(()); // Another process has installed them.
    }
    clear(root)?;
    let partial = tempfile::Builder::new().prefix(".partial-").tempdir_in(root);
    let partial = partial.map_err(Error::io("create a folder in", root))?;
    let [list, new, old] = ["pins.txt", "new", "old"].map(|name| partial.path().join(name));
    fs::write(&list, wheels.requirements).map_err(Error::io("write", &list))?;
    let mut pip = Command::new(python);
    pip.args(PIP.split_whitespace())
        .arg("--target")
        .arg(&new)
        .arg("-r")
        .arg(&list)
        // pip unpacks there first; the usual folder may be small, or memory.
        .env("TMPDIR", partial.path())
        // They do not concern `--target`.
        .envs([("PIP_USER", "0"), ("PIP_REQUIRE_VIRTUALENV", "0")]);
    if process::run(&mut pip)? != Exit::Success {
        return Err(Error::system(
            "pip could not install the wheels (its message is above); what was there before is unchanged",
        ));
    }
    let pins = root.join(INSTALLED);
    // From here on the folder is incomplete until the pins are written again.
    fs::write(&pins, "incomplete\n").map_err(Error::io("write", &pins))?;
    let parts = wheels.kept.iter().map(ToString::to_string).chain(licenses(&new)?);
    for path in parts {
        let [from, to, away] = [&new, root, &old].map(|folder| folder.join(&path));
        for folder in [&to, &away].iter().filter_map(|path| path.parent()) {
            fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        }
        if to.exists() {
            fs::rename(&to, &away).map_err(Error::io("move", &to))?;
        }
        fs::rename(&from, &to).map_err(Error::io("move", &from))?;
    }
    fs::write(&pins, wheels.requirements).map_err(Error::io("write", &pins))
}

/// Removes what an interrupted installation left, and refuses a folder with files that were not installed here.
fn clear(root: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(root).map_err(Error::io("list", root))?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(".partial-") {
            fs::remove_dir_all(entry.path()).map_err(Error::io("remove", &entry.path()))?;
        }
    }
    let torch = root.join("torch");
    if torch.is_symlink() {
        // Version 0.2 linked the PyTorch of the active Python.
        return fs::remove_file(&torch).map_err(Error::io("remove", &torch));
    }
    match (torch.exists() || root.join("nvidia").exists()) && !root.join(INSTALLED).exists() {
        true => Err(Error::data(format!(
            "{} holds a PyTorch that `cargo xtask setup` did not install: remove it, or choose another folder with --dir",
            root.display()
        ))),
        false => Ok(()),
    }
}

/// Returns the folders of the wheels' licenses.
fn licenses(folder: &Path) -> Result<Vec<String>, Error> {
    let names = fs::read_dir(folder).map_err(Error::io("list", folder))?.flatten();
    Ok(names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".dist-info"))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wheel_has_one_pin_in_all_files() {
        let mut pins = std::collections::BTreeMap::new();
        for line in [CPU, CUDA, CUDA_COMPILER].map(|wheels| wheels.requirements).concat().lines() {
            if line.starts_with('#') {
                continue;
            }
            let (package, pin) = line.split_once("==").unwrap();
            let (_, hash) = pin.split_once(" --hash=sha256:").unwrap();
            assert!(hash.len() == 64 && hash.chars().all(|c| c.is_ascii_hexdigit()), "{line}");
            assert_eq!(pins.entry(package.to_owned()).or_insert(pin.to_owned()), pin);
        }
        assert!(pins["torch"].starts_with(&format!("{VERSION} ")));
    }

    #[test]
    fn versions_are_read_and_compared() {
        let folder = tempfile::tempdir().unwrap();
        for (file, text, fits) in [
            ("version.py", "__version__ = '2.11.0+cu130'\n", true),
            ("version.py", "__version__ = '2.10.0'\n", false),
            ("build-version", "2.11.0+cpu\n", true),
            ("build-version", "", false),
        ] {
            fs::write(folder.path().join(file), text).unwrap();
            assert_eq!(check_version(folder.path()).is_ok(), fits, "{file}: {text}");
        }
    }
}
