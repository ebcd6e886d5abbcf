//! Small predictions for tests, and the program run on them.

use std::path::Path;
use std::process::{Command, Output};

use ssn_core::random::philox4x32;
use ssn_eval::{CaseDescription, DistributionFile, ModelId, PredictionKind, Region};
use ssn_io::{Geometry, Image, Limits, Voxels, write};
use ssn_testing::noise;
use tempfile::TempDir;

/// Runs `ssn` in a folder.
pub fn ssn(folder: &TempDir, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ssn"))
        .args(arguments)
        .current_dir(folder.path())
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

/// `ssn` with so many kibibytes of memory.
pub fn limited(kibibytes: u64) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {kibibytes} && exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_ssn")]);
    command.env("COLUMNS", "100").env("NO_COLOR", "1");
    command
}

/// Exit code and both streams.
pub fn told(output: &Output) -> String {
    let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).unwrap();
    format!("exit {}\n{}{}", output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// Writes a picture of 8 × 8.
pub fn picture(path: &Path, value: impl Fn(usize) -> u8) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let voxels = Voxels::U8((0..64).map(value).collect());
    write(path, &Image::new(voxels, [1, 1, 8, 8], Geometry::default(), &Limits::default()).unwrap()).unwrap();
}

/// The model of all predictions here.
pub fn model() -> ModelId {
    ModelId { sha256: "5f".to_owned(), name: "small".to_owned() }
}

/// The samples in a file whose network draws them itself.
pub const STORED: usize = 8;

/// A distribution over a box of an image, of noise that a number makes.
pub struct Prediction {
    pub case: &'static str,
    pub classes: &'static [&'static str],
    pub kind: PredictionKind,
    pub size: [usize; 3],
    pub region: Region,
    pub geometry: Geometry,
    pub number: u64,
}

impl Prediction {
    /// Two classes on a picture of 8 × 8.
    pub fn picture(case: &'static str, number: u64) -> Self {
        let size = [1, 8, 8];
        Self {
            case,
            classes: &["background", "lesion"],
            kind: PredictionKind::Stochastic,
            size,
            region: Region::whole(size),
            geometry: Geometry::default(),
            number,
        }
    }

    pub fn file(&self) -> DistributionFile {
        let (c, v) = (self.classes.len(), self.region.voxels());
        let rank = if self.kind == PredictionKind::Stochastic { 2 } else { 0 };
        let scale = if self.kind == PredictionKind::Stochastic { 0.1 } else { 0.0 };
        let d = noise::distribution(self.number, [c, v, rank], |x| scale * x * x);
        let about = CaseDescription {
            case: self.case.to_owned(),
            classes: self.classes.iter().map(|&name| name.to_owned()).collect(),
            kind: self.kind,
            size: self.size,
            geometry: self.geometry,
            region: self.region,
            model: model(),
            network_grid: None,
            image: None,
            labels_only: false,
        };
        if self.kind == PredictionKind::Sampled {
            let mean = d.mean().to_f32();
            return DistributionFile::sampled(about, mean, self.stored(), None).unwrap();
        }
        DistributionFile::new(about, d, None).unwrap()
    }

    /// The labels `[m, v]` that a network that draws samples itself would have drawn.
    pub fn stored(&self) -> Vec<u8> {
        let label = |i: usize| {
            philox4x32([i as u32, 0, 0, 0], [self.number as u32, 3])[0] as usize % self.classes.len()
        };
        (0..STORED * self.region.voxels()).map(|i| label(i) as u8).collect()
    }

    pub fn write(&self, path: &Path) {
        self.file().write(path).unwrap();
    }
}
