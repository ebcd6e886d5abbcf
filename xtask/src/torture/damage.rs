//! Flipped bits in what the programs wrote: noticed, or without any effect.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use fastrand::Rng;

use super::lab::{Lab, copy, difference, end, tree};
use super::{Findings, Kind};
use crate::error::Error;

/// Files that are damaged, and a verb that reads them.
struct Target {
    name: &'static str,
    /// What is copied before it is damaged.
    of: fn(&Lab) -> PathBuf,
    /// Which files of the copy are damaged.
    is_damaged: fn(&str) -> bool,
    words: fn(&Path, &Path) -> Vec<OsString>,
}

const TARGETS: [Target; 3] = [
    Target {
        name: "checkpoints",
        of: Lab::trained,
        is_damaged: |path| path.starts_with("checkpoints/"),
        words: |run, out| {
            let words =
                ["predict".into(), run.into(), "--out".into(), out.join("p").into(), "--split".into()];
            let more = ["all", "--device", "cpu"].map(OsString::from);
            words.into_iter().chain(more).collect()
        },
    },
    Target {
        name: "distribution files",
        of: Lab::predictions,
        is_damaged: |path| path.ends_with(".ssn.safetensors"),
        words: |predictions, out| {
            let words = ["sample".into(), predictions.into(), "--out".into(), out.join("s").into()];
            let more = ["--samples", "2", "--entropy"].map(OsString::from);
            words.into_iter().chain(more).collect()
        },
    },
    Target {
        name: "scores of cases",
        of: Lab::predictions,
        is_damaged: |path| path.starts_with("evaluation/cases/"),
        words: |predictions, _| vec!["evaluate".into(), predictions.into()],
    },
];

/// Flips random bits of files, one in each trial.
pub fn flips(lab: &Lab, rng: &mut Rng, until: Instant, findings: &mut Findings) -> Result<(), Error> {
    let mut references = BTreeMap::<&str, BTreeMap<PathBuf, Vec<u8>>>::new();
    while Instant::now() < until {
        let target = &TARGETS[rng.usize(..TARGETS.len())];
        if !references.contains_key(target.name) {
            let (ended, files) = read(lab, target, |_| Ok(()))?;
            if ended.code != Some(0) {
                return Err(Error::answer(target.name, &ended.said()));
            }
            references.insert(target.name, files);
        }
        let mut what = String::new();
        let (ended, files) = read(lab, target, |copied| {
            let files = tree(copied).map_err(Error::io("read", copied))?;
            let names: Vec<_> = files
                .iter()
                .filter(|(path, bytes)| (target.is_damaged)(&path.to_string_lossy()) && !bytes.is_empty())
                .collect();
            let (name, bytes) = names[rng.usize(..names.len())];
            let (place, bit) = (rng.usize(..bytes.len()), rng.u8(..8));
            let mut damaged = bytes.clone();
            damaged[place] ^= 1 << bit;
            what = format!("{}: bit {bit} of byte {place} of {}", target.name, name.display());
            let path = copied.join(name);
            fs::write(&path, damaged).map_err(Error::io("write", &path))
        })?;
        findings.tried(1);
        if ended.hung {
            findings.found(Kind::Hang, format!("{what}: {}", ended.said()));
        } else if ended.has_crashed() {
            findings.found(Kind::Crash, format!("{what}: {}", ended.said()));
        } else if ended.code == Some(0)
            && let Some(path) = difference(&files, &references[target.name])
        {
            findings.found(Kind::Missed, format!("{what} changed {path}"));
        }
    }
    Ok(())
}

/// Copies what a verb reads, changes it, and runs the verb; gives what it wrote.
fn read(
    lab: &Lab,
    target: &Target,
    change: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<(super::lab::Ended, BTreeMap<PathBuf, Vec<u8>>), Error> {
    let (inputs, out) = (lab.cleared("inputs")?, lab.cleared("out")?);
    let copied = inputs.join("copy");
    copy(&(target.of)(lab), &copied)?;
    change(&copied)?;
    let ended = end(&mut lab.ssn(&(target.words)(&copied, &out)))?;
    // What is written beside the inputs counts as well.
    let evaluation = copied.join("evaluation");
    let written = if target.name == "scores of cases" { &evaluation } else { &out };
    let files = tree(written).map_err(Error::io("read", written))?;
    Ok((ended, files))
}
