//! `cargo xtask setup`: which libtorch is chosen, what each refusal is, and that an interruption leaves nothing half done.
//! The interpreter is a shell script, and there is no network.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use ssn_testing::process::{Ended, run_to_end, send, wait_for_end};
use tempfile::TempDir;

/// A folder to install into, and what else a test puts beside it.
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

    /// The program with a pip of this kind, in an environment that names no libtorch.
    fn xtask(&self, pip: &str, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        let python = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python");
        command.arg("setup").args(args).env("PIP", pip).env("PATH", format!("{python}:/usr/bin:/bin"));
        command.env("CXX", "/bin/sh").env("PIP_CALLS", self.path("calls"));
        for name in
            ["LIBTORCH", "LIBTORCH_USE_PYTORCH", "VIRTUAL_ENV", "CUDA_HOME", "PYTHON_TORCH", "PIP_PAUSE"]
        {
            command.env_remove(name);
        }
        command
    }

    /// Installs into the folder.
    fn setup(&self, pip: &str, args: &[&str]) -> Ended {
        run_to_end(&mut self.command(pip, args))
    }

    fn command(&self, pip: &str, args: &[&str]) -> Command {
        let mut command = self.xtask(pip, args);
        command.arg("--dir").arg(self.path("libtorch"));
        command
    }

    /// Starts an installation whose pip waits in the middle of unpacking, and waits until it does.
    fn start(&self, seconds: &str, args: &[&str]) -> Child {
        let mut command = self.command("working", args);
        command.env("PIP_PAUSE", seconds).process_group(0).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let limit = Instant::now() + Duration::from_secs(60);
        while !self.partials().iter().any(|folder| folder.join("unpacked/torch/lib/libtorch_cpu.so").exists())
        {
            assert!(Instant::now() < limit, "pip does not begin");
            sleep(Duration::from_millis(20));
        }
        child
    }

    fn partials(&self) -> Vec<PathBuf> {
        let names = self.names().into_iter().filter(|name| name.starts_with(".partial-"));
        names.map(|name| self.path("libtorch").join(name)).collect()
    }

    /// The names in the folder, in order.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("libtorch")).into_iter().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// How often pip was asked to install.
    fn calls(&self) -> usize {
        fs::read_to_string(self.path("calls")).unwrap_or_default().lines().count()
    }

    /// Whether the installation is complete: a run that cannot fetch anything is content with it.
    fn is_complete(&self) -> bool {
        let ended = self.setup("offline", &[]);
        ended.code == Some(0) && ended.stderr.ends_with("Nothing to install.\n")
    }

    /// A folder that looks like a libtorch of this version, with CUDA.
    fn libtorch(&self, name: &str, version: &str) -> PathBuf {
        let folder = self.path(name);
        write(&folder.join("lib/libtorch_cpu.so"), "theirs");
        write(&folder.join("lib/libtorch_cuda.so"), "theirs");
        write(&folder.join("include/torch/torch.h"), "");
        write(&folder.join("version.py"), &format!("__version__ = '{version}'\ncuda = '13.0'\n"));
        folder
    }
}

const COMPLETE: [&str; 5] = [".lock", "manifest.json", "nvidia", "torch", "torch-2.11.0.dist-info"];

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[track_caller]
fn assert_refused(ended: &Ended, code: i32, part: &str) {
    assert!(ended.code == Some(code) && ended.stderr.contains(part), "{ended:?}");
}

#[test]
fn a_fresh_folder_gets_what_builds_need_and_nothing_else() {
    let scene = Scene::new();
    let first = scene.setup("working", &[]);
    assert!(
        first.code == Some(0) && first.stderr.contains("libtorch 2.11.0 (CPU) is complete in"),
        "{first:?}"
    );
    assert_eq!(scene.names(), COMPLETE);
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
    assert!(scene.is_complete());
    // The CPU alone does not serve a GPU; what serves a GPU serves the CPU.
    let cuda = scene.setup("working", &["--cuda"]);
    assert!(cuda.code == Some(0) && cuda.stderr.contains("(it is made for the CPU alone)"), "{cuda:?}");
    assert!(root.join("torch/lib/libtorch_cuda.so").exists() && scene.is_complete());
    assert_eq!(scene.calls(), 2);
    scene.setup("working", &["--force"]);
    assert_eq!(scene.calls(), 3);
}

#[test]
fn each_missing_tool_has_its_own_refusal() {
    let scene = Scene::new();
    let without = |name: &str, value: &str| {
        let mut command = scene.command("working", &[]);
        command.env(name, value);
        run_to_end(&mut command)
    };
    assert_refused(&without("CXX", "/nowhere/c++"), 69, "no C++ compiler found (/nowhere/c++)");
    assert_refused(&without("PATH", "/nowhere"), 69, "`python3` is not on the PATH");
    assert_refused(&scene.setup("missing", &[]), 69, "has no pip, which fetches libtorch");
    assert!(!scene.path("libtorch").exists(), "nothing is begun before a refusal");
}

#[test]
fn a_pip_that_fails_is_shown_and_changes_nothing() {
    let scene = Scene::new();
    let offline = scene.setup("offline", &[]);
    assert_refused(&offline, 74, "pip could not fetch and unpack the wheels");
    assert_eq!(offline.stderr.matches("WARNING").count(), 4, "the last six lines are shown: {offline:?}");
    assert!(offline.stderr.contains("ERROR: No matching distribution found for torch==2.11.0\nerror: pip"));
    assert_refused(&scene.setup("wrong-hash", &[]), 65, "whose hash is not the pinned one");
    assert_refused(&scene.setup("idle", &[]), 65, "left no torch/include");
    assert_eq!(scene.names(), [".lock"]);
    scene.setup("working", &[]);
    for pip in ["offline", "wrong-hash", "idle"] {
        assert_ne!(scene.setup(pip, &["--force"]).code, Some(0));
        assert!(scene.names() == COMPLETE && scene.is_complete(), "{pip}");
    }
}

#[test]
fn an_interrupted_installation_ends_with_a_sentence_and_leaves_nothing() {
    let scene = Scene::new();
    let child = scene.start("60", &[]);
    // As a terminal does it: to all processes of the group.
    assert!(send("INT", -i64::from(child.id())));
    let interrupted = wait_for_end(child);
    assert_refused(&interrupted, 130, "error: interrupted, and what was there before is unchanged");
    assert_eq!(scene.names(), [".lock"]);
    scene.setup("working", &[]);
    let child = scene.start("60", &["--force"]);
    assert!(send("INT", -i64::from(child.id())));
    assert_eq!(wait_for_end(child).code, Some(130));
    assert!(scene.names() == COMPLETE && scene.is_complete());
}

#[test]
fn what_a_killed_run_leaves_is_not_trusted_and_is_cleared() {
    let scene = Scene::new();
    let mut child = scene.start("60", &[]);
    let group = -i64::from(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(scene.partials().len(), 1);
    // Its pip is still there.
    assert_eq!(scene.setup("working", &[]).code, Some(0));
    assert!(send("KILL", group));
    assert!(scene.names() == COMPLETE && scene.is_complete());
    // A file that is removed is noticed as well.
    fs::remove_file(scene.path("libtorch/torch/lib/libgomp.so.1")).unwrap();
    assert_refused(&scene.setup("offline", &[]), 74, "(torch/lib/libgomp.so.1 is missing)");
    // Killed while it put files in place.
    fs::remove_file(scene.path("libtorch/manifest.json")).unwrap();
    fs::remove_file(scene.path("libtorch/torch/lib/libc10.so")).unwrap();
    let again = scene.setup("working", &[]);
    assert!(
        again.code == Some(0) && again.stderr.contains("(it has no manifest: it was interrupted"),
        "{again:?}"
    );
    assert!(scene.path("libtorch/torch/lib/libc10.so").exists() && scene.is_complete());
}

#[test]
fn of_two_at_once_one_installs_and_the_other_waits() {
    let scene = Scene::new();
    let first = scene.start("1", &[]);
    let second = scene.setup("working", &[]);
    assert!(second.code == Some(0) && second.stderr.contains("waiting for it"), "{second:?}");
    assert!(second.stderr.ends_with("Nothing to install.\n"), "{second:?}");
    assert_eq!(wait_for_end(first).code, Some(0));
    assert!(scene.calls() == 1 && scene.is_complete());
}

#[test]
fn an_installation_from_other_wheels_is_replaced() {
    let scene = Scene::new();
    scene.setup("working", &[]);
    let manifest = scene.path("libtorch/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    write(&manifest, &text.replacen("sha256:7", "sha256:8", 1));
    write(&scene.path("libtorch/torch/lib/libold.so"), "old");
    write(&scene.path("libtorch/notes.txt"), "mine");
    assert_refused(&scene.setup("offline", &[]), 74, "(its wheels are not the pinned ones)");
    assert_eq!(scene.setup("working", &[]).code, Some(0));
    assert_eq!(fs::read_to_string(&manifest).unwrap(), text);
    assert!(!scene.path("libtorch/torch/lib/libold.so").exists());
    assert!(scene.path("libtorch/notes.txt").exists() && scene.is_complete());
}

#[test]
fn a_foreign_folder_is_not_filled() {
    let scene = Scene::new();
    write(&scene.path("libtorch/thesis.tex"), "precious");
    assert_refused(&scene.setup("working", &[]), 2, "was not made by `cargo xtask setup`");
    assert_eq!(scene.names(), ["thesis.tex"]);
}

#[test]
fn the_pytorch_of_the_active_python_is_linked_if_it_fits() {
    let scene = Scene::new();
    let torch = scene.libtorch("site-packages/torch", "2.11.0+cu130");
    let with_torch = |pip: &str, args: &[&str]| {
        let mut command = scene.command(pip, args);
        command.env("PYTHON_TORCH", &torch);
        run_to_end(&mut command)
    };
    let linked = with_torch("missing", &[]);
    assert!(linked.code == Some(0) && linked.stderr.contains("is a link to"), "{linked:?}");
    assert_eq!(scene.names(), [".lock", "manifest.json", "torch"]);
    assert!(scene.is_complete());
    // A GPU needs headers beside the link; without them, the earlier link stays.
    assert_refused(&with_torch("offline", &["--cuda"]), 74, "pip could not fetch");
    assert!(scene.is_complete());
    assert_eq!(with_torch("working", &["--cuda"]).code, Some(0));
    assert!(scene.path("libtorch/nvidia/cu13/include/crt/host_config.h").exists());
    assert!(!scene.path("libtorch/nvidia/cu13/lib").exists() && scene.is_complete());
    // It is checked every time, and replaced without harm to the PyTorch.
    write(&torch.join("version.py"), "__version__ = '2.12.0'");
    let again = with_torch("working", &[]);
    assert!(again.stderr.contains("(torch holds libtorch 2.12.0, and 2.11.0 is needed)"), "{again:?}");
    assert!(scene.path("libtorch/torch/build-version").exists() && scene.is_complete());
    write(&torch.join("version.py"), "__version__ = '2.11.0'\ncuda = '13.0'\n");
    assert_eq!(with_torch("missing", &["--force"]).code, Some(0));
    assert_refused(&with_torch("offline", &["--download"]), 74, "(it is a link, and `--download` asks");
    assert_eq!(fs::read_to_string(torch.join("lib/libtorch_cpu.so")).unwrap(), "theirs");
    assert!(!torch.join("build-version").exists());
}

#[test]
fn what_the_environment_names_is_taken_or_refused_but_never_replaced() {
    let scene = Scene::new();
    let (own, old) = (scene.libtorch("own/torch", "2.11.0+cu130"), scene.libtorch("old/torch", "2.10.0"));
    // Without `--dir`, so that the environment counts; every run ends before the checkout's folder is touched.
    let run = |variables: &[(&str, &Path)], args: &[&str]| {
        let mut command = scene.xtask("missing", args);
        command.envs(variables.iter().copied());
        run_to_end(&mut command)
    };
    let taken = run(&[("LIBTORCH", &own)], &[]);
    assert!(taken.code == Some(0) && taken.stderr.starts_with("LIBTORCH is set, and"), "{taken:?}");
    assert_refused(&run(&[("LIBTORCH", &old)], &[]), 65, "holds libtorch 2.10.0, and 2.11.0 is needed");
    assert_refused(&run(&[("LIBTORCH", Path::new("/nowhere"))], &[]), 65, "has no lib/libtorch_cpu.so");
    // LIBTORCH_USE_PYTORCH comes first, as in `torch-sys`.
    let pytorch = ("LIBTORCH_USE_PYTORCH", Path::new("1"));
    let refused = run(&[("LIBTORCH", &own), pytorch, ("PYTHON_TORCH", &old)], &[]);
    assert_refused(&refused, 65, "install that version there, or unset LIBTORCH_USE_PYTORCH");
    assert_refused(&run(&[("LIBTORCH", &own), pytorch], &[]), 69, "finds no PyTorch");
    assert_eq!(run(&[("LIBTORCH", &old), pytorch, ("PYTHON_TORCH", &own)], &[]).code, Some(0));
    // A GPU needs CUDA's headers, beside it or in CUDA_HOME.
    assert_refused(&run(&[("LIBTORCH", &own)], &["--cuda"]), 65, "own/nvidia/cu13/include");
    let home = scene.path("cuda");
    for folder in [home.join("include"), scene.path("own/nvidia/cu13/include")] {
        write(&folder.join("crt/host_config.h"), "");
        assert_refused(&run(&[("LIBTORCH", &own), ("CUDA_HOME", &home)], &["--cuda"]), 65, "CUDA's headers");
        write(&folder.join("cuda_runtime_api.h"), "");
        assert_eq!(run(&[("LIBTORCH", &own), ("CUDA_HOME", &home)], &["--cuda"]).code, Some(0));
        fs::remove_dir_all(&folder).unwrap();
    }
}
