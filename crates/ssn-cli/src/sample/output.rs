//! The files that samples become.

use std::ops::Range;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;
use ssn_core::LabelMap;
use ssn_data::text::csv_text;
use ssn_eval::{DistributionFile, Found, Output, file_stem};
use ssn_io::{Image, write, write_atomically};

use crate::args::{MapFormat, SampleArgs};
use crate::datasets::check_free;
use crate::exit::{Exit, Failure};
use crate::predictions::failure;

/// One class of one sample.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Row {
    id: String,
    sample: u64,
    file: PathBuf,
    class: String,
    voxels: usize,
    milliliters: f64,
}

/// Where everything goes.
pub(super) struct Outputs {
    folder: PathBuf,
    ending: &'static str,
}

impl Outputs {
    /// Makes the folder, once it is sure that every file can be written and none is lost.
    pub(super) fn new(args: &SampleArgs, cases: &[Found]) -> Result<Self, Failure> {
        let outputs = Self { folder: args.out.clone(), ending: args.format.ending() };
        check_format(args, cases)?;
        check_free(&outputs.table(), args.overwrite)?;
        for case in cases {
            let samples = args.first..args.first + args.samples;
            for path in samples.map(|number| outputs.sample(case.id(), number)) {
                check_free(&path, args.overwrite)?;
            }
            for (asked, output) in
                [(args.probabilities, Output::Probabilities), (args.entropy, Output::Entropy)]
            {
                if asked {
                    check_free(&outputs.map(case.id(), output), args.overwrite)?;
                }
            }
        }
        std::fs::create_dir_all(&args.out).map_err(|error| {
            Failure::new(Exit::Io, format!("cannot create the folder {}: {error}", args.out.display()))
        })?;
        Ok(outputs)
    }

    /// The table of volumes.
    pub(super) fn table(&self) -> PathBuf {
        self.folder.join("samples.csv")
    }

    fn sample(&self, id: &str, number: u64) -> PathBuf {
        self.folder.join(format!("{}_sample_{number}{}", file_stem(id), self.ending))
    }

    fn map(&self, id: &str, output: Output) -> PathBuf {
        self.folder.join(format!("{}_{}{}", file_stem(id), output.name(), self.ending))
    }

    /// Writes some samples of a case as label maps of the whole image, and gives their volumes.
    pub(super) fn write_samples(
        &self,
        file: &DistributionFile,
        numbers: Range<u64>,
        maps: Vec<LabelMap>,
    ) -> Result<Vec<Row>, Failure> {
        let rows: Result<Vec<_>, Failure> = maps
            .into_par_iter()
            .zip(numbers.collect::<Vec<_>>())
            .map(|(map, number)| {
                let labels = file.labels_on_image(&map).map_err(failure)?;
                let path = self.sample(&file.description().case, number);
                let rows = volumes(file, number, &path, &labels);
                write_image(&path, &file.as_image(labels).map_err(failure)?)?;
                Ok(rows)
            })
            .collect();
        Ok(rows?.concat())
    }

    /// Writes mean probabilities `[l, v]` of a region as an image with a channel per label; outside, all is background.
    pub(super) fn write_probabilities(&self, file: &DistributionFile, rows: &[f32]) -> Result<(), Failure> {
        let image = file.probabilities_as_image(rows).map_err(failure)?;
        write_image(&self.map(&file.description().case, Output::Probabilities), &image)
    }

    /// Writes the entropy `[v]` of a region; outside, nothing is uncertain.
    pub(super) fn write_entropy(&self, file: &DistributionFile, entropy: &[f32]) -> Result<(), Failure> {
        let image = file.rows_as_image(entropy, |_| 0.0).map_err(failure)?;
        write_image(&self.map(&file.description().case, Output::Entropy), &image)
    }

    /// Writes the table of volumes.
    pub(super) fn write_table(&self, rows: &[Row]) -> Result<(), Failure> {
        let heading = ["id", "sample", "file", "class", "voxels", "milliliters"].map(str::to_owned);
        let cells = |row: &Row| {
            vec![
                row.id.clone(),
                row.sample.to_string(),
                row.file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                row.class.clone(),
                row.voxels.to_string(),
                row.milliliters.to_string(),
            ]
        };
        let table: Vec<_> = std::iter::once(heading.to_vec()).chain(rows.iter().map(cells)).collect();
        write_atomically(&self.table(), |out| out.write_all(csv_text(&table).as_bytes()))
            .map_err(|error| Failure::new(Exit::Io, error))
    }
}

/// Refuses what a PNG cannot hold before anything is drawn.
fn check_format(args: &SampleArgs, cases: &[Found]) -> Result<(), Failure> {
    if args.format != MapFormat::Png {
        return Ok(());
    }
    if args.probabilities || args.entropy {
        let message = "--format png holds labels, but --probabilities and --entropy are numbers; choose nii.gz, \
                       nrrd or mha";
        return Err(Failure::new(Exit::Usage, message));
    }
    match cases.iter().find(|case| case.header.description.size[0] > 1) {
        None => Ok(()),
        Some(case) => {
            let message = format!(
                "--format png is for pictures, but {} is of a volume of {} slices; choose nii.gz, nrrd or mha",
                case.path.display(),
                case.header.description.size[0]
            );
            Err(Failure::new(Exit::Usage, message))
        }
    }
}

/// The volume of every class of a sample.
fn volumes(file: &DistributionFile, sample: u64, path: &Path, labels: &[u8]) -> Vec<Row> {
    let description = file.description();
    let mut counts = vec![0usize; description.classes.len()];
    labels.iter().for_each(|&label| counts[usize::from(label)] += 1);
    // A voxel in cubic millimeters, a thousand of which make a milliliter.
    let milliliters = description.geometry.spacing.iter().product::<f64>() / 1000.0;
    let row = |(class, voxels): (&String, usize)| Row {
        id: description.case.clone(),
        sample,
        file: path.to_owned(),
        class: class.clone(),
        voxels,
        milliliters: voxels as f64 * milliliters,
    };
    description.classes.iter().zip(counts).map(row).collect()
}

fn write_image(path: &Path, image: &Image) -> Result<(), Failure> {
    write(path, image).map_err(Failure::of_file)
}
