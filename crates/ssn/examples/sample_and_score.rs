//! A low-rank normal distribution over the logits of an image: sampled, steered, and scored against raters.
//!
//! Run with `cargo run --release --package ssn --example sample_and_score`. No network is needed: any program that gives a
//! mean, a diagonal and a factor can use this.

use ssn::core::metrics::ged;
use ssn::core::{BitPlanes, LabelMap, LowRankNormal, Sampler, Steering};

/// An image of 16 × 16 pixels with a lesion that is there or not, in two classes.
const SIDE: usize = 16;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let voxels = SIDE * SIDE;
    let lesion: Vec<bool> = (0..voxels).map(|i| inside(i / SIDE, i % SIDE)).collect();

    // Logits of the lesion are undecided, and those of the rest are clearly background.
    let of_class_1 = |at: f32, elsewhere: f32| lesion.iter().map(move |&l| if l { at } else { elsewhere });
    let mean: Vec<f32> = std::iter::repeat_n(0.0, voxels).chain(of_class_1(0.0, -6.0)).collect();
    // One column of the factor moves the whole lesion at once; the diagonal adds a little noise of each pixel.
    let factor: Vec<f32> = std::iter::repeat_n(0.0, voxels).chain(of_class_1(4.0, 0.0)).collect();
    let diagonal = vec![0.01; 2 * voxels];
    let distribution = LowRankNormal::new(2, voxels, 1, mean, diagonal, factor)?;

    // Sample i is a function of the seed and i: any of them can be drawn again.
    let samples = Sampler::new(&distribution, 42, &Steering::default())?.labels(0..100)?;
    show("first sample", &samples[0]);
    let cool = Steering { temperature: 0.1, ..Steering::default() };
    show("the same at a tenth of the temperature", &Sampler::new(&distribution, 42, &cool)?.labels(0..1)?[0]);

    // Two raters: one sees the lesion, one does not. GED² is 0 where samples and raters have the same distribution.
    let sees = LabelMap::new(lesion.iter().map(|&l| u8::from(l)).collect(), 2)?;
    let sees_nothing = LabelMap::new(vec![0; voxels], 2)?;
    let raters = [sees, sees_nothing].each_ref().map(BitPlanes::new);
    let planes: Vec<BitPlanes> = samples.iter().map(BitPlanes::new).collect();
    let coherent = ged(&planes, &raters)?;

    // Without the factor every pixel decides by itself, and no sample looks like a rater.
    let grainy = Steering { mode_weights: vec![0.0], temperature: 40.0, ..Steering::default() };
    let noise = Sampler::new(&distribution, 42, &grainy)?.labels(0..100)?;
    let planes: Vec<BitPlanes> = noise.iter().map(BitPlanes::new).collect();
    let independent = ged(&planes, &raters)?;
    println!(
        "GED² of coherent samples {:.3}, of independent pixels {:.3}",
        coherent.squared, independent.squared
    );
    assert!(coherent.squared < 0.05 && independent.squared > 0.3);
    Ok(())
}

fn inside(y: usize, x: usize) -> bool {
    let center = (SIDE / 2) as f32 - 0.5;
    (y as f32 - center).hypot(x as f32 - center) < 4.5
}

fn show(title: &str, map: &LabelMap) {
    println!("{title}:");
    for row in map.labels().chunks(SIDE) {
        println!("  {}", row.iter().map(|&label| if label > 0 { '#' } else { '.' }).collect::<String>());
    }
}
