//! Predictions: the distribution of each case of a dataset, or of images, as files.

use std::cell::{Cell, OnceCell};
use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde::Serialize;
use ssn_args::{PredictConfig, SplitChoice};
use ssn_core::{Phase, Steering};
use ssn_data::ShardProgress;
use ssn_data::parallel::{self, available_bytes};
use ssn_data::{
    Case, CaseEntry, Cases, DataConfig, Dataset, LabelCoding, LabelPolicy, LabelReading, Severity, Shard,
    Split,
};
use ssn_eval::{
    About, DistributionFile, ImagePaths, Output, Predictions, StoredImage, is_config, predict_labels,
    summarize,
};
use ssn_io::Image;
use ssn_io::hex::hex;
use ssn_train::run::{CONFIG, ModelMetadata, TrainingCases};

use crate::error::{Error, ErrorKind, Result};
use crate::pipeline;
use crate::predictor::{Predictor, PredictorOptions};
use ssn_core::Control;

/// What was predicted.
#[derive(Debug)]
pub struct Predicted {
    /// The name of the model.
    pub model: String,
    /// Its numbers that were learned.
    pub parameters: i64,
    /// Cases that were predicted now.
    pub made: usize,
    /// Cases that were there.
    pub kept: usize,
    /// The index of the folder, unless it waits for other shards.
    pub index: Result<PathBuf, ShardProgress>,
    /// How long it took.
    pub seconds: f64,
    /// Where the time went.
    pub phases: Phases,
}

/// Where the time went, in seconds. The next case is read and the last one written while the network computes.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Phases {
    /// Reading cases.
    pub read: f64,
    /// The network, from the image to the last tile.
    pub network: f64,
    /// The part of that in which a GPU worked.
    pub gpu: Option<f64>,
    /// Preparing images for the network, and its results for files.
    pub prepare: f64,
    /// Writing files.
    pub write: f64,
}

/// Predicts the cases of a shard that are not there yet, and writes the index once all cases are there.
pub fn predict(config: &PredictConfig, control: Control<'_>) -> Result<Predicted> {
    let start = Instant::now();
    let shard = config.shard.unwrap_or(Shard::WHOLE);
    let predictor = Predictor::open(&config.model, &PredictorOptions::of(config), control)?;
    let (members, model) = (predictor.members(), predictor.id().clone());
    let trained = &members[0];
    // The network itself stays on this thread.
    let known = Known { metadata: &trained.metadata, data: trained.data.as_ref() };
    let training: Vec<(String, TrainingCases)> =
        members.iter().map(|model| (model.id().name, model.training.clone())).collect();
    let chosen = std::thread::scope(|scope| {
        let choosing = std::thread::Builder::new().spawn_scoped(scope, || choose(config, known, control));
        let Ok(choosing) = choosing else { return choose(config, known, control) };
        trained.warm_up();
        choosing.join().unwrap_or_else(|panic| resume_unwind(panic))
    });
    let Chosen { dataset, cases, split, named, images, mut first } = chosen?;
    let trained_on = trained_on(&dataset, &cases, &training, config.split, control)?;
    let labels = known.labels();
    let dataset_name = named.display().to_string();
    let about = About {
        model: model.clone(),
        seed: 0,
        dataset: dataset_name,
        split,
        images,
        labels,
        labels_only: false,
    };
    check_names(config, &dataset, &cases)?;
    let folder = Predictions::create(&config.out, about)?;

    let own = shard.own(cases.len());
    let id = |number: usize| &dataset.entries[cases[number]].id;
    let outputs = outputs(config);
    let new = own
        .iter()
        .map(|&number| id(number))
        .filter(|id| config.overwrite || !is_finished(&folder, id, config));
    folder.claim(new.map(String::as_str), &outputs)?;
    let phase = control.phase("predicting", own.len(), "cases");
    let reader = CaseReader {
        config,
        dataset: &dataset,
        folder: &folder,
        outputs: &outputs,
        trained_on: &trained_on,
        phase: &phase,
        done: AtomicUsize::new(0),
    };
    let (done, (mut made, mut phases)) = (&reader.done, (0, Phases::default()));
    let (mut read, mut written) = (0.0, 0.0);
    let items = own.iter().map(|&number| {
        let begin = Instant::now();
        let loaded = reader.load(cases[number], first.take());
        read += begin.elapsed().as_secs_f64();
        loaded
    });
    // What another case beside the one that is written may need.
    let needed = Cell::new(0);
    let compute = |Loaded { case, image, path }| {
        phase.current(&case.id);
        let (id, begin) = (case.id.clone(), Instant::now());
        let (file, timing) = predictor.predict_case(case, control).map_err(|error| {
            if error.kind == ErrorKind::Stopped { error } else { error.within(format!("case {id}")) }
        })?;
        phases.network += timing.network;
        phases.gpu = timing.gpu.map(|gpu| gpu + phases.gpu.unwrap_or(0.0)).or(phases.gpu);
        phases.prepare += begin.elapsed().as_secs_f64() - timing.network;
        made += 1;
        let d = file.distribution();
        let numbers = d.mean().len() + d.diagonal().len() + d.factor().len();
        let samples = file.samples().map_or(0, <[u8]>::len);
        needed.set(members.len() * (BYTES_PER_NUMBER * numbers + samples));
        Ok((file.of_image(image), path))
    };
    let write = |(file, path): (DistributionFile, PathBuf)| {
        let begin = Instant::now();
        write(&folder, file, &path, config)?;
        written += begin.elapsed().as_secs_f64();
        phase.reached(done.fetch_add(1, Ordering::Relaxed) + 1);
        Ok(())
    };
    let has_room = || available_bytes() >= needed.get();
    let computed = pipeline::run(items, compute, write, has_room);
    let done = done.load(Ordering::Relaxed);
    phases = Phases { read, write: written, ..phases };
    drop(phase);
    match computed {
        Err(error) if error.kind == ErrorKind::Stopped => {
            if shard.is_whole() {
                folder.write_index()?;
            }
            let message = format!("stopped after {done} of {} cases; the same command goes on", own.len());
            return Err(Error::new(ErrorKind::Stopped, message));
        }
        computed => computed?,
    }
    let index = match shard.waiting(cases.len(), |number| is_finished(&folder, id(number), config)) {
        None => Ok(folder.write_index()?),
        Some(waiting) => Err(waiting),
    };
    let (kept, seconds) = (own.len() - made, start.elapsed().as_secs_f64());
    let parameters = trained.model.parameters().count();
    Ok(Predicted { model: model.name, parameters, made, kept, index, seconds, phases })
}

/// Memory for a number of a distribution, from the network's output to the file: in half precision, in single precision twice,
/// and some more.
const BYTES_PER_NUMBER: usize = 12;

/// Reads the cases that are to be predicted.
struct CaseReader<'a> {
    config: &'a PredictConfig,
    dataset: &'a Dataset,
    folder: &'a Predictions,
    outputs: &'a [Output],
    /// The places of cases that the model trained on.
    trained_on: &'a BTreeSet<usize>,
    phase: &'a Phase<'a>,
    /// Cases whose files are there.
    done: AtomicUsize,
}

/// A case that was read.
struct Loaded {
    case: Case,
    /// What the file of its distribution says of its image.
    image: Option<StoredImage>,
    /// Where its label map goes.
    path: PathBuf,
}

impl CaseReader<'_> {
    /// Loads a case, unless its files are there already; `read` is the first case of the dataset, if that was read before.
    fn load(&self, index: usize, read: Option<Case>) -> Result<Option<Loaded>> {
        let Self { config, dataset, folder, phase, .. } = *self;
        let id = &dataset.entries[index].id;
        let image_sha256 = dataset.image_sha256(index).ok();
        let is_there = is_finished(folder, id, config);
        let is_other = is_there && folder.is_of_other_image(id, image_sha256.as_deref());
        if is_there && !is_other && !config.overwrite {
            phase.reached(self.done.fetch_add(1, Ordering::Relaxed) + 1);
            return Ok(None);
        }
        if is_other && !config.overwrite {
            phase.message(&format!("case {id} is predicted again: its image is another than before"));
        }
        if is_other {
            folder.claim(std::iter::once(id.as_str()), self.outputs)?;
        }
        phase.current(&format!("reading {id}"));
        let case = match read.filter(|_| index == 0) {
            Some(case) => case,
            None => dataset.load_raw(index)?,
        };
        let entry = &dataset.entries[index];
        let path = folder.prediction_path(id, case.shape[0] == 1 && !entry.has_geometry());
        let image = image_sha256.map(|sha256| StoredImage {
            sha256,
            has_spacing: entry.has_geometry(),
            trained_on: self.trained_on.contains(&index),
            label_values: stored_values(dataset),
            nifti_header: case.header.as_deref().map(hex),
        });
        Ok(Some(Loaded { case, image, path }))
    }
}

/// Refuses to replace the prediction of one image by that of another with the same name: images that join a folder must have
/// names of their own. An image that changed in its place is predicted again.
fn check_names(config: &PredictConfig, dataset: &Dataset, cases: &[usize]) -> Result<()> {
    let folder = Predictions::open(&config.out).ok().filter(|_| !config.overwrite);
    let Some((folder, images)) =
        folder.and_then(|folder| Some((folder.clone(), folder.about().images.clone()?)))
    else {
        return Ok(());
    };
    let is_new = |path: &PathBuf| !images.paths.iter().any(|known| absolute(path).starts_with(known));
    for &place in cases {
        let CaseEntry { id, files, .. } = &dataset.entries[place];
        if files.images.iter().flatten().next().is_some_and(is_new)
            && folder.distribution_path(id).is_file()
            && folder.is_of_other_image(id, dataset.image_sha256(place).ok().as_deref())
        {
            return Err(Error::usage(format!(
                "{} has the prediction of another image that is also called {id}; choose another folder with --out, or \
                     replace it with --overwrite",
                folder.root().display()
            )));
        }
    }
    Ok(())
}

/// Returns the places of those cases that a member of the model trained on, unless they are asked for by `part`: an
/// evaluation leaves them out.
///
/// # Errors
/// An ensemble with such a case: members that trained on it would make it look better than new images do.
fn trained_on(
    dataset: &Dataset,
    cases: &[usize],
    members: &[(String, TrainingCases)],
    part: Option<SplitChoice>,
    control: Control<'_>,
) -> Result<BTreeSet<usize>> {
    if matches!(part, Some(SplitChoice::All | SplitChoice::Train)) {
        return Ok(BTreeSet::new());
    }
    let member = |place: usize| {
        let image = OnceCell::new();
        let sha256 = || image.get_or_init(|| dataset.image_sha256(place).ok()).clone();
        let id = &dataset.entries[place].id;
        members.iter().position(|(_, training)| training.contain(&dataset.root, id, sha256))
    };
    let found = parallel::map(cases.len(), &parallel::unwatched, |number, _| member(cases[number]));
    let found = cases.iter().zip(found).filter_map(|(&place, found)| Some((place, found.ok()??)));
    let found: Vec<(usize, usize)> = found.collect();
    let Some(&(_, first)) = found.first() else { return Ok(BTreeSet::new()) };
    let (name, count) = (&members[first].0, format!("{} of {} cases", found.len(), cases.len()));
    if members.len() > 1 {
        return Err(Error::usage(format!(
            "members of the ensemble trained on {count}, such as {name} on {}: their scores would say nothing about \
                 new images. Predict cases that no member trained on; score each fold of a cross-validation with its own \
                 run; or predict these all the same with --split all",
            dataset.entries[found[0].0].id
        )));
    }
    control.warn(&format!(
        "{name} trained on {count}; `ssn evaluate` leaves them out, unless they are predicted with --split all"
    ));
    Ok(found.into_iter().map(|(place, _)| place).collect())
}

/// The files beside distributions that are asked for.
fn outputs(config: &PredictConfig) -> Vec<Output> {
    let probabilities = [Output::Probabilities, Output::Entropy];
    let parts = [Output::Mean, Output::Diagonal, Output::Factor];
    let mut all = vec![Output::Prediction];
    all.extend(probabilities.into_iter().filter(|_| config.probabilities));
    all.extend(parts.into_iter().filter(|_| config.nifti));
    all
}

/// Whether all files that are asked for are there. A network may have no diagonal and no factor.
fn is_finished(folder: &Predictions, id: &str, config: &PredictConfig) -> bool {
    let always = [Output::Prediction, Output::Probabilities, Output::Mean];
    let mut asked = outputs(config).into_iter().filter(|output| always.contains(output));
    folder.is_finished(id, config.samples as u64)
        && asked.all(|output| folder.find_output(id, output).is_some())
}

/// What is known of a network beside its parameters.
#[derive(Clone, Copy)]
struct Known<'a> {
    metadata: &'a ModelMetadata,
    data: Option<&'a DataConfig>,
}

impl Known<'_> {
    /// Returns how it read labels in training.
    fn labels(self) -> Option<LabelReading> {
        self.data.map(DataConfig::label_reading).or_else(|| self.metadata.labels.clone())
    }
}

/// The cases to predict.
struct Chosen {
    /// Their dataset.
    dataset: Dataset,
    /// Their places in it.
    cases: Vec<usize>,
    /// The part of the dataset that they are.
    split: String,
    /// The config or dataset that an evaluation reads.
    named: PathBuf,
    /// Images that were named by themselves.
    images: Option<ImagePaths>,
    /// The first case of the dataset, if it was read.
    first: Option<Case>,
}

/// Finds the cases that the arguments name.
fn choose(config: &PredictConfig, trained: Known<'_>, control: Control<'_>) -> Result<Chosen> {
    let chosen = match (config.data.as_slice(), trained.data) {
        ([], None) => {
            let message = "a bundle has no dataset of its own; name a dataset, a config or images";
            return Err(Error::usage(message));
        }
        ([], Some(data)) => divided(data, &config.model.join(CONFIG), config.split, trained, control)?,
        ([path], _) if is_config(path) => {
            divided(&DataConfig::read(path)?, path, config.split, trained, control)?
        }
        (paths, _) => given(paths, config.split, trained, control)?,
    };
    check_channels(&chosen.dataset, trained, control)?;
    match chosen.cases.is_empty() {
        false => Ok(chosen),
        true => Err(Error::mismatch(format!(
            "{} has no case in the part {}; choose another with --split validation, train or all",
            chosen.dataset.root.display(),
            chosen.split
        ))),
    }
}

/// A part of the dataset of a config: test if nothing else is asked for, or validation where there is no test.
fn divided(
    data: &DataConfig,
    file: &Path,
    part: Option<SplitChoice>,
    trained: Known<'_>,
    control: Control<'_>,
) -> Result<Chosen> {
    let dataset = data.open()?;
    let parts = data.split.parts(&dataset)?;
    let mut dataset = dataset.with_labels(LabelPolicy::Ignored);
    if data.coding().is_none() && dataset.reading.coding == LabelCoding::Plain {
        dataset.reading.coding = trained.labels().map_or(LabelCoding::Plain, |labels| labels.coding);
    }
    let part = part.unwrap_or_else(|| {
        if parts.contains(&Split::Test) || !parts.contains(&Split::Validation) {
            return SplitChoice::Test;
        }
        control.message("note: no case is for test, so that those for validation are predicted");
        SplitChoice::Validation
    });
    let wanted = |index: &usize| part.split().is_none_or(|split| parts[*index] == split);
    let cases = (0..parts.len()).filter(wanted).collect();
    Ok(Chosen {
        dataset,
        cases,
        split: part.name().to_owned(),
        named: absolute(file),
        images: None,
        first: None,
    })
}

fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// What the command line names: images, or a dataset with or without labels.
fn given(
    paths: &[PathBuf],
    part: Option<SplitChoice>,
    trained: Known<'_>,
    control: Control<'_>,
) -> Result<Chosen> {
    if let Some(part) = part.filter(|part| *part != SplitChoice::All) {
        let message = format!("--split {} needs a division: name a config instead of files", part.name());
        return Err(Error::usage(message));
    }
    let ModelMetadata { channels, classes, .. } = trained.metadata;
    let mut dataset = Dataset::of_images(paths, channels, classes)?.with_labels(LabelPolicy::Ignored);
    if let Some(LabelReading { coding, invert, .. }) = trained.labels() {
        if coding != LabelCoding::Plain {
            dataset.reading.coding = coding;
        }
        dataset.reading.invert = invert;
    }
    let first = check_images(&dataset, trained)?;
    for finding in &dataset.findings {
        match finding.severity {
            Severity::Note => control.message(&format!("note: {}", finding.reason)),
            Severity::Warning | Severity::Error => control.warn(&finding.reason),
        }
    }
    let named = absolute(paths.first().map_or(Path::new("."), PathBuf::as_path));
    let cases = (0..dataset.entries.len()).collect();
    let images =
        ImagePaths { paths: paths.iter().map(|path| absolute(path)).collect(), channels: channels.clone() };
    Ok(Chosen {
        dataset,
        cases,
        split: SplitChoice::All.name().to_owned(),
        named,
        images: Some(images),
        first,
    })
}

/// Values of an image that has fewer are those of a mask.
const FEW_VALUES: usize = 4;

/// Refuses what cannot be an image for the network, by the first case, which it gives: a mask, and a volume for a network
/// that learned from pictures, for which each channel of a patient would be a patient, predicted slice by slice.
fn check_images(dataset: &Dataset, trained: Known<'_>) -> Result<Option<Case>> {
    let Some(Ok(case)) = (!dataset.is_empty()).then(|| dataset.load_raw(0)) else { return Ok(None) };
    let has_few_values = |case: &Case| {
        let mut values = BTreeSet::new();
        case.image.iter().take(1 << 20).all(|value| {
            values.insert(value.to_bits());
            values.len() < FEW_VALUES
        })
    };
    let depth = case.shape[0];
    let (may_be_volume, may_be_mask) = (depth > 1 && trained.metadata.patch[0] == 1, has_few_values(&case));
    let learned = || trained.data.and_then(|data| data.open().ok()?.load_raw(0).ok());
    let Some(learned) = (may_be_volume || may_be_mask).then(learned).flatten() else { return Ok(Some(case)) };
    let [learned_depth, h, w] = learned.shape;
    let reason = if may_be_volume && learned_depth == 1 {
        format!(
            "the network learned from pictures of {h} × {w} ({}), but {} is a volume of {depth} slices; give pictures, \
             one per case",
            trained.metadata.channels.join(", "),
            case.id
        )
    } else if may_be_mask && !has_few_values(&learned) {
        format!("{} has fewer than {FEW_VALUES} different values, as a mask has; give the images", case.id)
    } else {
        return Ok(Some(case));
    };
    Err(Error::mismatch(reason))
}

/// A network sees channels by their place: those of another dataset must be as many.
fn check_channels(dataset: &Dataset, trained: Known<'_>, control: Control<'_>) -> Result<()> {
    let (found, expected) = (&dataset.channels, &trained.metadata.channels);
    let same_set = found.iter().all(|name| expected.contains(name));
    if found.len() == expected.len() && same_set && found != expected {
        let message = format!(
            "the channels of {} come as {}, but the network was trained with {}; set data.channels to that order",
            dataset.root.display(),
            found.join(", "),
            expected.join(", ")
        );
        return Err(Error::mismatch(message));
    }
    if found.len() == expected.len() {
        if !same_set {
            control.message(&format!(
                "note: channels {} are taken for {}",
                found.join(", "),
                expected.join(", ")
            ));
        }
        return Ok(());
    }
    let message = format!(
        "{} has {} channels ({}), but the network was trained with {} ({}); choose them with data.channels in a config",
        dataset.root.display(),
        found.len(),
        found.join(", "),
        expected.len(),
        expected.join(", ")
    );
    Err(Error::mismatch(message))
}

/// Samples behind probability maps.
const SAMPLES: u64 = 100;

/// The values by which the dataset stores classes.
fn stored_values(dataset: &Dataset) -> Option<Vec<u8>> {
    let mut values =
        dataset.reading.coding.stored().filter(|values| values.len() == dataset.classes.len())?;
    if dataset.reading.invert {
        values.reverse();
    }
    Some(values)
}

/// Writes the predicted label map, what else is asked for, and at last the distribution,
/// which marks the case as done.
fn write(folder: &Predictions, file: DistributionFile, path: &Path, config: &PredictConfig) -> Result<()> {
    let id = file.description().case.clone();
    let labels = file.labels_on_image(&predict_labels(&file, config.prediction)?)?;
    ssn_io::write(path, &file.as_image(labels)?)?;
    if config.probabilities {
        write_probabilities(folder, &file)?;
    }
    if config.nifti {
        write_parts(folder, &file)?;
    }
    let file = file.with_precision(config.precision)?;
    file.write(&folder.distribution_path(&id))
}

/// The mean probabilities of samples and their entropy.
fn write_probabilities(folder: &Predictions, file: &DistributionFile) -> Result<()> {
    let id = &file.description().case;
    let summary = summarize(file, 0, &Steering::default(), 0..SAMPLES, &[])?;
    let (probabilities, entropy) = (summary.mean_probabilities()?, summary.marginal_entropy()?);
    let image = file.probabilities_as_image(&probabilities)?;
    write_image(folder, id, Output::Probabilities, &image)?;
    write_image(folder, id, Output::Entropy, &file.rows_as_image(&entropy, |_| 0.0)?)
}

/// Mean, diagonal and factor as the authors' tool writes them; channel rank·c + class of the factor.
fn write_parts(folder: &Predictions, file: &DistributionFile) -> Result<()> {
    let distribution = file.distribution();
    let parts = [
        (Output::Mean, distribution.mean()),
        (Output::Diagonal, distribution.diagonal()),
        (Output::Factor, distribution.factor()),
    ];
    for (output, values) in parts.into_iter().filter(|(_, values)| !values.is_empty()) {
        let image = file.rows_as_image(&values.to_f32(), |_| 0.0)?;
        write_image(folder, &file.description().case, output, &image)?;
    }
    Ok(())
}

fn write_image(folder: &Predictions, id: &str, output: Output, image: &Image) -> Result<()> {
    Ok(ssn_io::write(&folder.output_path(id, output), image)?)
}
