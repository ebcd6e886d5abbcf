//! Files import each other in one direction: following imports never leads back to a file.
//!
//! A module and the modules below it may import each other, as a module is made of these.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::layers::{CRATES, code_lines, folder_of, sources, top_level_items};

/// The path of a module below the root of its crate.
type Module = Vec<String>;
/// The modules that each module imports.
type Imports = BTreeMap<Module, BTreeSet<Module>>;

#[test]
fn no_file_leads_back_to_itself() {
    let mut wrong = vec![];
    for (name, _) in CRATES {
        let circles = circles(&rust_imports(&rust_modules(&folder_of(name).join("src"))));
        wrong.extend(circles.into_iter().map(|circle| format!("{name}: {circle}")));
    }
    let package = folder_of("ssn-py").join("python/ssn");
    wrong.extend(circles(&python_imports(&package)).into_iter().map(|circle| format!("python: {circle}")));
    assert!(wrong.is_empty(), "files import each other:\n{}", wrong.join("\n"));
}

#[test]
fn circles_are_found() {
    let of = |files: &[(&str, &str)]| {
        let split = |path: &str| path.split("::").map(str::to_owned).collect::<Module>();
        circles(&rust_imports(&files.iter().map(|(path, text)| (split(path), (*text).to_owned())).collect()))
    };
    let c = ("c", "fn f() { super::a::g() }");
    assert_eq!(of(&[("a", "use crate::b::{B, D};"), ("b", "use crate::{c::C, d};"), c]), ["a → b → c → a"]);
    assert_eq!(of(&[("a", "use crate::b::B;"), ("b", "use crate::c::C;"), ("c", "")]), Vec::<String>::new());
    // A module is made of those below it.
    assert!(of(&[("a", "use b::B;"), ("a::b", "use crate::a::A;")]).is_empty());
    assert_eq!(of(&[("a", "use b::B;"), ("a::b", "use crate::c::C;"), ("c", "use crate::a::A;")]).len(), 1);
}

/// Reads the code of each module, without its unit tests.
fn rust_modules(source: &Path) -> BTreeMap<Module, String> {
    let mut modules = BTreeMap::new();
    for file in sources(source) {
        let path = file.strip_prefix(source).unwrap().with_extension("");
        let mut module: Module = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        match module.last().map(String::as_str) {
            Some("mod") => drop(module.pop()),
            Some("lib" | "main") if module.len() == 1 => module.clear(),
            Some("tests") => continue,
            _ => {}
        }
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let code: Vec<&str> = code_lines(code).map(|(_, line)| line.trim()).collect();
        modules.insert(module, code.join(" "));
    }
    modules
}

fn rust_imports(modules: &BTreeMap<Module, String>) -> Imports {
    let mut imports = Imports::new();
    for (module, code) in modules {
        let named = paths(code, "crate::").into_iter();
        let above = module.split_last().map_or(&[][..], |(_, above)| above);
        let near = paths(code, "super::").into_iter().map(|path| [above, &path].concat());
        let below = paths(code, "use ").into_iter().map(|path| [&module[..], &path].concat());
        // The longest start of a path that is a module.
        let imported = |path: Module| {
            (0..=path.len()).rev().map(|n| path[..n].to_vec()).find(|start| modules.contains_key(start))
        };
        let found = named.chain(near).chain(below).filter_map(imported);
        let own = imports.entry(module.clone()).or_default();
        own.extend(found.filter(|other| !module.starts_with(other)));
    }
    imports
}

/// Returns the paths behind a word in some code, those in braces one by one.
fn paths(code: &str, word: &str) -> Vec<Module> {
    let starts = code.match_indices(word).filter(|(at, _)| {
        let before = code[..*at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':')
    });
    starts.flat_map(|(at, _)| expanded(&code[at + word.len()..])).collect()
}

fn expanded(text: &str) -> Vec<Module> {
    let text = text.trim_start();
    if let Some(list) = text.strip_prefix('{') {
        return top_level_items(list).iter().flat_map(|item| expanded(item)).collect();
    }
    let name: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    if name.is_empty() {
        return vec![];
    }
    match text[name.len()..].strip_prefix("::") {
        Some(rest) => {
            let inner = expanded(rest).into_iter().map(|path| [vec![name.clone()], path].concat());
            inner.collect()
        }
        None => vec![vec![name]],
    }
}

/// Reads what the modules of a Python package import from each other.
fn python_imports(package: &Path) -> Imports {
    let mut imports = Imports::new();
    for entry in fs::read_dir(package).unwrap() {
        let file = entry.unwrap().path();
        let Some(name) = file.file_name().and_then(|name| name.to_str()?.strip_suffix(".py")) else {
            continue;
        };
        // The package's own file only re-exports.
        if name == "__init__" {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let imported = text.lines().flat_map(|line| {
            let line = line.trim();
            let module = line.strip_prefix("from ssn.").and_then(|rest| rest.split(' ').next());
            let modules = line.strip_prefix("from ssn import ").unwrap_or_default().split(", ");
            module.into_iter().chain(modules).map(|module| vec![module.to_owned()]).collect::<Vec<_>>()
        });
        imports.insert(vec![name.to_owned()], imported.collect());
    }
    imports
}

/// Returns the shortest circle through each module that has one, each once.
fn circles(imports: &Imports) -> Vec<String> {
    let mut found = BTreeMap::new();
    for start in imports.keys() {
        if let Some(circle) = shortest(imports, start) {
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            let members: BTreeSet<&Module> = circle.into_iter().collect();
            found.entry(members).or_insert_with(|| names.join(" → "));
        }
    }
    found.into_values().collect()
}

fn shortest<'a>(imports: &'a Imports, start: &'a Module) -> Option<Vec<&'a Module>> {
    let mut open = vec![vec![start]];
    let mut seen = BTreeSet::new();
    while !open.is_empty() {
        let mut next = vec![];
        for path in open {
            for module in path.last().and_then(|last| imports.get(*last)).into_iter().flatten() {
                if module == start {
                    return Some([path, vec![start]].concat());
                }
                if seen.insert(module) {
                    next.push([path.clone(), vec![module]].concat());
                }
            }
        }
        open = next;
    }
    None
}
