//! The layers of the workspace: data flows one way, and torch stays where it belongs.
//!
//! Crates may depend only on the crates that the table allows them; inside a crate, a module may import only
//! modules that stand before it in the crate's list. A new crate or module takes its place in these lists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Each crate of the workspace with the others that it may depend on; the tests of each may use `ssn-testing` as well.
pub(crate) const CRATES: &[(&str, &[&str])] = &[
    ("ssn-core", &[]),
    ("ssn-testing", &["ssn-core"]),
    ("ssn-io", &["ssn-core"]),
    ("ssn-data", &["ssn-io", "ssn-core"]),
    ("ssn-args", &["ssn-core", "ssn-data"]),
    ("ssn-eval", &["ssn-io", "ssn-core", "ssn-data", "ssn-args"]),
    ("ssn-report", &["ssn-io", "ssn-core", "ssn-data", "ssn-args", "ssn-eval"]),
    ("ssn-view", &["ssn-io", "ssn-core", "ssn-eval"]),
    ("ssn-cuda", &[]),
    ("ssn-nn", &["ssn-io", "ssn-core", "ssn-cuda"]),
    ("ssn-train", &["ssn-io", "ssn-core", "ssn-data", "ssn-args", "ssn-eval", "ssn-cuda", "ssn-nn"]),
    ("ssn-cli", &["ssn-io", "ssn-core", "ssn-data", "ssn-args", "ssn-eval", "ssn-report", "ssn-view"]),
    (
        "ssn",
        &[
            "ssn-io",
            "ssn-core",
            "ssn-data",
            "ssn-args",
            "ssn-eval",
            "ssn-report",
            "ssn-cuda",
            "ssn-nn",
            "ssn-train",
        ],
    ),
    (
        "ssn-engine",
        &["ssn", "ssn-io", "ssn-core", "ssn-data", "ssn-eval", "ssn-cuda", "ssn-nn", "ssn-train", "ssn-cli"],
    ),
    ("ssn-py", &["ssn-io", "ssn-core", "ssn-eval", "ssn-cli"]),
    ("xtask", &["ssn-testing"]),
];

/// The crates that may know torch.
const TORCH_CRATES: &[&str] = &["ssn-cuda", "ssn-nn", "ssn-train", "ssn", "ssn-engine"];

/// The names under which torch is imported.
const TORCH: &[&str] = &["tch", "torch_sys"];

/// The modules of each crate with more than one layer, lowest first.
const MODULES: &[(&str, &[&str])] = &[
    (
        "ssn-io",
        &[
            "hex",
            "atomic",
            "problem",
            "error",
            "memory",
            "limits",
            "open",
            "own_files",
            "geometry",
            "volume",
            "array",
            "formats",
        ],
    ),
    (
        "ssn-core",
        &[
            "error",
            "space",
            "simd",
            "popcount",
            "progress",
            "labels",
            "lattice",
            "random",
            "distribution",
            "modes",
            "sampling",
            "summary",
            "metrics",
        ],
    ),
    (
        "ssn-data",
        &[
            "text",
            "seed",
            "random",
            "parallel",
            "augment",
            "dataset",
            "resolve",
            "layouts",
            "loader",
            "synthetic",
            "config",
            "check",
            "prepare",
        ],
    ),
    (
        "ssn-nn",
        &[
            "error",
            "communicator",
            "random",
            "distribution",
            "space",
            "parameters",
            "layers",
            "loss",
            "backbones",
            "heads",
            "model",
            "optim",
        ],
    ),
    ("ssn-train", &["vector_math", "inference", "parallel", "trainer", "toy", "checkpoint", "run"]),
    (
        "ssn-args",
        &[
            "checkpoint",
            "loss",
            "part",
            "precision",
            "rule",
            "scores",
            "parsers",
            "train",
            "predict",
            "sample",
            "evaluate",
            "report",
            "export",
            "import",
            "toy",
            "demo",
            "experiment",
        ],
    ),
    (
        "ssn-eval",
        &[
            "memory",
            "metrics_file",
            "means",
            "predictions",
            "score_config",
            "reliability",
            "inputs",
            "challenges",
            "registry",
            "case_scores",
            "scores",
            "evaluation",
            "sampling",
        ],
    ),
    (
        "ssn-report",
        &[
            "figures",
            "table",
            "page",
            "curves",
            "material",
            "output",
            "view",
            "gallery",
            "pictures",
            "distances",
            "ged_samples",
            "reliability",
            "sample_dice",
            "training",
            "volumes",
            "scores",
            "headline",
            "steering",
            "cases",
            "compare",
        ],
    ),
    ("ssn-py", &["convert", "work", "image", "distribution", "score", "verb"]),
    ("ssn-view", &["keep", "image", "scores", "package", "page", "export", "server"]),
    ("ssn-cli", &["exit", "answer", "threads", "shard", "args", "progress", "signals", "engine", "verbs"]),
    (
        "ssn",
        &[
            "error",
            "text",
            "device",
            "work_folder",
            "toy",
            "train",
            "pipeline",
            "predictor",
            "predict",
            "export",
            "demo",
            "experiment",
        ],
    ),
    ("ssn-engine", &["ranks", "toy", "train", "predict", "export", "demo", "experiment", "worker"]),
];

#[test]
fn crates_depend_only_downwards() {
    let allowed: BTreeMap<_, _> = CRATES.iter().copied().collect();
    let mut wrong = vec![];
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        let Some(allowed) = allowed.get(name) else {
            wrong.push(format!("{name} has no place in the table of crates"));
            continue;
        };
        for entry in package["dependencies"].as_array().unwrap() {
            let dependency = entry["name"].as_str().unwrap();
            let inside = CRATES.iter().any(|(name, _)| *name == dependency);
            let is_for_tests = dependency == "ssn-testing" && entry["kind"] == "dev";
            if inside && !is_for_tests && !allowed.contains(&dependency) {
                wrong.push(format!("{name} must not depend on {dependency}"));
            }
            if ["tch", "torch-sys"].contains(&dependency) && !TORCH_CRATES.contains(&name) {
                wrong.push(format!("{name} must not know torch, but depends on {dependency}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Torch comes along with what a crate depends on, and with what that depends on.
#[test]
fn torch_is_linked_only_where_it_may_be() {
    let packages = packages();
    let dependencies = |name: &str| -> Vec<&str> {
        let package = packages.iter().find(|package| package["name"] == name);
        let entries = package.into_iter().flat_map(|package| package["dependencies"].as_array().unwrap());
        entries.map(|entry| entry["name"].as_str().unwrap()).collect()
    };
    for (name, _) in CRATES {
        let mut linked = BTreeSet::new();
        let mut open = vec![*name];
        while let Some(next) = open.pop() {
            if linked.insert(next) {
                open.extend(dependencies(next));
            }
        }
        let has_torch = ["tch", "torch-sys"].iter().any(|torch| linked.contains(torch));
        assert_eq!(has_torch, TORCH_CRATES.contains(name), "{name} links torch, or not: {linked:?}");
    }
}

/// Each crate that may know torch names it, which shows that names are found.
#[test]
fn torch_is_named_only_where_it_may_be() {
    for (name, _) in CRATES {
        let mut found = vec![];
        for file in sources(&folder_of(name)) {
            // This file names torch to look for it.
            if file == folder_of("xtask").join("tests/it/layers.rs") {
                continue;
            }
            let text = fs::read_to_string(&file).unwrap();
            for (number, line) in code_lines(&text) {
                if TORCH.iter().any(|torch| names_path(line, torch)) {
                    found.push(format!("{}:{number} names torch: {}", file.display(), line.trim()));
                }
            }
        }
        assert_eq!(!found.is_empty(), TORCH_CRATES.contains(name), "{name}\n{}", found.join("\n"));
    }
}

#[test]
fn modules_import_only_downwards() {
    let mut wrong = vec![];
    for (name, order) in MODULES {
        let source = folder_of(name).join("src");
        for file in sources(&source) {
            let Some(module) = top_module(&source, &file) else { continue };
            let Some(own) = order.iter().position(|layer| *layer == module) else {
                wrong.push(format!("{name}: the module {module} has no place in the list of layers"));
                continue;
            };
            let text = fs::read_to_string(&file).unwrap();
            let code: Vec<&str> = code_lines(&text).map(|(_, line)| line.trim()).collect();
            for imported in imports(&code.join(" ")) {
                let place = order.iter().position(|layer| *layer == imported);
                if place.is_some_and(|place| place > own) {
                    wrong.push(format!("{} imports {imported}, a higher layer", file.display()));
                }
                // What the root re-exports hides the layer it comes from: only error types are common to all.
                if imported.starts_with(char::is_uppercase) && !COMMON.contains(&imported.as_str()) {
                    wrong.push(format!("{}: import {imported} from its module", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The crates that read the files of users.
const READERS: &[&str] = &[
    "ssn-io",
    "ssn-data",
    "ssn-eval",
    "ssn-report",
    "ssn-view",
    "ssn-cli",
    "ssn-nn",
    "ssn-train",
    "ssn",
    "ssn-engine",
];
/// Their files that open what is the system's or their own.
const OPENERS: &[&str] =
    &["atomic.rs", "open.rs", "memory.rs", "hdf5.rs", "engine.rs", "info.rs", "device.rs", "signals.rs"];

/// A pipe would wait for ever where a file is opened in another way.
#[test]
fn files_of_users_are_opened_by_ssn_io() {
    let mut wrong = vec![];
    for file in READERS.iter().flat_map(|name| sources(&folder_of(name).join("src"))) {
        if OPENERS.iter().any(|name| file.ends_with(name)) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in code_lines(code) {
            if ["File::open(", "fs::read(", "fs::read_to_string("].iter().any(|open| line.contains(open)) {
                wrong.push(format!(
                    "{}:{number}: open it with `ssn_io::open_file` or `read_bytes`",
                    file.display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What modules may import from the root of their crate.
const COMMON: &[&str] = &["CoreError", "Result", "Problem", "Limits"];

#[test]
fn imports_are_seen_in_every_form() {
    assert!(names_path("use tch::Tensor;", "tch") && !names_path("crate::batch::next()", "tch"));
    assert_eq!(imports("use crate::{ error::{Result, NetError}, toy, };"), ["error", "toy"]);
    assert_eq!(imports("use crate::loss::monte_carlo_loss;"), ["loss"]);
    assert_eq!(imports("use crate::{error::Result, toy};"), ["error", "toy"]);
    assert_eq!(imports("    crate::noise::Noise::new() + crate::toy::train()"), ["noise", "toy"]);
    assert!(imports("use std::fs;").is_empty());
}

/// Whether code names a path that starts with a crate, as a whole word.
fn names_path(line: &str, name: &str) -> bool {
    line.match_indices(&format!("{name}::")).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
    })
}

/// The names right below the root of its own crate that some code imports.
fn imports(code: &str) -> Vec<String> {
    let word =
        |text: &str| text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    code.split("crate::")
        .skip(1)
        .flat_map(|rest| match rest.strip_prefix('{') {
            Some(list) => top_level_items(list).iter().map(|item| word(item)).collect(),
            None => vec![word(rest)],
        })
        .filter(|name| !name.is_empty())
        .collect()
}

/// The items of a list up to its closing brace, split at the commas that are not inside inner braces.
pub(crate) fn top_level_items(list: &str) -> Vec<String> {
    let (mut depth, mut items) = (0, vec![String::new()]);
    for c in list.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => items.push(String::new()),
            _ => {}
        }
        if let Some(item) = items.last_mut() {
            item.push(c);
        }
    }
    items.iter().map(|item| item.trim_start_matches(',').to_owned()).collect()
}

/// The module right below the crate's root that a file belongs to; nothing for the root itself.
fn top_module(source: &Path, file: &Path) -> Option<String> {
    let first = file.strip_prefix(source).ok()?.iter().next()?.to_string_lossy().into_owned();
    let module = first.strip_suffix(".rs").unwrap_or(&first).to_owned();
    (!["lib", "main", "bin"].contains(&module.as_str())).then_some(module)
}

/// Lines of code with their numbers, without comments.
pub(crate) fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(i, line)| (i + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// All Rust files below a folder.
pub(crate) fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = vec![];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

pub(crate) fn folder_of(name: &str) -> PathBuf {
    if name == "xtask" { root().join(name) } else { root().join("crates").join(name) }
}

fn packages() -> Vec<serde_json::Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}
