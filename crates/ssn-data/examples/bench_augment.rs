//! Our side of the augmentation benchmark: `bench_augment DIR` counts augmented patches per second, BraTS-like (4 × 110³
//! out of 4 × 155 × 240 × 240) and LIDC-like (128²), writes what the peer needs to DIR, and prints JSON.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use ssn_core::random::fill_normals;
use ssn_data::{
    AugmentConfig, AugmentPreset, BatchConfig, Case, CaseOrder, DataLoader, LoaderConfig, MemoryCases,
    PatchConfig, PatchSampler, RaterChoice,
};

const WORKERS: usize = 2;

struct Task {
    name: &'static str,
    cases: usize,
    channels: usize,
    shape: [usize; 3],
    sampler: PatchSampler,
    target_size: Option<[usize; 3]>,
    batch_size: usize,
    batches: usize,
    augment: AugmentConfig,
}

/// Noise in the image, a ball as the lesion, everything inside the mask.
fn case(number: usize, channels: usize, shape: [usize; 3]) -> Case {
    let [d, h, w] = shape;
    let mut image = vec![0.0; channels * d * h * w];
    fill_normals(number as u64, 0, 0, &mut image);
    let radius = h as f32 / 8.0;
    let label = |voxel: usize| {
        let at = [voxel / (h * w), voxel / w % h, voxel % w];
        let distance: f32 = (0..3).map(|k| (at[k] as f32 - shape[k] as f32 / 2.0).powi(2)).sum();
        u8::from(distance.sqrt() < radius)
    };
    Case {
        id: number.to_string(),
        channels,
        shape,
        image,
        raters: vec![(0..d * h * w).map(label).collect()],
        ..Case::default()
    }
}

/// All changes of a preset happen to every patch: the work is the same on both sides, whatever is drawn.
fn always(preset: AugmentPreset) -> Result<AugmentConfig, serde_json::Error> {
    let mut config = serde_json::to_value(preset.config())?;
    for step in config["steps"].as_array_mut().into_iter().flatten() {
        step["probability"] = 1.0_f64.into();
    }
    serde_json::from_value(config)
}

/// Patches per second, from cases in memory to finished batches.
fn measure(task: Task, folder: &Path) -> Result<serde_json::Value, Box<dyn Error>> {
    let cases: Vec<Case> = (0..task.cases).map(|number| case(number, task.channels, task.shape)).collect();
    let bytes: Vec<u8> = cases[0].image.iter().flat_map(|x| x.to_le_bytes()).collect();
    fs::write(folder.join(format!("{}.image", task.name)), bytes)?;
    fs::write(folder.join(format!("{}.labels", task.name)), &cases[0].raters[0])?;
    let patch =
        PatchConfig { sampler: task.sampler, target_size: task.target_size, rater: RaterChoice::Random };
    let batches = BatchConfig {
        batch_size: task.batch_size,
        order: CaseOrder::Shuffled,
        patch,
        augment: task.augment,
        input_grids: None,
    };
    let settings = LoaderConfig { workers: WORKERS, cache_bytes: Some(8 << 30), ..LoaderConfig::default() };
    let mut loader = DataLoader::new(Arc::new(MemoryCases(cases)), 1, batches, &settings)?;
    // The first batches load the cases.
    for _ in 0..WORKERS + 1 {
        loader.next().ok_or("no batch")??;
    }
    let start = Instant::now();
    for _ in 0..task.batches {
        loader.next().ok_or("no batch")??;
    }
    let seconds = start.elapsed().as_secs_f64();
    let patches = task.batches * task.batch_size;
    Ok(serde_json::json!({
        "name": task.name, "patches": patches, "seconds": seconds,
        "per_second": patches as f64 / seconds,
    }))
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("which folder for the peer's files?")?);
    let brats = |name, augment| Task {
        name,
        cases: 1,
        channels: 4,
        shape: [155, 240, 240],
        sampler: PatchSampler::Random { size: [110; 3], foreground_probability: 0.5 },
        target_size: Some([30; 3]),
        batch_size: 2,
        batches: 60,
        augment,
    };
    let lidc = |name, augment| Task {
        name,
        cases: 64,
        channels: 1,
        shape: [1, 128, 128],
        sampler: PatchSampler::Whole,
        target_size: None,
        batch_size: 12,
        batches: 3000,
        augment,
    };
    let tasks = [
        brats("brats", always(AugmentPreset::Brats)?),
        lidc("lidc", always(AugmentPreset::Lidc)?),
        lidc("lidc-as-coded", always(AugmentPreset::LidcAsCoded)?),
    ];
    let results: Result<Vec<_>, _> = tasks.into_iter().map(|task| measure(task, &folder)).collect();
    println!("{}", serde_json::json!({ "workers": WORKERS, "tasks": results? }));
    Ok(())
}
