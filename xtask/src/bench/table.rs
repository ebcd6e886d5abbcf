//! The tables that benchmarks print.

use serde_json::Value;

/// A number of the answer, or NaN, which shows.
fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or(f64::NAN)
}

/// Both sides of the sampling benchmark.
pub fn sampling(ours: &Value, theirs: &Value) {
    println!("100 label maps of an 80³, 4-class, rank-10 distribution");
    both(
        ours,
        theirs,
        &format!("PyTorch {} (float64, {} threads)", word(theirs, "torch"), theirs["threads"]),
    );
    println!("shares of the labels, ours {}, theirs {}", shares(ours), shares(theirs));
    println!("\nlinear in voxels and samples:");
    println!("{:>8} {:>8} {:>10} {:>14}", "side", "samples", "seconds", "ns per logit");
    for row in ours["scaling"].as_array().into_iter().flatten() {
        let (seconds, each) = (number(row, "seconds"), number(row, "ns_per_logit"));
        println!("{:>8} {:>8} {seconds:>10.4} {each:>14.3}", number(row, "side"), number(row, "samples"));
    }
}

/// Both sides of the GED benchmark.
pub fn ged(ours: &Value, theirs: &Value) {
    println!("GED² of 20 samples against one rater, 80³ voxels, 4 classes, from label maps to the score");
    both(ours, theirs, &format!("NumPy {} (one-hot)", word(theirs, "numpy")));
    println!("GED², ours {:.15}, theirs {:.15}", number(ours, "ged"), number(theirs, "ged"));
    println!("\nlinear in voxels and, at these counts, in samples:");
    println!("{:>8} {:>8} {:>10} {:>20}", "side", "samples", "seconds", "ps per voxel, sample");
    for row in ours["scaling"].as_array().into_iter().flatten() {
        let (seconds, each) = (number(row, "seconds"), number(row, "ps_per_voxel_and_sample"));
        println!("{:>8} {:>8} {seconds:>10.5} {each:>20.2}", number(row, "side"), number(row, "samples"));
    }
}

/// Both sides of the augmentation benchmark; gives the smallest ratio.
pub fn augment(ours: &Value, theirs: &Value) -> f64 {
    println!(
        "Augmented patches per second, {} threads beside {} processes with SciPy {}; every change to every patch",
        ours["workers"],
        theirs["workers"],
        word(theirs, "scipy")
    );
    println!("{:>16} {:>12} {:>12} {:>8}", "", "ssn-data", "SciPy", "ratio");
    let mut smallest = f64::INFINITY;
    for task in ours["tasks"].as_array().into_iter().flatten() {
        let name = word(task, "name");
        let peers = theirs["tasks"].as_array().into_iter().flatten();
        let peer = peers.into_iter().find(|peer| word(peer, "name") == name).unwrap_or(&Value::Null);
        let (a, b) = (number(task, "per_second"), number(peer, "per_second"));
        println!("{name:>16} {a:>12.2} {b:>12.2} {:>6.1} ×", a / b);
        // A missing side must not count as reached.
        smallest = if a / b >= smallest { smallest } else { a / b };
    }
    smallest
}

fn both(ours: &Value, theirs: &Value, peer: &str) {
    let (a, b) = (number(ours, "seconds"), number(theirs, "seconds"));
    println!("  ssn-core (median)                        {a:>10.5} s");
    println!("  {peer:<40} {b:>10.5} s");
    println!("  ratio                                    {:>10.1} ×", b / a);
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or("?")
}

fn shares(value: &Value) -> String {
    let shares = value["label_shares"].as_array().into_iter().flatten().filter_map(Value::as_f64);
    shares.map(|x| format!("{x:.4}")).collect::<Vec<_>>().join(" ")
}
