//! Where the dynamic loader will find a program's libraries, asked without loading them.
//!
//! Reads the dynamic section of ELF files and searches as the loader does: RPATH of the file and of those that led to it
//! (unless the file has a RUNPATH), `LD_LIBRARY_PATH`, RUNPATH of the file, the system's folders. So `ssn` can say in a
//! sentence what `ssn-engine` lacks.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::path::{Path, PathBuf};

use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, FileHeader64};
use object::read::elf::{Dyn, FileHeader, SectionHeader};
use object::{Endianness, ReadCache};

/// What an ELF file says about the libraries it needs; `$ORIGIN` is replaced in folders.
#[derive(Debug, Default)]
struct Dynamic {
    needed: Vec<String>,
    rpath: Vec<PathBuf>,
    runpath: Vec<PathBuf>,
}

/// The libraries of a program: the file for each name, or nothing where it is missing.
pub type Libraries = BTreeMap<String, Option<PathBuf>>;

/// All libraries that `program` needs, directly or through others.
pub fn libraries_of(program: &Path) -> Libraries {
    let environment: Vec<PathBuf> = std::env::var_os("LD_LIBRARY_PATH")
        .map(|value| std::env::split_paths(&value).collect())
        .unwrap_or_default();
    let system = system_folders();
    let mut found = Libraries::new();
    // Each file with the RPATH folders of the chain that led to it.
    let mut queue = VecDeque::from([(program.to_owned(), Vec::<PathBuf>::new())]);
    while let Some((file, mut inherited)) = queue.pop_front() {
        let Some(dynamic) = read_dynamic(&file) else { continue };
        let has_runpath = !dynamic.runpath.is_empty();
        inherited.extend(dynamic.rpath);
        let rpath: &[PathBuf] = if has_runpath { &[] } else { &inherited };
        let folders: Vec<&PathBuf> =
            rpath.iter().chain(&environment).chain(&dynamic.runpath).chain(&system).collect();
        for name in dynamic.needed {
            if found.contains_key(&name) {
                continue;
            }
            let path = folders.iter().map(|folder| folder.join(&name)).find(|path| path.is_file());
            if let Some(path) = &path {
                queue.push_back((path.clone(), inherited.clone()));
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

/// The bytes of a section of an ELF file; 0 if there is no such section, or no such file.
pub fn section_size(path: &Path, name: &str) -> u64 {
    let read = || {
        let data = ReadCache::new(File::open(path).ok()?);
        let header = FileHeader64::<Endianness>::parse(&data).ok()?;
        let endian = header.endian().ok()?;
        let (_, section) = header.sections(endian, &data).ok()?.section_by_name(endian, name.as_bytes())?;
        Some(section.sh_size(endian))
    };
    read().unwrap_or(0)
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
        let folders = |text: &str| -> Vec<PathBuf> {
            let origin = origin.to_string_lossy();
            text.split(':').map(|folder| folder.replace("$ORIGIN", &origin).into()).collect()
        };
        match tag {
            DT_NEEDED => dynamic.needed.push(text),
            DT_RPATH => dynamic.rpath = folders(&text),
            _ => dynamic.runpath = folders(&text),
        }
    }
    Some(dynamic)
}

/// The folders of `/etc/ld.so.conf` and `/etc/ld.so.conf.d`, and the built-in ones.
fn system_folders() -> Vec<PathBuf> {
    let mut files = vec![PathBuf::from("/etc/ld.so.conf")];
    files.extend(
        std::fs::read_dir("/etc/ld.so.conf.d").into_iter().flatten().flatten().map(|file| file.path()),
    );
    let mut folders: Vec<PathBuf> = files
        .iter()
        .flat_map(|file| {
            std::fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .filter(|line| line.starts_with('/'))
        .map(|line| PathBuf::from(line.trim()))
        .collect();
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
    fn sections_are_measured_where_they_are() {
        let program = std::env::current_exe().unwrap();
        assert!(section_size(&program, ".text") > 0);
        assert_eq!(section_size(&program, ".no_such"), 0);
        assert_eq!(section_size(Path::new("Cargo.toml"), ".text"), 0);
    }

    #[test]
    fn a_file_that_is_no_program_needs_nothing() {
        assert!(libraries_of(Path::new("Cargo.toml")).is_empty());
        assert!(libraries_of(Path::new("no/such/file")).is_empty());
    }
}
