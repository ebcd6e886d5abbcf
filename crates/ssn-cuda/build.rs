//! Builds the C++ part against the headers of libtorch and CUDA, where both are there, and embeds it.
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
    let torch = library.ok().and_then(|lib| lib.parent().map(Path::to_owned));
    let headers = torch.as_deref().and_then(|torch| Some((torch.join("include"), cuda_headers(torch)?)));
    let Some((torch, cuda)) = headers else {
        return Ok(fs::write(result, [])?);
    };
    let compiler = env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let mut command = Command::new(compiler);
    command.args(["-std=c++17", "-O1", "-fPIC", "-shared", "-s", "-Wall", "-Wno-unknown-pragmas"]);
    command.arg("-isystem").arg(&torch).arg("-isystem").arg(torch.join("torch/csrc/api/include"));
    command.arg("-isystem").arg(&cuda).arg("shim/shim.cpp").arg("-o").arg(&result);
    if !command.status()?.success() {
        return Err(format!("{command:?} failed").into());
    }
    Ok(())
}

/// The folder of CUDA's headers: that of CUDA_HOME, or the one that comes with libtorch.
fn cuda_headers(torch: &Path) -> Option<PathBuf> {
    let named = env::var("CUDA_HOME").ok().map(|home| Path::new(&home).join("include"));
    let installed = torch.parent().map(|folder| folder.join("nvidia/cu13/include"));
    let candidates: Vec<PathBuf> = named.into_iter().chain(installed).collect();
    for folder in &candidates {
        println!("cargo:rerun-if-changed={}", folder.join("cuda_runtime_api.h").display());
    }
    let is_complete = |folder: &PathBuf| {
        folder.join("cuda_runtime_api.h").is_file() && folder.join("crt/host_config.h").is_file()
    };
    candidates.into_iter().find(is_complete)
}
