//! The hostile files of a folder of `attacks`, each with what has to be said about it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Checks every file of a folder: `outcome` is the refusal, or nothing where the file is read, and must contain the fragment
/// that is expected; an empty one means that the file is read.
pub fn all(folder: &str, expected: &[(&str, &str)], outcome: impl Fn(&Path) -> String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks").join(folder);
    let name = |entry: Result<fs::DirEntry, _>| entry.unwrap().file_name().into_string().unwrap();
    let mut there: BTreeSet<String> = fs::read_dir(&folder).unwrap().map(name).collect();
    there.retain(|name| !["README.md", "make.py", "generate.py"].contains(&name.as_str()));
    assert_eq!(there, expected.iter().map(|(name, _)| name.to_string()).collect());
    let readme = fs::read_to_string(folder.join("README.md")).unwrap();
    let mut wrong = vec![];
    for (name, fragment) in expected {
        assert!(readme.contains(name), "the README says nothing about {name}");
        let said = outcome(&folder.join(name));
        let is_expected = said.is_empty() == fragment.is_empty() && said.contains(fragment);
        if !is_expected || said.contains(|c: char| c.is_control() && c != '\n') {
            wrong.push(format!("{name}: {said:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
