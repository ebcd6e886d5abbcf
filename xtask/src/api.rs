//! `cargo xtask api`: the public items of the libraries, one per line, so that a change of them is seen in a diff.
//!
//! Rustdoc writes them as JSON, which the stable toolchain allows with `RUSTC_BOOTSTRAP`; the toolchain is pinned, and with it
//! the form of the JSON.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::{Error, Exit};
use crate::{checkout, process};

/// Write the public items of `ssn` and of the crates that it re-exports to docs/reference/api.txt.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Write nothing; fail if the file differs from the code.
    #[arg(long)]
    pub check: bool,
}

const FILE: &str = "docs/reference/api.txt";

/// The first lines of the file.
const HEAD: &str = "The public items of the libraries: path, kind, and the first path of an item that has several.\n\
                    Written by `cargo xtask api`, checked by `.ci/nightly`.\n";

/// The library, and the crates that it re-exports as a whole.
const CRATES: [&str; 8] =
    ["ssn", "ssn-core", "ssn-io", "ssn-data", "ssn-args", "ssn-eval", "ssn-nn", "ssn-train"];

pub fn run(args: &Args) -> Result<Exit, Error> {
    let folder = tempfile::tempdir().map_err(Error::io("make", &std::env::temp_dir()))?;
    let rustdoc = write_rustdoc(folder.path())?;
    let mut text = HEAD.to_owned();
    for name in CRATES {
        let library = document(name, &rustdoc)?;
        text += &format!("\n# {name}\n{}\n", lines(&library, name)?.join("\n"));
    }
    let path = checkout::root().join(FILE);
    if fs::read_to_string(&path).is_ok_and(|found| found == text) {
        println!("{FILE} lists the public items of the code");
        return Ok(Exit::Success);
    }
    if args.check {
        return Err(Error::data(format!(
            "{FILE} differs from the public items of the code; run `cargo xtask api`"
        )));
    }
    fs::write(&path, text).map_err(Error::io("write", &path))?;
    println!("wrote {FILE}");
    Ok(Exit::Success)
}

/// Writes a program `rustdoc` that sets `RUSTC_BOOTSTRAP`: Cargo would build everything again if it were set for Cargo.
fn write_rustdoc(folder: &Path) -> Result<PathBuf, Error> {
    let path = folder.join("rustdoc");
    let script = "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec \"$(rustc --print sysroot)/bin/rustdoc\" \"$@\"\n";
    fs::write(&path, script).map_err(Error::io("write", &path))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(Error::io("write", &path))?;
    Ok(path)
}

/// Returns what rustdoc writes about a crate.
fn document(name: &str, rustdoc: &Path) -> Result<Value, Error> {
    let mut command = process::cargo();
    command.args(["rustdoc", "--quiet", "--package", name, "--lib", "--", "-Z", "unstable-options"]);
    command.args(["--output-format", "json"]).env("RUSTDOC", rustdoc);
    let output = process::capture(&mut command)?;
    if !output.status.success() {
        return Err(Error::tool(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let path = process::target_directory()?.join("doc").join(name.replace('-', "_") + ".json");
    let text = fs::read(&path).map_err(Error::io("read", &path))?;
    serde_json::from_slice(&text).map_err(|error| Error::answer("cargo rustdoc", &error.to_string()))
}

/// Returns the sorted lines of a crate: path and kind of each public item.
///
/// The parts of an item, such as fields and methods, are listed at its first path, the one nearest to the root; further paths name
/// the first. Of an item of another crate, crate and name are listed.
fn lines(library: &Value, name: &str) -> Result<Vec<String>, Error> {
    let mut listing =
        Listing { library, lines: BTreeSet::new(), first_paths: BTreeMap::new(), modules: VecDeque::new() };
    let root = listing.item(&library["root"]);
    let root = root.ok_or_else(|| Error::answer("cargo rustdoc", &format!("{name} has no root")))?;
    listing.modules.push_back((&root["inner"]["module"], name.replace('-', "_")));
    while let Some((module, path)) = listing.modules.pop_front() {
        listing.add_all(module.get("items"), &path);
    }
    Ok(listing.lines.into_iter().collect())
}

struct Listing<'a> {
    library: &'a Value,
    lines: BTreeSet<String>,
    /// The first path of each item, by its id.
    first_paths: BTreeMap<String, String>,
    /// Modules whose items are still to be listed, with their paths.
    modules: VecDeque<(&'a Value, String)>,
}

impl<'a> Listing<'a> {
    fn item(&self, id: &Value) -> Option<&'a Value> {
        self.library["index"].get(id.to_string())
    }

    /// Adds the items of a list of ids below a path.
    fn add_all(&mut self, ids: Option<&'a Value>, path: &str) {
        for id in ids.and_then(Value::as_array).into_iter().flatten() {
            if let Some(item) = self.item(id) {
                self.add(id, item, path);
            }
        }
    }

    /// Adds an item below a path, and its parts.
    fn add(&mut self, id: &Value, item: &'a Value, path: &str) {
        let Some((kind, inner)) = inner(item) else { return };
        match kind {
            "use" => self.add_use(inner, path),
            "impl" if inner["trait"].is_null() => self.add_all(inner.get("items"), path),
            "impl" => {}
            _ => {
                if let Some(name) = item["name"].as_str() {
                    self.add_named(id, kind, inner, format!("{path}::{name}"));
                }
            }
        }
    }

    fn add_named(&mut self, id: &Value, kind: &str, inner: &'a Value, path: String) {
        if let Some(first) = self.first_paths.get(&id.to_string()) {
            self.lines.insert(format!("{path}  {kind} {first}"));
            return;
        }
        self.first_paths.insert(id.to_string(), path.clone());
        self.lines.insert(format!("{path}  {kind}"));
        if kind == "module" {
            self.modules.push_back((inner, path));
            return;
        }
        for part in
            ["/items", "/variants", "/impls", "/kind/plain/fields", "/kind/tuple", "/kind/struct/fields"]
        {
            self.add_all(inner.pointer(part), &path);
        }
    }

    /// Adds a re-exported item: like an item of the module if it is of this crate, otherwise with its crate and name.
    fn add_use(&mut self, used: &'a Value, path: &str) {
        let (id, is_glob, name) =
            (&used["id"], used["is_glob"] == true, used["name"].as_str().unwrap_or_default());
        let Some(item) = self.item(id) else {
            let other = &self.library["paths"][id.to_string()];
            let parts = other["path"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let parts: Vec<&str> = parts.collect();
            let (kind, end) = (other["kind"].as_str().unwrap_or("unknown"), if is_glob { "*" } else { name });
            let source = match parts[..] {
                [library, .., name] => format!("{library}::{name}"),
                _ => parts.concat(),
            };
            self.lines.insert(format!("{path}::{end}  {kind} {source}"));
            return;
        };
        match inner(item) {
            Some((_, inner)) if is_glob => {
                for list in ["items", "variants"] {
                    self.add_all(inner.get(list), path);
                }
            }
            Some(("use", inner)) => self.add_use(inner, path),
            // A private module of the same name as a function, which is imported with it, but is not public.
            Some(("module", _)) if item["visibility"] != "public" => {}
            Some((kind, inner)) => self.add_named(id, kind, inner, format!("{path}::{name}")),
            None => {}
        }
    }
}

/// Returns the kind of an item, and what rustdoc has of that kind.
fn inner(item: &Value) -> Option<(&str, &Value)> {
    item["inner"].as_object()?.iter().next().map(|(kind, inner)| (kind.as_str(), inner))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn items_are_listed_where_users_find_them() {
        let library = json!({
            "root": 0,
            "index": {
                "0": { "name": "a_b", "inner": { "module": { "items": [10, 1, 2, 9, 12] } } },
                "1": { "name": null, "inner": { "use": { "name": "Renamed", "id": 3, "is_glob": false } } },
                "2": { "name": null, "inner": { "use": { "name": "Other", "id": 7, "is_glob": false } } },
                "3": { "name": "Own", "inner": { "struct": { "kind": { "plain": { "fields": [4] } }, "impls": [5, 8] } } },
                "4": { "name": "field", "inner": { "struct_field": {} } },
                "5": { "name": null, "inner": { "impl": { "trait": null, "items": [6] } } },
                "6": { "name": "new", "inner": { "function": {} } },
                "8": { "name": null, "inner": { "impl": { "trait": { "path": "Clone" }, "items": [6] } } },
                "9": { "name": "run", "inner": { "function": {} } },
                "10": { "name": "prelude", "inner": { "module": { "items": [11] } } },
                "11": { "name": null, "inner": { "use": { "name": "Own", "id": 3, "is_glob": false } } },
                "12": { "name": null, "inner": { "use": { "name": "run", "id": 13, "is_glob": false } } },
                "13": { "name": "run", "visibility": "crate", "inner": { "module": { "items": [9] } } },
            },
            "paths": { "7": { "path": ["other", "private", "Other"], "kind": "enum" } },
        });
        let expected = [
            "a_b::Other  enum other::Other",
            "a_b::Renamed  struct",
            "a_b::Renamed::field  struct_field",
            "a_b::Renamed::new  function",
            "a_b::prelude  module",
            "a_b::prelude::Own  struct a_b::Renamed",
            "a_b::run  function",
        ];
        assert_eq!(lines(&library, "a-b").unwrap(), expected);
    }
}
