//! Sampling is what `docs/reference/sampling.md` says: its test vectors hold, and an implementation in another
//! language, written from the page, draws the same bits.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

use std::process::Command;

use ssn_core::random::fill_normals;
use ssn_core::{LowRankNormal, Sampler, Steering};

const PAGE: &str = include_str!("../../../docs/reference/sampling.md");

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

/// Draws samples here and in Python, and compares labels, logits and probabilities bit by bit.
fn compare_with_script(classes: usize, voxels: usize, rank: usize, samples: u64, steering: &Steering) {
    let seed = 0x1234_5678_9abc_def0_u64;
    let numbers = |stream, n| {
        let mut out = vec![0.0; n];
        fill_normals(6, stream, 0, &mut out);
        out
    };
    let n = classes * voxels;
    let diagonal: Vec<f32> = numbers(1, n).into_iter().map(|x| x * x).collect();
    let d = LowRankNormal::new(classes, voxels, rank, numbers(0, n), diagonal, numbers(2, rank * n)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("distribution.json");
    std::fs::write(&file, description(&d, seed, samples, steering).to_string()).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tools/sample.py");
    let output = match Command::new("python3").arg(script).arg(&file).output() {
        Ok(output) => output,
        Err(error) => {
            println!("skipped: python3 cannot be started ({error})");
            return;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let sampler = Sampler::new(&d, seed, steering).unwrap();
    let labels = sampler.labels(0..samples).unwrap();
    let (logits, probabilities) =
        (sampler.logits(0..samples).unwrap(), sampler.probabilities(0..samples).unwrap());
    let printed = String::from_utf8(output.stdout).unwrap();
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
fn description(d: &LowRankNormal, seed: u64, samples: u64, steering: &Steering) -> serde_json::Value {
    let hex = |values: &[f32]| values.iter().map(bits).collect::<Vec<_>>();
    let or_ones =
        |values: &[f32], n: usize| hex(&if values.is_empty() { vec![1.0; n] } else { values.to_vec() });
    serde_json::json!({
        "classes": d.classes(), "voxels": d.voxels(), "rank": d.rank(), "seed": seed, "samples": samples,
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
