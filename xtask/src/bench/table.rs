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
