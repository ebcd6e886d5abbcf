//! The kernels in the variants that are compiled: every choice that a file knows, and sizes of the paper's networks.
//!
//! The programs compile what a network needs when it needs it; `crates/ssn-cuda/shim` puts the options together.

/// The oldest architecture that is meant, with bfloat16, and the one that is measured.
const ARCHITECTURES: [&str; 2] = ["sm_80", "sm_90"];

/// Each file with its options, one string for each variant.
const KERNELS: &[(&str, &[&str])] = &[
    (
        "norm.cu",
        &[
            "BF16 ACTIVATION=0 DROPOUT=0",
            "BF16 ACTIVATION=1 DROPOUT=0",
            "BF16 ACTIVATION=3 DROPOUT=1",
            "F32 ACTIVATION=2 DROPOUT=1 WIDE",
            "F32 ACTIVATION=3 DROPOUT=0",
        ],
    ),
    ("maps.cu", &["BF16", "BF16 VECTOR=1 WIDE", "BF16 VECTOR=2", "F32 WIDE", "F32 VECTOR=2"]),
    (
        "head.cu",
        &[
            "BF16 FEATURES=50 FP=56 OUTPUTS=48 PARTS=3",
            "BF16 FEATURES=32 FP=32 OUTPUTS=4 PARTS=2",
            "F32 FEATURES=32 FP=32 OUTPUTS=24 PARTS=3",
            "F32 FEATURES=30 FP=32 OUTPUTS=3 PARTS=1",
        ],
    ),
    (
        "loss.cu",
        &[
            "CLASSES=4 RANK=10 DRAWS=10 PAIRED=1",
            "CLASSES=2 RANK=10 DRAWS=20 PAIRED=0",
            "CLASSES=2 RANK=0 DRAWS=20 PAIRED=0",
        ],
    ),
    ("update.cu", &["METHOD=0", "METHOD=1", "METHOD=2", "METHOD=3"]),
];

/// All variants: architecture, file and options.
pub fn all() -> Vec<String> {
    let of_files = || KERNELS.iter().flat_map(|(file, variants)| variants.iter().map(move |o| (file, o)));
    let of = |architecture| of_files().map(move |(file, options)| format!("{architecture} {file} {options}"));
    ARCHITECTURES.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check_cuda::kernels;
    use std::collections::BTreeSet;
    use std::fs;

    /// The words of a condition that are names of options.
    fn asked(text: &str) -> BTreeSet<String> {
        let conditions = text.lines().filter(|line| line.starts_with("#if") || line.starts_with("#elif"));
        let words = conditions.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
        words.filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase())).map(str::to_owned).collect()
    }

    #[test]
    fn every_file_and_every_option_that_it_asks_for_is_compiled() {
        let variants = all();
        let mut files = 0;
        for entry in fs::read_dir(kernels()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let is_common = name.ends_with(".cuh");
            let own: Vec<&String> = variants
                .iter()
                .filter(|variant| is_common || variant.contains(&format!(" {name} ")))
                .collect();
            assert!(!own.is_empty(), "{name} is not compiled");
            for option in asked(&fs::read_to_string(&path).unwrap()) {
                let has = |variant: &&String| variant.split([' ', '=']).any(|word| word == option);
                assert!(own.iter().any(has), "{name} is not compiled with {option}");
            }
            files += usize::from(!is_common);
        }
        assert_eq!(files, KERNELS.len());
    }

    #[test]
    fn options_are_seen_in_every_form() {
        let text =
            "#ifdef WIDE\n#if VECTOR == 2 && defined(BF16)\n#elif METHOD <= 1\n#define OTHER\nif (THIS)";
        assert_eq!(asked(text).into_iter().collect::<Vec<_>>(), ["BF16", "METHOD", "VECTOR", "WIDE"]);
    }
}
