//! Our side of the GED benchmark: `bench_ged DIR` times GED² of 20 samples against one rater on 80³ voxels and 4
//! classes, from label maps to the score, writes the label maps to DIR for the peer, and prints JSON.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use ssn_core::metrics::ged;
use ssn_core::{BitPlanes, LabelMap, Sampler, Steering};
use ssn_testing::noise;

const CLASSES: usize = 4;
const RANK: usize = 10;
const SIDE: usize = 80;
const SAMPLES: usize = 20;
const REPEATS: usize = 21;

/// Samples of a random distribution; the last one plays the rater.
fn label_maps(side: usize, count: usize) -> Result<Vec<LabelMap>, Box<dyn Error>> {
    let d = noise::distribution(1, [CLASSES, side * side * side, RANK], |_| 0.5);
    Ok(Sampler::new(&d, 7, &Steering::default())?.labels(0..count as u64)?)
}

/// Median seconds from label maps to the score, and the score.
fn time(maps: &[LabelMap]) -> Result<(f64, f64), Box<dyn Error>> {
    let mut seconds = vec![];
    let mut score = 0.0;
    for _ in 0..REPEATS {
        let start = Instant::now();
        let planes: Vec<BitPlanes> = maps.iter().map(BitPlanes::new).collect();
        let (rater, samples) = planes.split_last().ok_or("no label maps")?;
        score = ged(samples, std::slice::from_ref(rater))?.squared;
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok((seconds[REPEATS / 2], score))
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("which folder for the peer's files?")?);
    let maps = label_maps(SIDE, SAMPLES + 1)?;
    fs::write(folder.join("labels"), maps.iter().flat_map(|m| m.labels().to_vec()).collect::<Vec<u8>>())?;
    let (seconds, score) = time(&maps)?;
    let mut scaling = vec![];
    for (side, samples) in
        [(40, SAMPLES), (SIDE, SAMPLES), (160, SAMPLES), (SIDE, SAMPLES / 2), (SIDE, 2 * SAMPLES)]
    {
        let (seconds, _) = time(&label_maps(side, samples + 1)?)?;
        scaling.push(serde_json::json!({
            "side": side, "samples": samples, "seconds": seconds,
            "ps_per_voxel_and_sample": seconds * 1e12 / (side * side * side * samples) as f64,
        }));
    }
    println!(
        "{}",
        serde_json::json!({
            "voxels": SIDE * SIDE * SIDE, "classes": CLASSES, "samples": SAMPLES,
            "seconds": seconds, "ged": score, "scaling": scaling,
        })
    );
    Ok(())
}
