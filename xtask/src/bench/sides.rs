//! `cargo xtask bench sampling | ged | augment`: a program of ours and a peer's script on the same input.

use super::{built, number, peer, table, word};
use crate::error::{Error, Exit};
use crate::process;
use serde_json::Value;
use std::fs;
use std::process::Command;

/// How long the peer augments patches of each kind.
const AUGMENT_SECONDS: &str = "20";

/// Runs the example `bench_NAME` of a package, which leaves its input in a folder, and then the peer's script `NAME.py` on
/// the same input.
fn measure(
    package: &str,
    name: &str,
    peer_packages: &[&str],
    peer_arguments: impl Fn(&Value) -> Vec<String>,
) -> Result<[Value; 2], Error> {
    // Find the peer first, so that nothing is measured in vain.
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
    let peer = format!("PyTorch {} (float64, {} threads)", word(&theirs, "torch"), theirs["threads"]);
    seconds("100 label maps of an 80³, 4-class, rank-10 distribution", &ours, &theirs, &peer);
    println!("shares of the labels: ours {}, theirs {}\n", shares(&ours), shares(&theirs));
    scaling(&ours, "ns per logit", "ns_per_logit");
    Ok(Exit::Success)
}

pub fn ged() -> Result<Exit, Error> {
    let sizes = |ours: &Value| ["voxels", "classes", "samples"].map(|key| ours[key].to_string()).to_vec();
    let [ours, theirs] = measure("ssn-core", "ged", peer::TORCH, sizes)?;
    let peer = format!("NumPy {} (one-hot)", word(&theirs, "numpy"));
    seconds(
        "GED² of 20 samples and one rater, 80³ voxels, 4 classes, from label maps",
        &ours,
        &theirs,
        &peer,
    );
    println!("GED²: ours {:.15}, theirs {:.15}\n", number(&ours, "ged"), number(&theirs, "ged"));
    scaling(&ours, "ps per voxel and sample", "ps_per_voxel_and_sample");
    Ok(Exit::Success)
}

pub fn augment() -> Result<Exit, Error> {
    let [ours, theirs] = measure("ssn-data", "augment", peer::SCIPY, |_| vec![AUGMENT_SECONDS.to_owned()])?;
    println!(
        "Augmented patches per second, {} threads of ours, {} processes with SciPy {}; every change to every patch\n",
        ours["workers"],
        theirs["workers"],
        word(&theirs, "scipy")
    );
    let tasks = ours["tasks"].as_array().into_iter().flatten();
    let rows: Vec<_> = tasks
        .map(|task| {
            let name = word(task, "name");
            let mut peers = theirs["tasks"].as_array().into_iter().flatten();
            let peer = peers.find(|peer| word(peer, "name") == name).unwrap_or(&Value::Null);
            let [a, b] = [task, peer].map(|side| number(side, "per_second"));
            [format!("`{name}`"), format!("{a:.2} /s"), format!("{b:.2} /s"), format!("{:.1} ×", a / b)]
        })
        .collect();
    print!("{}", table(["patches", "ours", "SciPy", "ratio"], &rows));
    Ok(Exit::Success)
}

/// Prints the seconds of both sides and their ratio.
fn seconds(what: &str, ours: &Value, theirs: &Value, peer: &str) {
    let [a, b] = [ours, theirs].map(|side| number(side, "seconds"));
    let row = [what.to_owned(), format!("{a:.5} s"), format!("{b:.5} s: {peer}"), format!("{:.1} ×", b / a)];
    println!("{}", table(["what", "ours (median)", "peer", "ratio"], &[row]));
}

fn scaling(ours: &Value, heading: &str, key: &str) {
    let rows = ours["scaling"].as_array().into_iter().flatten();
    let rows: Vec<_> = rows
        .map(|row| {
            let [side, samples, seconds, each] =
                ["side", "samples", "seconds", key].map(|key| number(row, key));
            [side.to_string(), samples.to_string(), format!("{seconds:.5}"), format!("{each:.3}")]
        })
        .collect();
    print!("{}", table(["side", "samples", "seconds", heading], &rows));
}

fn shares(answer: &Value) -> String {
    let shares = answer["label_shares"].as_array().into_iter().flatten().filter_map(Value::as_f64);
    shares.map(|x| format!("{x:.4}")).collect::<Vec<_>>().join(" ")
}
