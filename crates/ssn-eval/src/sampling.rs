//! Segmentations out of distribution files, without a network.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;
pub use ssn_args::{MapFormat, SampleConfig};
use ssn_core::{Control, LabelMap, Phase, Steering};
use ssn_data::text::csv_text;
use ssn_io::{Error, ErrorKind, Limits, Result, write, write_labels};

use crate::memory::check_memory;
use crate::predictions::{
    CaseDescription, DistributionFile, Found, Output, PredictionKind, SampleSource, blocks, check_free,
    claim, file_stem, find_distribution_files, name_of, remove_own_files, summarize, unknown_name,
    write_text,
};

/// What was drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledFiles {
    /// The number of cases.
    pub cases: usize,
    /// Every class of every sample.
    pub rows: Vec<SampledClass>,
    /// The table of volumes.
    pub table: PathBuf,
}

/// Draws samples of every file and writes them.
pub fn sample(config: &SampleConfig, control: Control<'_>) -> Result<SampledFiles> {
    let cases = find_distribution_files(&config.inputs)?;
    refuse_twins(&cases)?;
    let steerings = cases.iter().map(|case| steering(config, case)).collect::<Result<Vec<_>, _>>()?;
    for case in &cases {
        case.header.check_samples(config.first + config.samples)?;
    }
    prepare_folder(config, &cases)?;
    let total = cases.len() * config.samples as usize;
    let phase = control.phase("sampling", total, "samples");
    let mut rows = vec![];
    for (case, steering) in cases.iter().zip(&steerings) {
        rows.extend(draw(config, case, steering, &phase)?);
    }
    drop(phase);
    write_table(config, &rows)?;
    Ok(SampledFiles { cases: cases.len(), rows, table: table_path(config) })
}

/// Refuses two files of one case.
fn refuse_twins(cases: &[Found]) -> Result<()> {
    let mut places = BTreeMap::new();
    for case in cases {
        if let Some(first) = places.insert(case.id(), &case.path) {
            return Err(Error::usage(format!(
                "{} and {} are both of case {:?}, so their samples would have the same names; sample them into \
                 folders of their own",
                first.display(),
                case.path.display(),
                case.id()
            )));
        }
    }
    Ok(())
}

/// Draws and writes the samples of one case, block by block, and the maps of what they say together.
fn draw(
    config: &SampleConfig,
    case: &Found,
    steering: &Steering,
    phase: &Phase<'_>,
) -> Result<Vec<SampledClass>> {
    let file = DistributionFile::read(&case.path, &Limits::default())?;
    check_maps(&file)?;
    let source = SampleSource::new(&file, config.seed, steering)?;
    let numbers = config.first..config.first + config.samples;
    let mut rows = vec![];
    for block in blocks(numbers.clone(), file.description().voxels()) {
        if phase.should_stop() {
            return Err(Error::new(ErrorKind::Stopped, format!("stopped after {} samples", phase.done()))
                .advise("run the same command to draw them again"));
        }
        let maps = source.labels(block.clone())?;
        let count = maps.len();
        rows.extend(write_samples(config, &file, block, maps)?);
        phase.advance(count, case.id());
    }
    if config.probabilities || config.entropy {
        write_summary(config, &file, steering)?;
    }
    Ok(rows)
}

/// Refuses a case whose label maps of the whole image memory does not hold: one or a few at once, each as labels, as an
/// image, and as the bytes of its file.
fn check_maps(file: &DistributionFile) -> Result<()> {
    let about = file.description();
    let what = format!("a sample of case {} with an image of size {:?}", about.case, about.size);
    check_memory(&what, (about.voxels() as u64).saturating_mul(4))
}

/// Writes the mean probabilities of the samples, and their entropy.
fn write_summary(config: &SampleConfig, file: &DistributionFile, steering: &Steering) -> Result<()> {
    let case = &file.description().case;
    let numbers = config.first..config.first + config.samples;
    let summary = summarize(file, config.seed, steering, numbers, &[])?;
    if config.probabilities {
        let image = file.probabilities_as_image(&summary.mean_probabilities()?)?;
        write(&map_path(config, case, Output::Probabilities), &image)?;
    }
    if config.entropy {
        let image = file.rows_as_image(&summary.marginal_entropy()?, |_| 0.0)?;
        write(&map_path(config, case, Output::Entropy), &image)?;
    }
    Ok(())
}

/// One class of one sample.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SampledClass {
    /// The case.
    pub id: String,
    /// The number of the sample.
    pub sample: u64,
    /// Its file.
    pub file: PathBuf,
    /// The class.
    pub class: String,
    /// Its voxels.
    pub voxels: usize,
    /// Its volume, where the image says how large a voxel is.
    pub milliliters: Option<f64>,
}

/// Makes the folder, once it is sure that every file can be written and none is lost.
fn prepare_folder(config: &SampleConfig, cases: &[Found]) -> Result<()> {
    check_format(config, cases)?;
    let mut paths = vec![table_path(config)];
    for case in cases {
        let samples = config.first..config.first + config.samples;
        paths.extend(samples.map(|number| sample_path(config, &case.header.description, number)));
        for (asked, map) in [(config.probabilities, Output::Probabilities), (config.entropy, Output::Entropy)]
        {
            paths.extend(asked.then(|| map_path(config, case.id(), map)));
        }
    }
    let names: Vec<String> = paths.iter().map(|path| name_of(path)).collect();
    claim(&config.out, &names)?;
    let names: BTreeSet<String> = names.into_iter().collect();
    check_free(&table_path(config), config.overwrite)?;
    if !table_path(config).exists() {
        // The table comes last: samples without one were left by a command that did not come to its end.
        remove_own_files(&config.out, |name| name.contains("_sample_") && !names.contains(name))?;
    }
    Ok(())
}

fn table_path(config: &SampleConfig) -> PathBuf {
    config.out.join("samples.csv")
}

fn sample_path(config: &SampleConfig, about: &CaseDescription, number: u64) -> PathBuf {
    let usual = if about.is_picture() { MapFormat::Png } else { MapFormat::NiiGz };
    let ending = config.format.unwrap_or(usual).ending();
    config.out.join(format!("{}_sample_{number}{ending}", file_stem(&about.case)))
}

fn map_path(config: &SampleConfig, id: &str, output: Output) -> PathBuf {
    let ending = config.format.unwrap_or(MapFormat::NiiGz).ending();
    config.out.join(format!("{}_{}{ending}", file_stem(id), output.name()))
}

/// Writes some samples of a case as label maps of the whole image, and gives their volumes.
fn write_samples(
    config: &SampleConfig,
    file: &DistributionFile,
    numbers: Range<u64>,
    maps: Vec<LabelMap>,
) -> Result<Vec<SampledClass>> {
    let segments = file.segments();
    let rows: Result<Vec<_>> = maps
        .into_par_iter()
        .zip(numbers.collect::<Vec<_>>())
        .map(|(map, number)| {
            let labels = file.labels_on_image(&map)?;
            let path = sample_path(config, file.description(), number);
            let rows = volumes(file, number, &path, &labels);
            write_labels(&path, &file.as_image(labels)?, &segments)?;
            Ok(rows)
        })
        .collect();
    Ok(rows?.concat())
}

fn write_table(config: &SampleConfig, rows: &[SampledClass]) -> Result<()> {
    let heading = ["id", "sample", "file", "class", "voxels", "milliliters"].map(str::to_owned);
    let cells = |row: &SampledClass| {
        vec![
            row.id.clone(),
            row.sample.to_string(),
            name_of(&row.file),
            row.class.clone(),
            row.voxels.to_string(),
            row.milliliters.map(|volume| volume.to_string()).unwrap_or_default(),
        ]
    };
    let table: Vec<_> = std::iter::once(heading.to_vec()).chain(rows.iter().map(cells)).collect();
    write_text(&table_path(config), &csv_text(&table))
}

/// Refuses what a format of label maps cannot hold before anything is drawn.
fn check_format(config: &SampleConfig, cases: &[Found]) -> Result<()> {
    let Some(format @ (MapFormat::Png | MapFormat::SegNrrd)) = config.format else { return Ok(()) };
    if config.probabilities || config.entropy {
        return Err(Error::usage(format!(
            "--format {} holds labels, but --probabilities and --entropy are numbers; choose nii.gz, nrrd or mha",
            &format.ending()[1..]
        )));
    }
    if format == MapFormat::SegNrrd {
        return Ok(());
    }
    let Some(case) = cases.iter().find(|case| case.header.description.size[0] > 1) else { return Ok(()) };
    Err(Error::usage(format!(
        "--format png is for pictures, but {} is of a volume of {} slices; choose nii.gz, nrrd or mha",
        case.path.display(),
        case.header.description.size[0]
    )))
}

/// The volume of every class of a sample.
fn volumes(file: &DistributionFile, sample: u64, path: &Path, labels: &[u8]) -> Vec<SampledClass> {
    let description = file.description();
    let mut counts = vec![0usize; description.classes.len()];
    labels.iter().for_each(|&label| counts[usize::from(label)] += 1);
    let milliliters = description.has_spacing().then(|| description.milliliters());
    let row = |(class, voxels): (&String, usize)| SampledClass {
        id: description.case.clone(),
        sample,
        file: path.to_owned(),
        class: class.clone(),
        voxels,
        milliliters: milliliters.map(|of_voxel| voxels as f64 * of_voxel),
    };
    description.classes.iter().zip(counts).map(row).collect()
}

/// The steering of one case.
fn steering(config: &SampleConfig, case: &Found) -> Result<Steering> {
    let path = case.path.display();
    let unsteerable = match case.header.description.kind {
        PredictionKind::Stochastic => None,
        PredictionKind::Deterministic => {
            Some("a deterministic network, which has no noise that could be steered")
        }
        PredictionKind::Sampled => Some("a network that draws samples itself, which cannot be steered"),
    };
    if let Some(network) = unsteerable.filter(|_| config.steers()) {
        return Err(Error::usage(format!(
            "{path} is of {network}; leave out --temperature, --class-scale, --mode-weight and --no-diagonal-noise"
        )));
    }
    let (classes, rank) = (case.header.classes, case.header.rank);
    // A single class that is off or on has one row of logits, that of `on`.
    let names = &case.header.description.classes;
    let names = &names[names.len() - classes..];
    let mut class_scales = vec![1.0; classes];
    for (name, scale) in &config.class_scales {
        let Some(class) = names.iter().position(|known| known == name) else {
            return Err(Error::usage(format!("--class-scale: {}", unknown_name(name, names, &case.path))));
        };
        class_scales[class] = *scale;
    }
    let mut mode_weights = vec![1.0; rank];
    for &(column, weight) in &config.mode_weights {
        let Some(place) = mode_weights.get_mut(column) else {
            let known = match rank {
                0 => "has none".to_owned(),
                _ => format!("has 0 to {}", rank - 1),
            };
            return Err(Error::usage(format!(
                "--mode-weight: there is no column {column}: the factor in {path} {known}"
            )));
        };
        *place = weight;
    }
    let temperature = config.temperature.unwrap_or(1.0);
    Ok(Steering { temperature, class_scales, mode_weights, diagonal_noise: config.diagonal_noise })
}
