//! `cargo xtask setup` installs, fails and refuses as it says. The interpreter is a shell script.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ssn_testing::process::{Ended, run_to_end};
use tempfile::TempDir;

/// A folder to install into.
struct Scene {
    temp: TempDir,
}

impl Scene {
    fn new() -> Self {
        Self { temp: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    /// Returns the command with a pip of this kind, in an environment that names no libtorch.
    fn command(&self, pip: &str, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        let python = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python");
        command.arg("setup").args(args).env("PIP", pip).env("PATH", format!("{python}:/usr/bin:/bin"));
        command.env("CXX", "/bin/sh");
        for name in ["LIBTORCH", "LIBTORCH_USE_PYTORCH", "VIRTUAL_ENV", "CUDA_HOME", "PYTHON_TORCH"] {
            command.env_remove(name);
        }
        command
    }

    /// Installs into the folder.
    fn setup(&self, pip: &str, args: &[&str]) -> Ended {
        run_to_end(self.command(pip, args).arg("--dir").arg(self.path("libtorch")))
    }

    /// Returns `true` if a run that cannot fetch anything is content.
    fn is_complete(&self) -> bool {
        let ended = self.setup("offline", &[]);
        ended.code == Some(0) && ended.stderr.ends_with("is installed; nothing to do.\n")
    }
}

#[track_caller]
fn assert_fails(ended: &Ended, code: i32, part: &str) {
    assert!(ended.code == Some(code) && ended.stderr.contains(part), "{ended:?}");
}

#[test]
fn a_fresh_folder_gets_what_builds_need_and_nothing_else() {
    let scene = Scene::new();
    assert_eq!(scene.setup("working", &[]).code, Some(0));
    let root = scene.path("libtorch");
    for kept in
        ["torch/lib/libtorch_cpu.so", "torch/include/torch/torch.h", "nvidia/cu13/lib/libcudart.so.13"]
    {
        assert_eq!(fs::read_to_string(root.join(kept)).unwrap().trim(), kept);
    }
    for left_out in ["torch/nn", "torch/lib/libtorch_cuda.so", "nvidia/cu13/include"] {
        assert!(!root.join(left_out).exists(), "{left_out}");
    }
    assert_eq!(fs::read_to_string(root.join("torch/build-version")).unwrap(), "2.11.0\n");
    assert_eq!(fs::read_dir(&root).unwrap().count(), 5, "torch, nvidia, the license, the pins and the lock");
    assert!(scene.is_complete());
    // What serves a GPU serves the CPU, but not the other way round.
    assert_fails(&scene.setup("offline", &["--cuda"]), 74, "pip could not install the wheels");
    assert!(scene.is_complete());
    assert_eq!(scene.setup("working", &["--cuda"]).code, Some(0));
    assert!(root.join("torch/lib/libtorch_cuda.so").exists() && scene.is_complete());
}

#[test]
fn a_failure_changes_nothing() {
    let scene = Scene::new();
    fs::create_dir(scene.path("libtorch")).unwrap();
    fs::write(scene.path("libtorch/notes.txt"), "mine").unwrap();
    scene.setup("working", &[]);
    for pip in ["offline", "wrong-hash", "missing"] {
        assert_fails(&scene.setup(pip, &["--cuda"]), 74, "what was there before is unchanged");
        assert!(scene.is_complete(), "{pip}");
    }
    assert!(scene.path("libtorch/notes.txt").exists());
}

#[test]
fn a_folder_that_is_not_complete_is_installed_again() {
    let scene = Scene::new();
    scene.setup("working", &[]);
    fs::remove_file(scene.path("libtorch/torch/lib/libgomp.so.1")).unwrap();
    fs::create_dir(scene.path("libtorch/.partial-of-a-killed-run")).unwrap();
    assert_fails(&scene.setup("offline", &[]), 74, "pip could not install");
    assert_eq!(scene.setup("working", &[]).code, Some(0));
    assert!(scene.is_complete() && !scene.path("libtorch/.partial-of-a-killed-run").exists());
    let pins = scene.path("libtorch/installed.txt");
    let text = fs::read_to_string(&pins).unwrap();
    fs::write(&pins, text.replacen("sha256:7", "sha256:8", 1)).unwrap();
    assert_eq!(scene.setup("working", &[]).code, Some(0));
    assert_eq!(fs::read_to_string(&pins).unwrap(), text);
}

#[test]
fn a_pytorch_of_somebody_else_is_left_alone() {
    let scene = Scene::new();
    let foreign = scene.path("site-packages/torch/include");
    fs::create_dir_all(&foreign).unwrap();
    fs::create_dir(scene.path("libtorch")).unwrap();
    let link = scene.path("libtorch/torch");
    std::os::unix::fs::symlink(scene.path("site-packages/torch"), &link).unwrap();
    assert_eq!(scene.setup("working", &[]).code, Some(0));
    assert!(!link.is_symlink() && scene.is_complete());
    assert_eq!(fs::read_dir(&foreign).unwrap().count(), 0);

    let dir = scene.path("site-packages");
    let ended = run_to_end(scene.command("working", &["--dir"]).arg(&dir));
    assert_fails(&ended, 65, "holds a PyTorch that `cargo xtask setup` did not install");
    assert_eq!(fs::read_dir(&foreign).unwrap().count(), 0);
}

#[test]
fn a_missing_tool_is_named() {
    let scene = Scene::new();
    let without = |name: &str, value: &str| run_to_end(scene.command("working", &[]).env(name, value));
    assert_fails(&without("CXX", "/nowhere/c++"), 69, "no C++ compiler found (/nowhere/c++)");
    let dir = scene.path("libtorch");
    let python = run_to_end(scene.command("working", &["--dir"]).arg(&dir).env("PATH", "/nowhere"));
    assert_fails(&python, 69, "`python3` is not on the PATH");
}

#[test]
fn the_libtorch_of_the_environment_is_used_or_rejected() {
    let scene = Scene::new();
    let torch = |name: &str, version: &str| {
        let folder = scene.path(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("version.py"), format!("__version__ = '{version}'\n")).unwrap();
        folder
    };
    let (own, old) = (torch("own", "2.11.0+cu130"), torch("old", "2.10.0"));
    let run = |variables: &[(&str, &Path)]| {
        run_to_end(scene.command("missing", &[]).envs(variables.iter().copied()))
    };
    assert_eq!(run(&[("LIBTORCH", &own)]).code, Some(0));
    assert_fails(&run(&[("LIBTORCH", &old)]), 65, "holds libtorch 2.10.0 instead of 2.11.0");
    assert_fails(&run(&[("LIBTORCH", Path::new("/nowhere"))]), 65, "of an unknown version");
    // LIBTORCH_USE_PYTORCH comes first, as in `torch-sys`.
    let pytorch = ("LIBTORCH_USE_PYTORCH", Path::new("1"));
    assert_fails(&run(&[("LIBTORCH", &own), pytorch, ("PYTHON_TORCH", &old)]), 65, "2.10.0");
    assert_eq!(run(&[("LIBTORCH", &old), pytorch, ("PYTHON_TORCH", &own)]).code, Some(0));
    assert_fails(&run(&[("LIBTORCH", &own), pytorch]), 69, "finds no PyTorch");
    let cuda = run_to_end(scene.command("missing", &["--cuda"]).env("LIBTORCH", &own));
    assert_fails(&cuda, 65, "lacks libtorch_cuda.so");
}
