//! `cargo xtask bench sampling | ged | augment`: a program of ours and a peer's script on the same input.

use super::{built, exit, number, peer, reached, word};
use crate::error::{Error, Exit};
use crate::process;
use serde_json::Value;
use std::fs;
use std::process::Command;

/// How many times faster than PyTorch in float64 sampling must be.
const SAMPLING_BAR: f64 = 20.0;
/// How many times faster than NumPy on one-hot maps GED² must be.
const GED_BAR: f64 = 300.0;
/// How many times as many augmented patches per second as SciPy there must be, for every kind of patch.
const AUGMENT_BAR: f64 = 3.0;
/// How long the peer augments patches of each kind.
const AUGMENT_SECONDS: &str = "20";

/// Runs the example `bench_NAME` of a package of ours, which leaves its input in a folder, and then the peer's script
/// `NAME.py` on the same input.
fn measure(
    package: &str,
    name: &str,
    peer_packages: &[&str],
    peer_arguments: impl Fn(&Value) -> Vec<String>,
) -> Result<[Value; 2], Error> {
    // The peer first makes sure that it can run at all, so that nothing is measured in vain.
    let python = peer::python(peer_packages)?;
    let example = format!("bench_{name}");
    let program = built(package, &example, &[])?;
    let folder = process::target_directory()?.join("bench").join(example);
    fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
    eprintln!("Measuring ours …");
    let ours = process::answer(Command::new(program).arg(&folder))?;
    eprintln!("Measuring the peer …");
    let mut theirs = peer::command(&python, &format!("{name}.py"));
    let theirs = process::answer(theirs.arg(&folder).args(peer_arguments(&ours)))?;
    fs::remove_dir_all(&folder).map_err(Error::io("remove", &folder))?;
    Ok([ours, theirs])
}

pub fn sampling() -> Result<Exit, Error> {
    let sizes =
        |ours: &Value| ["voxels", "classes", "rank", "samples"].map(|key| ours[key].to_string()).to_vec();
    let [ours, theirs] = measure("ssn-core", "sampling", peer::TORCH, sizes)?;
    println!("100 label maps of an 80³, 4-class, rank-10 distribution");
    let peer = format!("PyTorch {} (float64, {} threads)", word(&theirs, "torch"), theirs["threads"]);
    let ratio = seconds(&ours, &theirs, &peer);
    println!("shares of the labels, ours {}, theirs {}", shares(&ours), shares(&theirs));
    println!("\nlinear in voxels and samples:");
    scaling(&ours, "ns per logit", "ns_per_logit");
    Ok(verdict(ratio, SAMPLING_BAR))
}

pub fn ged() -> Result<Exit, Error> {
    let sizes = |ours: &Value| ["voxels", "classes", "samples"].map(|key| ours[key].to_string()).to_vec();
    let [ours, theirs] = measure("ssn-core", "ged", peer::TORCH, sizes)?;
    println!("GED² of 20 samples against one rater, 80³ voxels, 4 classes, from label maps to the score");
    let ratio = seconds(&ours, &theirs, &format!("NumPy {} (one-hot)", word(&theirs, "numpy")));
    println!("GED², ours {:.15}, theirs {:.15}", number(&ours, "ged"), number(&theirs, "ged"));
    println!("\nlinear in voxels and, at these counts, in samples:");
    scaling(&ours, "ps per voxel, sample", "ps_per_voxel_and_sample");
    Ok(verdict(ratio, GED_BAR))
}

pub fn augment() -> Result<Exit, Error> {
    let [ours, theirs] = measure("ssn-data", "augment", peer::SCIPY, |_| vec![AUGMENT_SECONDS.to_owned()])?;
    println!(
        "Augmented patches per second, {} threads beside {} processes with SciPy {}; every change to every patch",
        ours["workers"],
        theirs["workers"],
        word(&theirs, "scipy")
    );
    println!("{:>16} {:>12} {:>12} {:>8}", "", "ssn-data", "SciPy", "ratio");
    let mut smallest = f64::INFINITY;
    for task in ours["tasks"].as_array().into_iter().flatten() {
        let name = word(task, "name");
        let mut peers = theirs["tasks"].as_array().into_iter().flatten();
        let peer = peers.find(|peer| word(peer, "name") == name).unwrap_or(&Value::Null);
        let (a, b) = (number(task, "per_second"), number(peer, "per_second"));
        println!("{name:>16} {a:>12.2} {b:>12.2} {:>6.1} ×", a / b);
        // A missing side must not count as reached.
        smallest = if a / b >= smallest { smallest } else { a / b };
    }
    Ok(verdict(smallest, AUGMENT_BAR))
}

/// Prints the seconds of both sides, and gives how many times as long as we do the peer takes.
fn seconds(ours: &Value, theirs: &Value, peer: &str) -> f64 {
    let (a, b) = (number(ours, "seconds"), number(theirs, "seconds"));
    println!("  ssn-core (median)                        {a:>10.5} s");
    println!("  {peer:<40} {b:>10.5} s");
    println!("  ratio                                    {:>10.1} ×", b / a);
    b / a
}

fn scaling(ours: &Value, heading: &str, key: &str) {
    println!("{:>8} {:>8} {:>10} {heading:>20}", "side", "samples", "seconds");
    for row in ours["scaling"].as_array().into_iter().flatten() {
        let [side, samples, seconds, each] = ["side", "samples", "seconds", key].map(|key| number(row, key));
        println!("{side:>8} {samples:>8} {seconds:>10.5} {each:>20.3}");
    }
}

fn shares(answer: &Value) -> String {
    let shares = answer["label_shares"].as_array().into_iter().flatten().filter_map(Value::as_f64);
    shares.map(|x| format!("{x:.4}")).collect::<Vec<_>>().join(" ")
}

fn verdict(ratio: f64, bar: f64) -> Exit {
    println!("\nthe bar is {bar} ×: {}", reached(ratio >= bar));
    exit(ratio >= bar)
}
