//! A whole case of the size of a brain scan, 240 × 240 × 155 voxels, 4 classes, rank 10: 100 samples and every
//! score, with the time of each part and the peak of resident memory. Prints a table and ends with 1 above 4 GB.

use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

use ssn_core::metrics::{
    Calibrated, ClassGroup, LabelFrequencies, Overlap, PairwiseDice, PairwiseDistances, SurfaceDistances,
    better_than, brier, ece, quantile, variance_ncc,
};
use ssn_core::random::fill_normals;
use ssn_core::space::Grid;
use ssn_core::{BitPlanes, LowRankNormal, SampleSummary, Sampler, Steering};

const SHAPE: [usize; 3] = [155, 240, 240];
const CLASSES: usize = 4;
const RANK: usize = 10;
const SAMPLES: u64 = 100;
/// Samples whose label maps are kept at once.
const BATCH: u64 = 10;
const LIMIT_BYTES: u64 = 4_000_000_000;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut clock = Clock(Instant::now());
    let v = SHAPE.iter().product();
    let d = distribution(v)?;
    clock.tell("distribution made and checked");

    let cold = Steering { temperature: 0.0, ..Steering::default() };
    let prediction_map = Sampler::new(&d, 0, &cold)?.labels(0..1)?.remove(0);
    let prediction = BitPlanes::new(&prediction_map);
    let raters = Sampler::new(&d, 1234, &Steering::default())?.labels(0..4)?;
    let rater_planes: Vec<BitPlanes> = raters.iter().map(BitPlanes::new).collect();
    clock.tell("prediction and four raters");

    let sampler = Sampler::new(&d, 7, &Steering::default())?;
    let mut planes = vec![];
    let mut frequencies: Option<LabelFrequencies> = None;
    for start in (0..SAMPLES).step_by(BATCH as usize) {
        for map in sampler.labels(start..start + BATCH)? {
            planes.push(BitPlanes::new(&map));
            match &mut frequencies {
                Some(frequencies) => frequencies.push(&map)?,
                None => frequencies = Some(LabelFrequencies::new(&map)),
            }
        }
    }
    clock.tell("100 label maps, packed and counted");

    let mut summary = SampleSummary::new(&sampler, &raters)?;
    summary.extend(&sampler, 0..SAMPLES)?;
    let probabilities = summary.mean_probabilities()?;
    let entropy = summary.marginal_entropy()?.iter().map(|&x| f64::from(x)).sum::<f64>() / v as f64;
    let (likelihood, effective) = (summary.log_likelihoods()?[0], summary.effective_samples()?[0]);
    drop(summary);
    clock.tell("summaries over 100 samples (probabilities, entropy, likelihood of 4 raters)");

    let distances = PairwiseDistances::new(&planes, &rater_planes)?;
    let at = |count| distances.ged_at(count).map(|ged| ged.squared);
    let ged = [16, 32, 50, 100].into_iter().map(at).collect::<ssn_core::Result<Vec<f64>>>()?;
    let hm_iou = distances.hm_iou()?;
    clock.tell("GED² at 16, 32, 50, 100 and HM-IoU");

    let groups = [ClassGroup::new(&[1, 2, 3])?, ClassGroup::new(&[1, 3])?];
    let dice = |map| Overlap::new(map, &rater_planes[0], &groups[0]).map(|overlap| overlap.dice());
    let sample_dice = planes.iter().map(dice).collect::<ssn_core::Result<Vec<_>>>()?;
    let better = better_than(dice(&prediction)?, &sample_dice);
    let best = PairwiseDice::new(&planes, &rater_planes, &groups)?.max_of_raters();
    let ncc = variance_ncc(&frequencies.ok_or("no samples")?, &LabelFrequencies::of(&raters)?)?;
    clock.tell("sample Dice, max-Dice, NCC");

    let ece = ece(&probabilities, &raters, Calibrated::TopLabel, 15)?;
    let brier = brier(&probabilities, &raters)?;
    clock.tell("ECE and Brier");

    let grid = Grid::new(SHAPE, [1.0; 3])?;
    let surface =
        SurfaceDistances::new(&prediction_map.mask(&[1, 2, 3]), &raters[0].mask(&[1, 2, 3]), &grid)?;
    let (hd95, nsd) = (surface.hd95(), surface.nsd(2.0)?);
    clock.tell("HD95 and normalized surface Dice");

    println!(
        "\nGED² {ged:.4?}  HM-IoU {hm_iou:.4}  better than the prediction {:.2?}  95 % Dice {:.3?}  max-Dice {best:.3}\n\
         NCC {ncc:.3?}  ECE {ece:.4}  Brier {brier:.4}  HD95 {hd95:.2?}  NSD {nsd:.3?}  entropy {entropy:.3}\n\
         log-likelihood {likelihood:.4e} on {effective:.2} effective sample size",
        better,
        quantile(&sample_dice.into_iter().flatten().collect::<Vec<_>>(), 0.95)?,
    );
    let peak = peak_bytes()?;
    println!("peak resident memory: {:.2} GB (limit {:.0} GB)", peak as f64 / 1e9, LIMIT_BYTES as f64 / 1e9);
    Ok(if peak < LIMIT_BYTES { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// A ball of tumour in three shells on background, with noise; the factor is noise inside the ball.
fn distribution(v: usize) -> Result<LowRankNormal, Box<dyn Error>> {
    let [depth, height, width] = SHAPE;
    let shell = |x: usize| {
        let at = [x / (height * width), x / width % height, x % width];
        let center = [depth / 2, height / 2, width / 2];
        let squared: f32 = at.iter().zip(center).map(|(&a, c)| (a as f32 - c as f32).powi(2)).sum();
        match squared.sqrt() {
            r if r < 12.0 => 1,
            r if r < 22.0 => 3,
            r if r < 40.0 => 2,
            _ => 0usize,
        }
    };
    let mut mean = vec![0f32; CLASSES * v];
    let mut factor = vec![0f32; RANK * CLASSES * v];
    fill_normals(1, 0, 0, &mut factor);
    for x in 0..v {
        let class = shell(x);
        mean[class * v + x] = 4.0;
        if class == 0 {
            (0..RANK * CLASSES).for_each(|row| factor[row * v + x] = 0.0);
        }
    }
    Ok(LowRankNormal::new(CLASSES, v, RANK, mean, vec![0.01f32; CLASSES * v], factor)?)
}

/// The largest resident size of this process so far.
fn peak_bytes() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM in /proc/self/status")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024)
}

/// Prints the seconds since it last did.
struct Clock(Instant);

impl Clock {
    fn tell(&mut self, what: &str) {
        println!("{:>7.2} s  {what}", self.0.elapsed().as_secs_f64());
        self.0 = Instant::now();
    }
}
