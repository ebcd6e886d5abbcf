//! Synthetic predictions to look at, with the images and raters that they are of: no network and no data is needed.
//!
//! `cargo run -p ssn-view --example make_cases -- FOLDER pictures|volume|brain` writes `FOLDER/set/index.csv` and folders
//! of predictions beside it. `pictures`: 12 pictures of 128 × 128 with a lesion about whose size, place and companion
//! the distribution is unsure, and a few of the other kinds of networks. `volume`: a small volume whose distribution covers the box of
//! a mask. `brain`: 240 × 240 × 155 voxels, four classes, four channels, and a file of 1 GB.

use std::error::Error;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use ssn_core::random::fill_normals;
use ssn_core::{LowRankNormal, Sampler, Steering};
use ssn_eval::{
    About, CaseDescription, DistributionFile, ModelId, PredictionKind, Predictions, Region, StoredPrecision,
};
use ssn_io::{Geometry, Image, Limits, Voxels, write};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// The rank of all distributions.
const RANK: usize = 10;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, what] = arguments.as_slice() else { return Err("name a folder, and what to make".into()) };
    // Predictions name their dataset from wherever they are looked at.
    std::fs::create_dir_all(Path::new(folder).join("set"))?;
    let folder = Path::new(folder).canonicalize()?;
    match what.as_str() {
        "pictures" => pictures(&folder),
        "volume" => volume(&folder, [40, 56, 48], true),
        "brain" => volume(&folder, [155, 240, 240], false),
        other => Err(format!("{other} is neither pictures, volume nor brain").into()),
    }
}

fn pictures(folder: &Path) -> Outcome {
    let size = [1, 128, 128];
    let scenes: Vec<Scene> = (0..12).map(|number| Scene::picture(size, number)).collect();
    let mut index = "id,image,seg_0,seg_1,seg_2,seg_3\n".to_owned();
    let predictions = open(folder, "predictions")?;
    for (number, scene) in scenes.iter().enumerate() {
        let id = format!("case{}", number + 1);
        let whole = scene.file(&id, Region::whole(size), None)?;
        let gray = scene.image(0, number as u64).iter().map(|x| (x * 200.0) as u8).collect();
        save(folder, &format!("{id}.png"), Voxels::U8(gray), size, scene.geometry)?;
        for (rater, labels) in raters(&whole, 4)?.into_iter().enumerate() {
            save(folder, &format!("{id}_{rater}.png"), Voxels::U8(labels), size, scene.geometry)?;
        }
        index += &format!("{id},{id}.png,{id}_0.png,{id}_1.png,{id}_2.png,{id}_3.png\n");
        let precision =
            [StoredPrecision::HalfFactor, StoredPrecision::Single, StoredPrecision::Half][number % 3];
        whole.with_precision(precision)?.write(&predictions.distribution_path(&id))?;
    }
    std::fs::write(folder.join("set/index.csv"), index)?;
    for (name, kind) in [
        ("deterministic", PredictionKind::Deterministic),
        ("sampled", PredictionKind::Sampled),
        ("single", PredictionKind::Stochastic),
    ] {
        let predictions = open(folder, name)?;
        for (number, scene) in scenes.iter().enumerate().take(2) {
            let id = format!("case{}", number + 1);
            scene.other_kind(&id, kind)?.write(&predictions.distribution_path(&id))?;
        }
    }
    Ok(())
}

fn volume(folder: &Path, size: [usize; 3], boxed: bool) -> Outcome {
    let scene = Scene::volume(size);
    let (region, mask) = match boxed {
        false => (Region::whole(size), None),
        true => {
            let region = Region { start: [3, 5, 4], size: size.map(|n| n - 9) };
            let inside = |x: usize| u8::from(scene.depth(region.voxel(x), &scene.bodies[0]) > 0.0);
            (region, Some((0..region.voxels()).map(inside).collect()))
        }
    };
    let file = scene.file("brain1", region, mask)?.with_precision(StoredPrecision::HalfFactor)?;
    for (channel, name) in ["t1", "t1ce", "t2", "flair"].iter().enumerate() {
        let values = scene.image(channel, 77).iter().map(|x| (x * 1000.0) as i16).collect();
        save(folder, &format!("{name}.nii.gz"), Voxels::I16(values), size, scene.geometry)?;
    }
    let labels = raters(&file, 1)?.remove(0);
    save(folder, "seg.nii.gz", Voxels::U8(labels), size, scene.geometry)?;
    let row = "id,t1,t1ce,t2,flair,seg\nbrain1,t1.nii.gz,t1ce.nii.gz,t2.nii.gz,flair.nii.gz,seg.nii.gz\n";
    std::fs::write(folder.join("set/index.csv"), row)?;
    Ok(file.write(&open(folder, "predictions")?.distribution_path("brain1"))?)
}

fn open(folder: &Path, name: &str) -> Outcome<Predictions> {
    let dataset = folder.join("set/index.csv").to_string_lossy().into_owned();
    Ok(Predictions::create(
        &folder.join(name),
        About {
            model: model(),
            seed: 0,
            dataset,
            split: "all".to_owned(),
            images: None,
            labels: None,
            labels_only: false,
        },
    )?)
}

fn model() -> ModelId {
    ModelId { sha256: "5f".repeat(32), name: "made up".to_owned() }
}

fn save(folder: &Path, name: &str, voxels: Voxels, size: [usize; 3], geometry: Geometry) -> Outcome {
    let [d, h, w] = size;
    let path: PathBuf = folder.join("set").join(name);
    Ok(write(&path, &Image::new(voxels, [1, d, h, w], geometry, &Limits::default())?)?)
}

/// What raters would have marked if the distribution were true.
fn raters(file: &DistributionFile, count: u64) -> Outcome<Vec<Vec<u8>>> {
    let smooth = Steering { diagonal_noise: false, ..Steering::default() };
    let maps = Sampler::new(file.distribution(), 999, &smooth)?.labels(0..count)?;
    Ok(maps.iter().map(|map| file.labels_on_image(map)).collect::<Result<_, _>>()?)
}

/// Bodies inside each other, in a body that is not marked.
struct Scene {
    size: [usize; 3],
    geometry: Geometry,
    /// The head, and the marked bodies from the outermost on.
    bodies: Vec<Body>,
    /// How many voxels the unsure borders have.
    width: f64,
}

struct Body {
    center: [f64; 3],
    radii: [f64; 3],
}

impl Scene {
    fn picture(size: [usize; 3], number: usize) -> Self {
        let turn = number as f64 * 2.4;
        let body = |center: [f64; 2], radius: f64| Body {
            center: [0.0, center[0], center[1]],
            radii: [1.0, radius, radius * 1.25],
        };
        let lesion =
            body([64.0 + 22.0 * turn.sin(), 64.0 + 25.0 * turn.cos()], 10.0 + 2.0 * (number % 5) as f64);
        Self { size, geometry: Geometry::default(), bodies: vec![body([64.0; 2], 50.0), lesion], width: 5.0 }
    }

    fn volume(size: [usize; 3]) -> Self {
        let unit = size.map(|n| n as f64);
        let body = |center: [f64; 3], radius: f64| Body {
            center: [0, 1, 2].map(|axis| center[axis] * unit[axis]),
            radii: unit.map(|n| n * radius),
        };
        let bodies = vec![
            body([0.5, 0.5, 0.5], 0.42),
            body([0.55, 0.42, 0.6], 0.16),
            body([0.56, 0.43, 0.61], 0.09),
            body([0.57, 0.44, 0.60], 0.05),
        ];
        let direction = [[-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]];
        let geometry = Geometry { spacing: [1.0, 1.0, 1.2], origin: [90.0, 126.0, -72.0], direction };
        Self { size, geometry, bodies, width: 0.03 * unit[2] }
    }

    /// How many voxels a place lies below the surface of a body.
    fn depth(&self, place: [usize; 3], body: &Body) -> f64 {
        let far = |axis: usize| ((place[axis] as f64 - body.center[axis]) / body.radii[axis]).powi(2);
        (1.0 - (0..3).map(far).sum::<f64>().sqrt()) * body.radii[1]
    }

    fn classes(&self) -> Vec<String> {
        let names: &[&str] = match self.bodies.len() {
            2 => &["background", "lesion"],
            _ => &["background", "necrosis", "oedema", "enhancing"],
        };
        names.iter().map(|&name| name.to_owned()).collect()
    }

    /// Mean and factor of the logits of one voxel: `[c]` and `[r][c]`.
    fn logits(&self, place: [usize; 3]) -> (Vec<f64>, Vec<Vec<f64>>) {
        let [z, y, x] = place.map(|at| at as f64);
        let depths: Vec<f64> = self.bodies[1..].iter().map(|body| self.depth(place, body)).collect();
        let edge = |depth: f64| (-(depth / (1.6 * self.width)).powi(2)).exp();
        let level = |depth: f64| (depth * 5.0 / self.width).clamp(-8.0, 8.0);
        let wave = |q: usize| {
            let (q, scale) = (q as f64, 0.4 / self.width);
            (x * scale * (0.3 * q).cos()
                + y * scale * (0.9 * q).sin()
                + 0.5 * z * scale * (q * 1.7).sin()
                + q)
                .sin()
        };
        // Which logits go up where a body grows, and which go down.
        let (mean, signs): (Vec<f64>, &[[f64; 4]]) = match depths.as_slice() {
            [lesion] => (vec![-0.5 * level(*lesion), 0.5 * level(*lesion)], &[[-1.0, 1.0, 0.0, 0.0]]),
            [whole, core, rim] => {
                let [whole, core, rim] = [*whole, *core, *rim].map(level);
                let mean = vec![-whole, core.min(-rim), whole.min(-core), core.min(rim)];
                (mean, &[[-1.0, 0.0, 1.0, 0.0], [0.0, 0.7, -1.0, 0.7], [0.0, -1.0, 0.0, 1.0]])
            }
            _ => unreachable!("scenes have one marked body or three"),
        };
        let column = |q: usize| -> Vec<f64> {
            let strength = |body: usize| match q {
                0..3 if q == body => 2.5,
                0..3 => 0.3,
                _ => 1.4 * wave(q + 3 * body),
            };
            (0..mean.len())
                .map(|class| {
                    let of =
                        |(body, depth): (usize, &f64)| edge(*depth) * strength(body) * signs[body][class];
                    depths.iter().enumerate().map(of).sum::<f64>() + 0.0005 * wave(q + class)
                })
                .collect()
        };
        let columns = (0..RANK).map(column).collect();
        (mean, columns)
    }

    fn file(&self, id: &str, region: Region, mask: Option<Vec<u8>>) -> Outcome<DistributionFile> {
        let (c, v) = (self.classes().len(), region.voxels());
        let voxels: Vec<(Vec<f32>, Vec<f32>)> = (0..v)
            .into_par_iter()
            .map(|x| {
                let (mean, columns) = self.logits(region.voxel(x));
                let single =
                    |values: Vec<f64>| values.into_iter().map(|value| value as f32).collect::<Vec<f32>>();
                (single(mean), single(columns.concat()))
            })
            .collect();
        let mean: Vec<f32> = (0..c).flat_map(|k| voxels.iter().map(move |(mean, _)| mean[k])).collect();
        let factor: Vec<f32> =
            (0..RANK * c).flat_map(|row| voxels.iter().map(move |(_, columns)| columns[row])).collect();
        let unsure = |x: usize| 1e-5 + 0.02 * voxels[x].1[0].abs();
        let diagonal: Vec<f32> = (0..c * v).map(|i| unsure(i % v)).collect();
        let distribution = LowRankNormal::new(c, v, RANK, mean, diagonal, factor)?;
        Ok(DistributionFile::new(self.about(id, PredictionKind::Stochastic, region), distribution, mask)?)
    }

    fn about(&self, id: &str, kind: PredictionKind, region: Region) -> CaseDescription {
        let (classes, size, geometry) = (self.classes(), self.size, self.geometry);
        CaseDescription {
            case: id.to_owned(),
            classes,
            kind,
            size,
            geometry,
            region,
            model: model(),
            network_grid: None,
            image: None,
            labels_only: false,
        }
    }

    /// The same scene of a network without noise, of one that draws samples itself, or with a single class.
    fn other_kind(&self, id: &str, kind: PredictionKind) -> Outcome<DistributionFile> {
        let whole = Region::whole(self.size);
        let file = self.file(id, whole, None)?;
        let (d, about) = (file.distribution(), self.about(id, kind, whole));
        let (mean, v) = (d.mean().to_f32(), d.voxels());
        Ok(match kind {
            PredictionKind::Deterministic => {
                let nothing = LowRankNormal::new(2, v, 0, mean, vec![0f32; 2 * v], vec![0f32; 0])?;
                DistributionFile::new(about, nothing, None)?
            }
            PredictionKind::Sampled => {
                let samples = Sampler::new(d, 5, &Steering::default())?.labels(0..16)?;
                let labels = samples.into_iter().flat_map(|map| map.into_labels()).collect();
                DistributionFile::sampled(about, mean, labels, None)?
            }
            PredictionKind::Stochastic => {
                let (diagonal, factor) = (d.diagonal().to_f32(), d.factor().to_f32());
                let on =
                    |rows: &[f32]| rows.chunks(2 * v).flat_map(|row| row[v..].to_vec()).collect::<Vec<f32>>();
                let single = LowRankNormal::new(1, v, RANK, on(&mean), on(&diagonal), on(&factor))?;
                DistributionFile::new(about, single, None)?
            }
        })
    }

    /// The intensities of a channel, about 0 to 1.
    fn image(&self, channel: usize, seed: u64) -> Vec<f64> {
        let contrast =
            [[0.45, -0.08, -0.1, 0.3], [0.5, -0.05, -0.2, 0.6], [0.4, 0.3, 0.1, 0.0], [0.35, 0.4, -0.1, 0.1]];
        let mut noise = vec![0f32; self.size.iter().product()];
        fill_normals(seed, channel as u32, 0, &mut noise);
        let whole = Region::whole(self.size);
        let at = |x: usize| {
            let step =
                |body: &Body| (self.depth(whole.voxel(x), body) / self.width * 2.0).clamp(-0.5, 0.5) + 0.5;
            let levels: f64 =
                self.bodies.iter().zip(contrast[channel]).map(|(body, amount)| amount * step(body)).sum();
            let texture = 0.03 * ((x % self.size[2]) as f64 * 0.2).sin();
            (levels + (texture + 0.03 * f64::from(noise[x])) * step(&self.bodies[0])).clamp(0.0, 1.2)
        };
        (0..noise.len()).into_par_iter().map(at).collect()
    }
}
