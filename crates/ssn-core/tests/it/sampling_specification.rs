//! Sampling is what `docs/reference/sampling.md` says: its test vectors hold, and an implementation in another
//! language, written from the page, draws the same bits.

use std::process::Command;

use ssn_core::random::fill_normals;
use ssn_core::{CategoricalSampler, LowRankNormal, Sampler, Steering};
use ssn_testing::noise;

const PAGE: &str = include_str!("../../../../docs/reference/sampling.md");

#[test]
fn the_vectors_of_the_page_hold() {
    let block = PAGE.split("```vectors").nth(1).unwrap().split("```").next().unwrap();
    let mut checked = 0;
    for line in block.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |i: usize| words[i].parse::<u64>().unwrap();
        let (seed, stream, draw, index) = (number(0), number(1) as u32, number(2), number(3) as usize);
        let mut numbers = vec![0.0; index + 1];
        fill_normals(seed, stream, draw, &mut numbers);
        assert_eq!(format!("{:08x}", numbers[index].to_bits()), words[4], "{line}");
        checked += 1;
    }
    assert!(checked >= 10);
}

#[test]
fn another_language_draws_the_same_thousand_samples() {
    compare_with_script(2, 70, 2, 1000, &Steering::default());
}

#[test]
fn another_language_agrees_without_a_factor_and_where_work_is_shared_out() {
    compare_with_script(2, 64, 0, 5, &Steering::default());
    compare_with_script(4, 65, 10, 3, &Steering::default());
    // A voxel more than threads take at a time.
    compare_with_script(2, 2049, 1, 2, &Steering::default());
}

#[test]
fn another_language_steers_the_same_samples() {
    let steering = Steering {
        temperature: 1.7,
        class_scales: vec![-0.3, 0.0, 2.0],
        mode_weights: vec![0.1, -3.0, 1.0, 0.5],
        diagonal_noise: true,
    };
    compare_with_script(3, 130, 4, 10, &steering);
    compare_with_script(3, 130, 4, 5, &Steering { diagonal_noise: false, ..Steering::default() });
}

#[test]
fn another_language_agrees_on_a_single_class() {
    compare_with_script(1, 100, 3, 20, &Steering::default());
}

#[test]
fn another_language_chooses_the_same_categorical_labels() {
    for (classes, voxels, samples) in [(1, 70, 20), (2, 130, 100), (4, 200, 50)] {
        let d = distribution(classes, voxels, 0);
        let Some(printed) = script(&description(&d, samples, &Steering::default(), true)) else { return };
        let maps = CategoricalSampler::new(&d, SEED).labels(0..samples).unwrap();
        let ours: Vec<String> =
            maps.iter().map(|map| map.labels().iter().map(u8::to_string).collect()).collect();
        assert_eq!(printed.lines().collect::<Vec<_>>(), ours, "{classes} classes");
    }
}

const SEED: u64 = 0x1234_5678_9abc_def0;

/// A distribution of noise.
fn distribution(classes: usize, voxels: usize, rank: usize) -> LowRankNormal {
    noise::distribution(6, [classes, voxels, rank], |x| x * x)
}

/// What the script prints for a description; nothing where there is no Python.
fn script(description: &serde_json::Value) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("distribution.json");
    std::fs::write(&file, description.to_string()).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tools/sample.py");
    let output = match Command::new("python3").arg(script).arg(&file).output() {
        Ok(output) => output,
        Err(_) => {
            ssn_testing::skip_without("python3");
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Draws samples here and in Python, and compares labels, logits and probabilities bit by bit. Here they come in two parts.
fn compare_with_script(classes: usize, voxels: usize, rank: usize, samples: u64, steering: &Steering) {
    let d = distribution(classes, voxels, rank);
    let Some(printed) = script(&description(&d, samples, steering, false)) else { return };
    let sampler = Sampler::new(&d, SEED, steering).unwrap();
    let labels = sampler.labels(0..samples).unwrap();
    let logits = [sampler.logits(0..1).unwrap(), sampler.logits(1..samples).unwrap()].concat();
    let probabilities = sampler.probabilities(0..samples).unwrap();
    assert_eq!(printed.lines().count(), samples as usize);
    for (i, line) in printed.lines().enumerate() {
        let (theirs, words) = line.split_once(' ').unwrap();
        let ours: String = labels[i].labels().iter().map(u8::to_string).collect();
        assert_eq!(theirs, ours, "labels of sample {i}");
        let ours: Vec<String> = logits[i].iter().chain(&probabilities[i]).map(bits).collect();
        assert_eq!(words.split(' ').collect::<Vec<_>>(), ours, "logits and probabilities of sample {i}");
    }
}

/// What the script reads.
fn description(d: &LowRankNormal, samples: u64, steering: &Steering, categorical: bool) -> serde_json::Value {
    let hex = |values: &[f32]| values.iter().map(bits).collect::<Vec<_>>();
    let or_ones =
        |values: &[f32], n: usize| hex(&if values.is_empty() { vec![1.0; n] } else { values.to_vec() });
    serde_json::json!({
        "classes": d.classes(), "voxels": d.voxels(), "rank": d.rank(), "seed": SEED, "samples": samples,
        "categorical": categorical,
        "temperature": hex(&[steering.temperature]),
        "class_scales": or_ones(&steering.class_scales, d.classes()),
        "mode_weights": or_ones(&steering.mode_weights, d.rank()),
        "diagonal_noise": steering.diagonal_noise,
        "mean": hex(&d.mean().to_f32()),
        "diagonal": hex(&d.diagonal().to_f32()),
        "factor": hex(&d.factor().to_f32()),
    })
}

fn bits(x: &f32) -> String {
    format!("{:08x}", x.to_bits())
}
