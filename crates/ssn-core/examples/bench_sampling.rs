//! Our side of the sampling benchmark: `bench_sampling DIR` times label maps of an 80³, 4-class, rank-10
//! distribution, writes the distribution to DIR for the peer, and prints JSON.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use ssn_core::{LowRankNormal, Sampler, Steering};
use ssn_testing::noise;

const CLASSES: usize = 4;
const RANK: usize = 10;
const SIDE: usize = 80;
const SAMPLES: u64 = 100;
const REPEATS: usize = 5;

fn distribution(side: usize) -> LowRankNormal {
    noise::distribution(1, [CLASSES, side * side * side, RANK], |x| x * x)
}

/// Median seconds of drawing label maps, and the share of voxels with each label.
fn time(d: &LowRankNormal, samples: u64) -> Result<(f64, Vec<f64>), Box<dyn Error>> {
    let sampler = Sampler::new(d, 7, &Steering::default())?;
    let mut seconds = vec![];
    let mut shares = vec![];
    for _ in 0..REPEATS {
        let start = Instant::now();
        let maps = sampler.labels(0..samples)?;
        seconds.push(start.elapsed().as_secs_f64());
        let total = (maps.len() * d.voxels()) as f64;
        shares = (0..CLASSES as u8)
            .map(|k| maps.iter().map(|m| m.volume(k)).sum::<usize>() as f64 / total)
            .collect();
    }
    seconds.sort_by(f64::total_cmp);
    Ok((seconds[REPEATS / 2], shares))
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("which folder for the peer's files?")?);
    let d = distribution(SIDE);
    for (name, values) in [("mean", d.mean()), ("diagonal", d.diagonal()), ("factor", d.factor())] {
        let bytes: Vec<u8> = values.to_f32().iter().flat_map(|x| x.to_le_bytes()).collect();
        fs::write(folder.join(name), bytes)?;
    }
    let (seconds, shares) = time(&d, SAMPLES)?;
    let mut scaling = vec![];
    for (side, samples) in
        [(40, SAMPLES), (SIDE, SAMPLES), (160, SAMPLES), (SIDE, SAMPLES / 4), (SIDE, 4 * SAMPLES)]
    {
        let (seconds, _) = time(&distribution(side), samples)?;
        let logits = (side * side * side * CLASSES) as f64 * samples as f64;
        scaling.push(serde_json::json!({
            "side": side, "samples": samples, "seconds": seconds, "ns_per_logit": seconds * 1e9 / logits,
        }));
    }
    println!(
        "{}",
        serde_json::json!({
            "voxels": d.voxels(), "classes": CLASSES, "rank": RANK, "samples": SAMPLES,
            "seconds": seconds, "label_shares": shares, "scaling": scaling,
        })
    );
    Ok(())
}
