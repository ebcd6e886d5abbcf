//! `cargo xtask check-cuda` compiles every kernel of `ssn-cuda` with every option that it asks for.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The words of conditions that are names of options.
fn asked(text: &str) -> BTreeSet<String> {
    let conditions = text.lines().filter(|line| line.starts_with("#if") || line.starts_with("#elif"));
    let words = conditions.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    words.filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase())).map(str::to_owned).collect()
}

#[test]
fn every_file_and_every_option_that_it_asks_for_is_compiled() {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(xtask.join("check-cuda/variants.txt")).unwrap();
    let variants: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(xtask.join("../crates/ssn-cuda/kernels")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // What is common to all files may ask for the options of any.
        let is_common = name.ends_with(".cuh");
        let own: Vec<_> = variants
            .iter()
            .filter(|variant| is_common || variant.split(' ').next() == Some(name.as_str()))
            .collect();
        assert!(!own.is_empty(), "{name} is not compiled");
        for option in asked(&fs::read_to_string(&path).unwrap()) {
            let has = |variant: &&&str| variant.split([' ', '=']).any(|word| word == option);
            assert!(own.iter().any(has), "{name} is not compiled with {option}");
        }
        files.insert(name);
    }
    for variant in variants {
        assert!(files.contains(variant.split(' ').next().unwrap()), "there is no file for {variant}");
    }
}

#[test]
fn options_are_seen_in_every_form() {
    let text = "#ifdef WIDE\n#if VECTOR == 2 && defined(BF16)\n#elif METHOD <= 1\n#define OTHER\nif (THIS)";
    assert_eq!(asked(text).into_iter().collect::<Vec<_>>(), ["BF16", "METHOD", "VECTOR", "WIDE"]);
}
