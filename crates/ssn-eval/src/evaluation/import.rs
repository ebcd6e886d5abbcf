//! Segmentations that any tool wrote, as a folder of predictions: samples, probabilities or one label map of each case.
//!
//! Samples become a file of kind `sampled`, with the shares of labels for probabilities unless those are given; probabilities
//! or a label map alone become one of a deterministic network. Everything that reads predictions then reads these.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use sha2::{Digest, Sha256};
use ssn_args::OtherTool;
use ssn_core::metrics::LabelFrequencies;
use ssn_core::{Control, LabelMap, Region};
use ssn_core::{LowRankNormal, Values};
use ssn_data::{
    Case, Dataset, FileContent, FilesByCase, Finding, FindingKind, HALF, LabelCoding, NamedLabels,
    SameValues, Severity, read_label_map,
};
use ssn_io::hex::hex;
use ssn_io::{Error, Format, Geometry, Limits, Result, Tolerance, read, read_bytes};

use super::each_case;
use crate::predictions::{
    ABOUT_FILE, About, CaseDescription, DistributionFile, ModelId, PredictionKind, Predictions, StoredImage,
    listed_ids, stored_logarithm,
};

/// How far the probabilities of a voxel may sum from 1.
const SUM_TOLERANCE: f32 = 0.01;

/// The files of one case.
struct CaseFiles<'a> {
    index: usize,
    samples: &'a [(String, PathBuf)],
    probabilities: Option<&'a Path>,
    labels: Option<&'a Path>,
}

impl CaseFiles<'_> {
    fn all(&self) -> impl Iterator<Item = &Path> {
        let samples = self.samples.iter().map(|(_, path)| path.as_path());
        samples.chain(self.probabilities).chain(self.labels)
    }
}

/// The only file that a case has of something, if it has one.
fn alone<'a>(id: &str, what: &str, found: &'a FilesByCase) -> Result<Option<&'a Path>> {
    match found.cases.get(id).map_or(&[][..], Vec::as_slice) {
        [] => Ok(None),
        [(_, path)] => Ok(Some(path)),
        [(_, a), (_, b), ..] => Err(Error::mismatch(format!(
            "case {id} has several files of {what}: {} and {}; give a pattern that fits one of them",
            a.display(),
            b.display()
        ))),
    }
}

/// Converts the files of another tool to a folder of predictions of a dataset.
///
/// # Errors
/// Cases with different numbers of samples, and files that do not fit their case in size, place or labels, by their names.
pub fn import(
    other: &OtherTool,
    dataset: &Dataset,
    about: impl FnOnce(ModelId) -> About,
    out: &Path,
    overwrite: bool,
    control: Control<'_>,
) -> Result<Predictions> {
    let ids: Vec<&str> = dataset.entries.iter().map(|entry| entry.id.as_str()).collect();
    let find = |path: &Option<PathBuf>, content| {
        let found = path.as_ref().map(|path| FilesByCase::find(path, content, Some(&ids)));
        found.transpose().map(Option::unwrap_or_default)
    };
    let samples = find(&other.samples, FileContent::Labels)?;
    let probabilities = find(&other.probabilities, FileContent::Probabilities)?;
    let labels = find(&other.labels, FileContent::Labels)?;
    tell_matches(
        &ids,
        &[("samples", &samples), ("probabilities", &probabilities), ("predictions", &labels)],
        control,
    );
    let mut cases = vec![];
    for (index, id) in ids.iter().enumerate() {
        let samples = samples.cases.get(*id).map_or(&[][..], Vec::as_slice);
        let files = CaseFiles {
            index,
            samples,
            probabilities: alone(id, "probabilities", &probabilities)?,
            labels: alone(id, "predictions", &labels)?,
        };
        if files.all().next().is_some() {
            cases.push(files);
        }
    }
    let model = model_of(other, cases.iter().flat_map(CaseFiles::all))?;
    clear(out, &model, overwrite)?;
    let folder = Predictions::create(out, about(model.clone()))?;
    folder.claim(cases.iter().map(|files| ids[files.index]), &[])?;
    let readings = Readings::default();
    let phase = control.phase("reading", cases.len(), "cases");
    let stored = each_case(
        &cases,
        |files| ids[files.index],
        &phase,
        |files, _| {
            let file = convert(dataset, files, model.clone(), &readings)?;
            file.write(&folder.distribution_path(ids[files.index]))?;
            Ok((ids[files.index], file.sample_count()))
        },
    )?;
    readings.check()?;
    if let Some(path) = readings.no_place.get() {
        control.message(&format!(
            "files such as {} say nothing of spacing and place (spacing 1, origin 0): those of the raters' labels are taken",
            path.display()
        ));
    }
    if let Some(path) = readings.cut.get() {
        control.message(&format!(
            "JPEG pictures such as {} do not store values exactly: values above {HALF} are {}",
            path.display(),
            dataset.classes[1]
        ));
    }
    let counts: BTreeSet<usize> = stored.iter().map(|(_, count)| *count).collect();
    if let (Some(least), Some(most), true) = (counts.first(), counts.last(), counts.len() > 1) {
        let of = |wanted: &usize| {
            let ids = stored.iter().filter(|(_, count)| count == wanted).map(|(id, _)| (*id).to_owned());
            listed_ids(&ids.collect::<Vec<_>>())
        };
        return Err(Error::mismatch(format!(
            "cases have different numbers of samples: {most} of {}, but {least} of {}; complete them, or choose with a \
             pattern which of them count",
            of(most),
            of(least)
        )));
    }
    folder.write_index()?;
    Ok(folder)
}

/// Removes what was converted into a folder before, from the same places, or from any where that is asked for.
fn clear(out: &Path, model: &ModelId, overwrite: bool) -> Result<()> {
    let Ok(there) = Predictions::open(out) else { return Ok(()) };
    if there.about().model.name != model.name && !overwrite {
        return Ok(());
    }
    for case in there.cases()? {
        fs::remove_file(&case.path).map_err(|error| Error::io(&case.path, error))?;
    }
    let about = out.join(ABOUT_FILE);
    fs::remove_file(&about).map_err(|error| Error::io(&about, error))
}

/// How label maps were read: by the numbers of classes, or by the values that the raters' files store them by.
#[derive(Default)]
struct Readings {
    by_number: OnceLock<PathBuf>,
    by_value: OnceLock<PathBuf>,
    /// A file without spacing and place, beside labels that have them.
    no_place: OnceLock<PathBuf>,
    /// A picture that does not store values exactly.
    cut: OnceLock<PathBuf>,
    /// Files with names that no class has.
    other_names: Mutex<SameValues>,
}

impl Readings {
    /// Refuses files of both kinds: a map of which both could be true would have been misread.
    fn check(&self) -> Result<()> {
        let (Some(number), Some(value)) = (self.by_number.get(), self.by_value.get()) else { return Ok(()) };
        Err(Error::mismatch(format!(
            "{} holds numbers of classes, but {} the values by which the raters' files store them; write all of them in one \
             of these ways",
            number.display(),
            value.display()
        )))
    }

    /// Labels as numbers of classes, by name where values have the names of classes.
    fn decode(&self, dataset: &Dataset, labels: &mut [u8], path: &Path) -> Result<()> {
        if let Some(names) = NamedLabels::read(path)? {
            if dataset.reading.by_name || names.names_any_of(&dataset.classes) {
                let Some(unknown) = names.table(&dataset.classes)?.decode(labels) else { return Ok(()) };
                return Err(Error::mismatch(format!(
                    "{} has the label {} in {} voxels, but its segments are {}; write the file again",
                    path.display(),
                    unknown.values[0],
                    unknown.voxels,
                    names.list()
                )));
            }
            self.other_names.lock().unwrap_or_else(PoisonError::into_inner).add(&names)?;
        }
        let (classes, coding) = (dataset.classes.len(), &dataset.reading.coding);
        let mut present = [false; 256];
        labels.iter().for_each(|&label| present[usize::from(label)] = true);
        let brightest = present.iter().rposition(|is_there| *is_there).unwrap_or(0);
        // A mask in JPEG has values near 0 and 255, whatever those of raters are.
        let is_cut =
            classes == 2 && brightest > usize::from(HALF) && Format::of(path).is_ok_and(Format::is_lossy);
        let cut = LabelCoding::Threshold(HALF);
        let coding = match coding {
            LabelCoding::Plain | LabelCoding::Values(_) if is_cut => {
                self.cut.get_or_init(|| path.to_owned());
                &cut
            }
            coding => coding,
        };
        let stored = |label: u8| match coding {
            LabelCoding::Plain => usize::from(label) < classes,
            LabelCoding::Values(values) => values.contains(&label),
            // 0 and 1 alone are numbers of classes.
            LabelCoding::Threshold(threshold) => brightest > 1 || *threshold == 0 || label == 0,
        };
        let is_number = |label: u8| usize::from(label) < classes;
        let mut present = (0..=u8::MAX).filter(|&label| present[usize::from(label)]);
        if present.clone().all(stored) {
            if present.any(|label| !is_number(label)) && *coding != LabelCoding::Threshold(0) {
                self.by_value.get_or_init(|| path.to_owned());
            }
            coding.decode(labels, classes);
            if dataset.reading.invert {
                labels.iter_mut().for_each(|label| *label = u8::from(*label == 0));
            }
            return Ok(());
        }
        if present.clone().all(is_number) {
            self.by_number.get_or_init(|| path.to_owned());
            return Ok(());
        }
        let unknown: Vec<String> =
            present.filter(|&label| !stored(label)).take(5).map(|label| label.to_string()).collect();
        Err(Error::mismatch(format!(
            "{} has the labels {}, but the classes are {}; write the number of the class into each voxel",
            path.display(),
            unknown.join(", "),
            dataset.classes.join(", ")
        )))
    }
}

/// Says which cases have which files, and which files belong to none.
fn tell_matches(ids: &[&str], found: &[(&str, &FilesByCase)], control: Control<'_>) {
    for (what, files) in found.iter().filter(|(_, files)| !files.cases.is_empty()) {
        let missing: Vec<String> =
            ids.iter().filter(|id| !files.cases.contains_key(**id)).map(|id| (*id).to_owned()).collect();
        let count: usize = files.cases.values().map(Vec::len).sum();
        let mut line = format!("{what}: {count} files of {} cases", files.cases.len());
        if !missing.is_empty() {
            line += &format!("; none of {} cases: {}", missing.len(), listed_ids(&missing));
        }
        if !files.unmatched.is_empty() {
            let names: Vec<String> = files.unmatched.iter().map(|path| path.display().to_string()).collect();
            line += &format!("; {} files of no case: {}", names.len(), listed_ids(&names));
        }
        control.message(&line);
    }
}

/// The tool by its files: their names and lengths.
fn model_of<'a>(other: &OtherTool, files: impl Iterator<Item = &'a Path>) -> Result<ModelId> {
    let mut digest = Sha256::new();
    for path in files {
        let length = path.metadata().map_err(|error| Error::io(path, error))?.len();
        digest.update(format!("{} {length}\n", path.display()));
    }
    let names: Vec<String> = other.given().map(|path| path.display().to_string()).collect();
    Ok(ModelId { sha256: hex(&digest.finalize()), name: names.join(" and ") })
}

/// The files of a case as a prediction.
fn convert(
    dataset: &Dataset,
    files: &CaseFiles<'_>,
    model: ModelId,
    readings: &Readings,
) -> Result<DistributionFile> {
    // Raters on other grids than their case would be compared with what lies elsewhere.
    let (case, findings) = dataset.inspect(files.index);
    let is_bad =
        |found: &Finding| found.severity == Severity::Error || found.kind == FindingKind::GeometryMismatch;
    if let Some(finding) = findings.into_iter().find(is_bad) {
        return Err(finding.into_error());
    }
    let case = case.map_or_else(|| dataset.load_raw(files.index), Ok)?;
    let entry = &dataset.entries[files.index];
    let classes = dataset.classes.len();
    let mut samples: Vec<LabelMap> = vec![];
    for (_, path) in files.samples {
        samples.extend(label_maps(dataset, &case, path, readings)?);
    }
    let labels = files.labels.map(|path| label_maps(dataset, &case, path, readings)).transpose()?;
    let labels = match labels.as_deref() {
        None => None,
        Some([map]) => Some(map.clone()),
        Some(maps) => {
            return Err(Error::mismatch(format!(
                "{} has {} label maps, but a prediction is one; give them with --samples",
                files.labels.unwrap_or(Path::new("")).display(),
                maps.len()
            )));
        }
    };
    let labels_only = samples.is_empty() && files.probabilities.is_none();
    let probabilities = match (files.probabilities, &labels) {
        (Some(path), _) => probabilities(&case, classes, path)?,
        (None, Some(map)) if samples.is_empty() => LabelFrequencies::new(map).probabilities(),
        _ => LabelFrequencies::of(&samples)?.probabilities(),
    };
    let region = covered(&case, &samples, labels.as_ref(), &probabilities);
    let mean = probabilities.chunks_exact(case.voxels());
    let mean: Vec<f32> = mean.flat_map(|row| region.cut(row, case.shape)).map(stored_logarithm).collect();
    let image = StoredImage {
        sha256: dataset.image_sha256(files.index).unwrap_or_default(),
        trained_on: false,
        has_spacing: entry.has_geometry(),
        label_values: None,
        nifti_header: case.header.as_deref().map(hex),
    };
    let description = CaseDescription {
        case: entry.id.clone(),
        classes: dataset.classes.clone(),
        kind: if samples.is_empty() { PredictionKind::Deterministic } else { PredictionKind::Sampled },
        size: case.shape,
        geometry: case.geometry,
        network_grid: None,
        region,
        model,
        image: Some(image),
        labels_only,
    };
    let cut = |map: &LabelMap| region.cut(map.labels(), case.shape);
    let file = if samples.is_empty() {
        let (v, mean) = (region.voxels(), Values::F32(mean));
        let none = (vec![0f32; classes * v], vec![0f32; 0]);
        let distribution = LowRankNormal::new(classes, v, 0, mean, none.0, none.1)?;
        DistributionFile::new(description, distribution, None)?
    } else {
        let drawn: Vec<u8> = samples.iter().flat_map(cut).collect();
        DistributionFile::sampled(description, mean, drawn, None)?
    };
    match labels.filter(|_| !labels_only) {
        None => Ok(file),
        Some(labels) => file.with_labels(cut(&labels)),
    }
}

/// The box outside which everything is background for sure, and no rater marked anything.
fn covered(case: &Case, samples: &[LabelMap], labels: Option<&LabelMap>, probabilities: &[f32]) -> Region {
    let whole = Region::whole(case.shape);
    let mut marked = vec![false; case.voxels()];
    let maps = samples.iter().chain(labels).map(LabelMap::labels);
    for map in maps.chain(case.raters.iter().map(Vec::as_slice)) {
        marked.iter_mut().zip(map).for_each(|(marked, label)| *marked |= *label > 0);
    }
    marked.iter_mut().zip(probabilities).for_each(|(marked, background)| *marked |= *background < 1.0);
    let marked = marked.iter().enumerate().filter(|(_, marked)| **marked).map(|(at, _)| whole.voxel(at));
    Region::around(marked).unwrap_or(Region { start: [0; 3], size: [1; 3] })
}

/// The label maps of a file on the grid of a case; one, or as many as it has channels.
fn label_maps(dataset: &Dataset, case: &Case, path: &Path, readings: &Readings) -> Result<Vec<LabelMap>> {
    let labels = match Format::of(path) {
        Ok(format) if format.is_picture() => read_label_map(&case.id, path)?,
        _ => {
            let image = read(path, &Limits::default())?;
            check_grid(case, &image.geometry, path)?;
            if image.geometry == Geometry::default()
                && case.geometry != image.geometry
                && !matches!(Format::of(path), Ok(Format::Npy))
            {
                readings.no_place.get_or_init(|| path.to_owned());
            }
            image.to_labels().map_err(|problem| problem.in_file(path))?
        }
    };
    let count = maps_in(case, &labels.shape[..], labels.data.len(), path)?;
    let (mut labels, classes) = (labels.data, dataset.classes.len());
    readings.decode(dataset, &mut labels, path)?;
    let maps = labels.chunks_exact(labels.len() / count);
    maps.map(|map| Ok(LabelMap::new(map.to_vec(), classes)?)).collect()
}

/// The probabilities `[c, d, h, w]` of a file on the grid of a case. Of two classes, that of the foreground alone is enough.
fn probabilities(case: &Case, classes: usize, path: &Path) -> Result<Vec<f32>> {
    let limits = Limits::default();
    let image = if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("npz")) {
        let array =
            ssn_io::npy::parse_npz(&read_bytes(path, &limits)?, &["probabilities", "softmax"], &limits);
        array.and_then(|array| array.into_image(&limits)).map_err(|problem| problem.in_file(path))?
    } else {
        let image = read(path, &limits)?;
        check_grid(case, &image.geometry, path)?;
        image
    };
    let count = maps_in(case, &image.shape[..], image.voxels.len(), path)?;
    let wrong = |reason: String| Err(Error::data(path, reason));
    let mut values = image.to_f32().data;
    if let Some(value) = values.iter().find(|p| !(-1e-3..=1.001).contains(*p)) {
        return wrong(format!(
            "a value is {value}, but probabilities are 0 to 1; apply a softmax, not logits"
        ));
    }
    values.iter_mut().for_each(|p| *p = p.clamp(0.0, 1.0));
    match count {
        _ if count == classes => {
            let voxels = case.voxels();
            let sum = |voxel: usize| (0..classes).map(|class| values[class * voxels + voxel]).sum::<f32>();
            match (0..voxels).map(sum).find(|sum| (sum - 1.0).abs() > SUM_TOLERANCE) {
                None => Ok(values),
                Some(sum) => wrong(format!(
                    "the probabilities of a voxel sum to {sum}, but they must sum to 1; apply a softmax, not sigmoids"
                )),
            }
        }
        1 if classes == 2 => {
            let background: Vec<f32> = values.iter().map(|p| 1.0 - p).collect();
            Ok([background, values].concat())
        }
        _ => wrong(format!("it has {count} channels, but there are {classes} classes")),
    }
}

/// How many maps of a case's size an array has.
fn maps_in(case: &Case, shape: &[usize], values: usize, path: &Path) -> Result<usize> {
    let [d, h, w] = case.shape;
    let fits = match *shape {
        // Pictures may be stacked along the depth.
        [1, _, height, width] if d == 1 => [height, width] == [h, w],
        [_, depth, height, width] => [depth, height, width] == [d, h, w],
        _ => false,
    };
    if fits {
        return Ok(values / case.voxels());
    }
    Err(Error::mismatch(format!(
        "{} has the size {}, but case {} is {d} × {h} × {w} (depth × height × width)",
        path.display(),
        shape.iter().map(usize::to_string).collect::<Vec<_>>().join(" × "),
        case.id
    )))
}

/// Refuses a file in another place than its case, where both have one.
fn check_grid(case: &Case, geometry: &Geometry, path: &Path) -> Result<()> {
    if [geometry, &case.geometry].contains(&&Geometry::default()) {
        return Ok(());
    }
    match geometry.differences(&case.geometry, Tolerance::default()) {
        None => Ok(()),
        Some(differences) => Err(Error::mismatch(format!(
            "{} does not lie where the labels of case {} lie; resample it onto their grid, or correct its header\n{differences}",
            path.display(),
            case.id
        ))),
    }
}
