//! Builds the C++ of autograd nodes against the headers of libtorch, and the CUDA part against those of libtorch and CUDA,
//! where both are there, and embeds it.
//!
//! Without CUDA's headers the crate builds too, and says at run time that it has no CUDA part.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    let result = PathBuf::from(env::var("OUT_DIR")?).join("shim.so");
    println!("cargo:rerun-if-changed=shim");
    for name in ["LIBTORCH", "CUDA_HOME", "CXX"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let library = env::var("DEP_TCH_LIBTORCH_LIB").map(PathBuf::from);
    if let Ok(library) = &library {
        // For the tests of this crate.
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", library.display());
    }
    let torch = library.ok().and_then(|lib| lib.parent().map(Path::to_owned));
    if let Some(torch) = &torch {
        autograd(&torch.join("include"));
    }
    let headers = torch.as_deref().and_then(|torch| Some((torch.join("include"), cuda_headers(torch)?)));
    let Some((torch, cuda)) = headers else {
        return Ok(fs::write(result, [])?);
    };
    // CXX may carry arguments or a wrapper, as in `ccache g++`.
    let compiler = env::var("CXX").unwrap_or_default();
    let mut words = compiler.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("c++"));
    command.args(words);
    // `cargo xtask check-cuda` compiles with the same flags.
    command.args(["@shim/flags", "-shared", "-s"]);
    command.arg("-isystem").arg(&torch).arg("-isystem").arg(torch.join("torch/csrc/api/include"));
    command.arg("-isystem").arg(&cuda).arg("shim/shim.cpp").arg("-o").arg(&result);
    if !command.status()?.success() {
        return Err(format!("{command:?} failed").into());
    }
    Ok(())
}

/// Compiles the autograd nodes, which are linked: CPUs need them too.
fn autograd(torch: &Path) {
    println!("cargo:rerun-if-changed=autograd.cpp");
    let mut build = cc::Build::new();
    for folder in [torch.to_owned(), torch.join("torch/csrc/api/include")] {
        build.flag("-isystem").flag(folder.to_string_lossy().as_ref());
    }
    build.cpp(true).std("c++17").file("autograd.cpp").compile("ssn_autograd");
}

/// Returns the folder of CUDA's headers: the one that comes with libtorch, or that of CUDA_HOME.
fn cuda_headers(torch: &Path) -> Option<PathBuf> {
    let root = torch.parent();
    // Cargo would run this again at every build for a file that is not there.
    let watch = |path: PathBuf| {
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    };
    if let Some(root) = root {
        watch(root.join("installed.txt"));
    }
    let beside = root.map(|root| root.join("nvidia/cu13/include"));
    let named = env::var("CUDA_HOME").ok().map(|home| Path::new(&home).join("include"));
    for folder in beside.into_iter().chain(named) {
        let needed = ["cuda_runtime_api.h", "crt/host_config.h"].map(|name| folder.join(name));
        if needed.iter().all(|file| file.is_file()) {
            needed.into_iter().for_each(watch);
            return Some(folder);
        }
        watch(folder);
    }
    None
}
