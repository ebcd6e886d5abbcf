//! Where the dynamic loader will find a program's libraries, asked without loading them.
//!
//! Reads the dynamic section of ELF files and searches as the loader does: the file's own path, then
//! `LD_LIBRARY_PATH`, then the system's folders. So `ssn` can say in a sentence what `ssn-engine` lacks.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::path::{Path, PathBuf};

use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, FileHeader64};
use object::read::elf::{Dyn, FileHeader};
use object::{Endianness, ReadCache};

/// What an ELF file says about the libraries it needs.
#[derive(Debug, Default)]
struct Dynamic {
    needed: Vec<String>,
    /// Folders, with `$ORIGIN` replaced.
    search: Vec<PathBuf>,
}

/// The libraries of a program: the file for each name, or nothing where it is missing.
pub type Libraries = BTreeMap<String, Option<PathBuf>>;

/// All libraries that `program` needs, directly or through others.
pub fn libraries_of(program: &Path) -> Libraries {
    let system = system_folders();
    let mut found = Libraries::new();
    let mut queue = VecDeque::from([program.to_owned()]);
    // A library is also searched in the folders of those that led to it, as the loader does for RPATH.
    let mut inherited: Vec<PathBuf> = vec![];
    while let Some(file) = queue.pop_front() {
        let Some(dynamic) = read_dynamic(&file) else { continue };
        inherited.extend(dynamic.search);
        for name in dynamic.needed {
            if found.contains_key(&name) {
                continue;
            }
            let path = inherited.iter().chain(&system).map(|folder| folder.join(&name)).find(|p| p.is_file());
            if let Some(path) = &path {
                queue.push_back(path.clone());
            }
            found.insert(name, path);
        }
    }
    found
}

/// Names of the libraries that are missing.
pub fn missing(libraries: &Libraries) -> Vec<&str> {
    libraries.iter().filter(|(_, path)| path.is_none()).map(|(name, _)| name.as_str()).collect()
}

/// The dynamic section; nothing for a file that is not a 64-bit ELF file.
fn read_dynamic(path: &Path) -> Option<Dynamic> {
    let data = ReadCache::new(File::open(path).ok()?);
    let header = FileHeader64::<Endianness>::parse(&data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, &data).ok()?;
    let (entries, strings) = sections.dynamic(endian, &data).ok()??;
    let strings = sections.strings(endian, &data, strings).ok()?;
    let origin = path.canonicalize().ok()?.parent()?.to_owned();
    let mut dynamic = Dynamic::default();
    for entry in entries {
        let tag = entry.d_tag(endian);
        if ![DT_NEEDED, DT_RPATH, DT_RUNPATH].contains(&tag) {
            continue;
        }
        let text = String::from_utf8_lossy(entry.string(endian, strings).ok()?).into_owned();
        if tag == DT_NEEDED {
            dynamic.needed.push(text);
        } else {
            let origin = origin.to_string_lossy();
            dynamic.search.extend(text.split(':').map(|folder| folder.replace("$ORIGIN", &origin).into()));
        }
    }
    Some(dynamic)
}

/// `LD_LIBRARY_PATH`, the folders of `/etc/ld.so.conf.d`, and the built-in ones.
fn system_folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = std::env::var_os("LD_LIBRARY_PATH")
        .map(|value| std::env::split_paths(&value).collect())
        .unwrap_or_default();
    if let Ok(files) = std::fs::read_dir("/etc/ld.so.conf.d") {
        for file in files.flatten() {
            let text = std::fs::read_to_string(file.path()).unwrap_or_default();
            folders
                .extend(text.lines().map(str::trim).filter(|line| line.starts_with('/')).map(PathBuf::from));
        }
    }
    folders.extend(
        ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"]
            .map(PathBuf::from),
    );
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_finds_its_own_libraries() {
        let libraries = libraries_of(&std::env::current_exe().unwrap());
        assert!(libraries.keys().any(|name| name.starts_with("libc.so")), "{libraries:?}");
        assert!(missing(&libraries).is_empty(), "{libraries:?}");
    }

    #[test]
    fn a_file_that_is_no_program_needs_nothing() {
        assert!(libraries_of(Path::new("Cargo.toml")).is_empty());
        assert!(libraries_of(Path::new("no/such/file")).is_empty());
    }
}
