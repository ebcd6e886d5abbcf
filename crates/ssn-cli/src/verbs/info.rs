//! `ssn info`: what this machine offers and what is missing.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::answer::Answer;
use crate::engine::{EngineInfo, LIBTORCH_VERSION, Libtorch, engine_path, libraries_of};
use crate::exit::Failure;

/// The library that computations on a GPU need, loaded on demand.
const LIBTORCH_CUDA: &str = "libtorch_cuda.so";
/// The library through which kernels are compiled, loaded on demand as well.
const LIBTORCH_NVRTC: &str = "libcaffe2_nvrtc.so";
/// The driver's library; it comes with the driver, not with libtorch.
const CUDA_DRIVER: &str = "libcuda.so.1";

/// Everything that `ssn info` tells.
#[derive(Debug, Serialize)]
struct Info {
    version: &'static str,
    cpu: Cpu,
    engine: Option<PathBuf>,
    libtorch: Libtorch,
    cuda: Cuda,
}

#[derive(Debug, Serialize)]
struct Cpu {
    name: String,
    cores: usize,
    memory_gib: Option<f64>,
    vectors: &'static str,
}

#[derive(Debug, Serialize)]
struct Cuda {
    gpus: Vec<String>,
    driver: Option<String>,
    libtorch_cuda: Option<PathBuf>,
    /// Whether the engine was built with its CUDA part.
    engine_part: bool,
    /// What stands between this machine and `--device cuda`; empty when nothing does.
    lacks: Vec<String>,
}

/// Gathers the information.
pub fn answer() -> Result<Answer, Failure> {
    let info = gather();
    Answer::new(describe(&info), &info)
}

fn gather() -> Info {
    let engine = engine_path();
    let libtorch = engine.as_deref().map(Libtorch::of);
    let cuda = cuda(engine.as_deref().zip(libtorch.as_ref()));
    let libtorch = libtorch.unwrap_or_default();
    Info { version: env!("CARGO_PKG_VERSION"), cpu: cpu(), engine, libtorch, cuda }
}

fn cpu() -> Cpu {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok());
    Cpu {
        name: name.map_or(std::env::consts::ARCH, |(_, name)| name).to_owned(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory_gib: kib.map(|kib: f64| (kib / 1024.0 / 102.4).round() / 10.0),
        vectors: vectors(),
    }
}

#[cfg(target_arch = "x86_64")]
fn vectors() -> &'static str {
    if is_x86_feature_detected!("avx512f") {
        "AVX-512"
    } else if is_x86_feature_detected!("avx2") {
        "AVX2"
    } else {
        "SSE2"
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn vectors() -> &'static str {
    "the architecture's baseline"
}

fn cuda(engine: Option<(&Path, &Libtorch)>) -> Cuda {
    let gpus = nvidia_gpus();
    let driver =
        std::fs::read_to_string("/proc/driver/nvidia/version").ok().and_then(|text| driver_version(&text));
    let libtorch = engine.and_then(|(_, libtorch)| libtorch.folder.as_deref());
    let library = libtorch.map(|folder| folder.join(LIBTORCH_CUDA)).filter(|path| path.is_file());
    let mut lacks = vec![];
    // Under WSL the driver's files in /proc are missing, but its device is there.
    if gpus.is_empty() && driver.is_none() && !Path::new("/dev/dxg").exists() {
        lacks.push("an NVIDIA GPU with its driver".to_owned());
    }
    match (engine, &library) {
        (Some((engine, _)), Some(library)) => {
            let on_demand = [library.clone(), library.with_file_name(LIBTORCH_NVRTC)];
            lacks.extend(libraries_of(engine, &on_demand).missing.iter().map(|name| missing_for_cuda(name)));
        }
        _ if libtorch.is_some() => {
            lacks.push(format!(
                "{LIBTORCH_CUDA} beside libtorch's other libraries (run `cargo xtask setup --cuda`)"
            ));
        }
        _ => lacks.push("libtorch".to_owned()),
    }
    let starts = engine.filter(|(_, libtorch)| libtorch.problem().is_none());
    let engine_part = starts.and_then(|(engine, _)| EngineInfo::of(engine)).unwrap_or_default().cuda_part;
    if starts.is_some() && !engine_part {
        lacks.push(
            "the CUDA part of ssn-engine (run `cargo xtask setup --cuda`, then build it again)".to_owned(),
        );
    }
    Cuda { gpus, driver, libtorch_cuda: library, engine_part, lacks }
}

/// The version in the first line that the driver writes: the first word that is a number with points.
fn driver_version(text: &str) -> Option<String> {
    let number = |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.split_whitespace().find(number).map(str::to_owned)
}

fn missing_for_cuda(name: &str) -> String {
    match name {
        CUDA_DRIVER => format!("{name} (comes with the NVIDIA driver)"),
        _ => format!("{name} (run `cargo xtask setup --cuda`)"),
    }
}

/// Names of the GPUs that the NVIDIA driver reports.
fn nvidia_gpus() -> Vec<String> {
    let Ok(folders) = std::fs::read_dir("/proc/driver/nvidia/gpus") else { return vec![] };
    let mut names: Vec<String> = folders
        .flatten()
        .filter_map(|folder| {
            let text = std::fs::read_to_string(folder.path().join("information")).ok()?;
            Some(text.lines().find_map(|line| line.strip_prefix("Model:"))?.trim().to_owned())
        })
        .collect();
    names.sort();
    names
}

fn describe(info: &Info) -> String {
    let shown = |path: &Option<PathBuf>, absent: &str| match path {
        Some(path) => path.display().to_string(),
        None => absent.to_owned(),
    };
    let mut text = String::new();
    let mut row = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<10} {value}");
    };
    let Cpu { name, cores, memory_gib, vectors } = &info.cpu;
    let memory = memory_gib.map_or(String::new(), |gib| format!(", {gib} GiB memory"));
    row("ssn", info.version.to_owned());
    row("cpu", format!("{name}, {cores} cores{memory}, {vectors}"));
    row("engine", shown(&info.engine, "not found beside ssn (build it with `cargo build --release`)"));
    let version = info.libtorch.version.as_deref().unwrap_or("unknown version");
    row(
        "libtorch",
        match &info.libtorch.folder {
            Some(folder) if version.split('+').next() != Some(LIBTORCH_VERSION) => {
                format!("{version} in {}, but {} is needed", folder.display(), LIBTORCH_VERSION)
            }
            Some(folder) => format!("{version} in {}", folder.display()),
            None => "not found (run `cargo xtask setup`)".to_owned(),
        },
    );
    if info.libtorch.folder.is_some() && !info.libtorch.missing.is_empty() {
        row("", format!("missing: {}", info.libtorch.missing.join(", ")));
    }
    if let Some(said) = &info.libtorch.too_old {
        row("", said.clone());
    }
    for gpu in &info.cuda.gpus {
        row("gpu", gpu.clone());
    }
    if let Some(driver) = &info.cuda.driver {
        row("driver", driver.clone());
    }
    row(
        "cuda",
        if info.cuda.lacks.is_empty() {
            "ready".to_owned()
        } else {
            format!("lacks {}", info.cuda.lacks.join("; "))
        },
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_version_is_found() {
        let text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build";
        assert_eq!(driver_version(text).as_deref(), Some("580.159.03"));
        assert_eq!(driver_version("nothing"), None);
    }
}
