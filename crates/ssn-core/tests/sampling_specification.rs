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
    let (classes, voxels, rank, seed, samples) = (3, 21, 2, 0x1234_5678_9abc_def0_u64, 1000);
    let numbers = |stream, n| {
        let mut out = vec![0.0; n];
        fill_normals(6, stream, 0, &mut out);
        out
    };
    let n = classes * voxels;
    let diagonal: Vec<f32> = numbers(1, n).into_iter().map(|x| x * x).collect();
    let d = LowRankNormal::new(classes, voxels, rank, numbers(0, n), diagonal, numbers(2, rank * n)).unwrap();

    let hex = |values: &ssn_core::Values| -> Vec<String> {
        values.to_f32().iter().map(|x| format!("{:08x}", x.to_bits())).collect()
    };
    let description = serde_json::json!({
        "classes": classes, "voxels": voxels, "rank": rank, "seed": seed, "samples": samples,
        "mean": hex(d.mean()), "diagonal": hex(d.diagonal()), "factor": hex(d.factor()),
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("distribution.json");
    std::fs::write(&file, description.to_string()).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tools/sample.py");
    let output = match Command::new("python3").arg(script).arg(&file).output() {
        Ok(output) => output,
        Err(error) => {
            println!("skipped: python3 cannot be started ({error})");
            return;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let sampler = Sampler::new(&d, seed, &Steering::default()).unwrap();
    let labels = sampler.labels(0..samples).unwrap();
    let logits = sampler.logits(0..samples).unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(printed.lines().count(), samples as usize);
    for (i, line) in printed.lines().enumerate() {
        let mut words = line.split(' ');
        let ours: String = labels[i].labels().iter().map(u8::to_string).collect();
        assert_eq!(words.next().unwrap(), ours, "labels of sample {i}");
        for (at, word) in words.enumerate() {
            assert_eq!(word, format!("{:08x}", logits[i][at].to_bits()), "logit {at} of sample {i}");
        }
    }
}
