//! The files of a case, and how they are read.
//!
//! Loading and checking share this code: every problem becomes a [`Finding`], loading stops at the first error
//! and checking collects all.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread::{self, ScopedJoinHandle};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use ssn_io::dicom::folder_and_series;
use ssn_io::limits::check_left;
use ssn_io::{
    Error, FileError, Format, Geometry, Limits, Problem, Result as DataResult, Tolerance, Volume, files_of,
    nifti, open_file, read,
};

use crate::dataset::{
    Case, CaseEntry, Dataset, Finding, FindingKind, LabelCoding, NamedLabels, PackedCase, Severity,
    labels::read_label_image,
};
use crate::parallel;
use ssn_io::hex::hex;

/// The files of a case of its own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CaseFiles {
    /// One file per channel, or one with all channels; `None` for a channel that the case lacks.
    pub images: Vec<Option<PathBuf>>,
    /// The files of each rater who looked at the case, in the order of their numbers.
    pub raters: Vec<RaterFiles>,
    /// The region of interest.
    pub mask: Option<PathBuf>,
}

impl CaseFiles {
    /// Returns all files of the case.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        let raters = self.raters.iter().flat_map(RaterFiles::files);
        self.images.iter().flatten().chain(&self.mask).chain(raters)
    }
}

/// The files of one rater of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaterFiles {
    /// Which of the dataset's raters this is: the same number in all cases, from 0.
    pub number: usize,
    /// The label map or masks.
    pub maps: RaterMaps,
}

/// How a rater's marks are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RaterMaps {
    /// A label map.
    Labels(PathBuf),
    /// A mask for each class; none at all for a map without any mark. Where masks overlap, the later class counts.
    Masks(Vec<(u8, PathBuf)>),
}

impl RaterFiles {
    /// Returns the label map of a rater.
    pub fn new(number: usize, labels: PathBuf) -> Self {
        Self { number, maps: RaterMaps::Labels(labels) }
    }

    /// Returns all files of the rater.
    pub fn files(&self) -> Vec<&PathBuf> {
        match &self.maps {
            RaterMaps::Labels(path) => vec![path],
            RaterMaps::Masks(masks) => masks.iter().map(|(_, path)| path).collect(),
        }
    }
}

/// What it means that a rater has no file of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MissingRater {
    /// The rater did not look at it.
    #[default]
    Absent,
    /// The rater looked, and marked nothing.
    Empty,
}

/// Whether a case must have labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LabelPolicy {
    /// A case without labels is an error, as for training and evaluation.
    #[default]
    Required,
    /// Labels are read where they are there, as to show them.
    Optional,
    /// Labels are not read, as for prediction.
    Ignored,
}

/// How the files of a dataset are read, the same for all its cases.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadOptions {
    /// How labels are stored.
    pub coding: LabelCoding,
    /// Where values have names, as in `.seg.nrrd`, their classes are those of the same names.
    pub by_name: bool,
    /// Background and foreground change places, for masks that mark what is outside.
    pub invert: bool,
    /// The third axis of images holds channels, not slices.
    pub depth_is_channels: bool,
    /// Only the center of this many pixels a side is used.
    pub center_crop: Option<usize>,
    /// The channels to use, in this order; `None` means all.
    pub pick: Option<Vec<usize>>,
    /// Whether a case must have labels.
    pub labels: LabelPolicy,
}

impl CaseEntry {
    /// Whether the first image file, or without one the first label file, has a geometry; pictures and packed cases do not.
    pub fn has_geometry(&self) -> bool {
        let labels = self.files.raters.iter().flat_map(RaterFiles::files);
        self.files
            .images
            .iter()
            .flatten()
            .chain(labels)
            .next()
            .is_some_and(|path| Format::of(path).map_or(true, Format::has_geometry))
    }
}

impl Dataset {
    /// SHA-256 of a case's image and region of interest: of the files as they are stored, those of a DICOM series from its
    /// first slice to its last, or of the numbers of a case in a
    /// file of many.
    pub fn image_sha256(&self, index: usize) -> DataResult<String> {
        let mut digest = Sha256::new();
        self.hash_image(index, &mut digest)?;
        Ok(hex(&digest.finalize()))
    }

    /// Returns the hash of [`Self::image_sha256`], and that of the image with the labels of all raters.
    pub fn case_sha256(&self, index: usize) -> DataResult<[String; 2]> {
        let mut digest = Sha256::new();
        self.hash_image(index, &mut digest)?;
        let image = hex(&digest.clone().finalize());
        let entry = &self.entries[index];
        for rater in &entry.files.raters {
            digest.update((rater.number as u64).to_le_bytes());
            rater.files().into_iter().try_for_each(|path| hash_file(path, &mut digest))?;
        }
        if let Some(record) = entry.record() {
            let voxels = record.shape.iter().product();
            record.raters.iter().for_each(|labels| digest.update(labels.unpack(voxels)));
        }
        Ok([image, hex(&digest.finalize())])
    }

    /// Something that is the same as long as nobody wrote to the files of a case: their sizes, times and places on the disk. Nothing for a
    /// case in a file of many, and where a file is missing.
    pub fn case_stamp(&self, index: usize) -> Option<String> {
        let CaseEntry { files, packed: None, .. } = &self.entries[index] else { return None };
        let mut digest = Sha256::new();
        for path in files.paths() {
            for file in files_of(path, &Limits::default()).ok()? {
                digest.update(stamp(&file.metadata().ok()?));
            }
        }
        Some(hex(&digest.finalize()))
    }

    fn hash_image(&self, index: usize, digest: &mut Sha256) -> DataResult<()> {
        let entry = &self.entries[index];
        let mut files = entry.files.images.iter().flatten().chain(&entry.files.mask);
        let pixels = entry.record().into_iter().flat_map(|record| record.pixels.unpack());
        pixels.for_each(|pixel| digest.update(pixel.to_le_bytes()));
        files.try_for_each(|path| hash_file(path, digest))
    }

    /// Reads a case without preprocessing, with everything that is wrong with it; no case if there is an error.
    pub fn inspect(&self, index: usize) -> (Option<Case>, Vec<Finding>) {
        let CaseEntry { id, files, packed, .. } = &self.entries[index];
        let mut reader = CaseReader { dataset: self, findings: vec![] };
        let case = match packed {
            None => reader.of_files(files),
            Some((records, place)) => reader.of_record(&records.path, &records.items[*place]),
        };
        let usable = reader.findings.iter().all(|finding| finding.severity != Severity::Error);
        let case = case.filter(|_| usable).map(|case| Case { id: id.clone(), ..case });
        (case, reader.findings.into_iter().map(|finding| finding.of_case(id)).collect())
    }
}

fn hash_file(path: &Path, digest: &mut Sha256) -> DataResult<()> {
    const BLOCK: usize = 1 << 20;
    let mut block = vec![0; BLOCK];
    for path in files_of(path, &Limits::default())? {
        let mut file = open_file(&path).map_err(|problem| problem.in_file(&path))?;
        loop {
            match file.read(&mut block).map_err(|error| Problem::Io(error).in_file(&path))? {
                0 => break,
                count => digest.update(&block[..count]),
            }
        }
    }
    Ok(())
}

fn stamp(file: &fs::Metadata) -> String {
    let times = [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()];
    format!("{} {} {times:?};", file.size(), file.ino())
}

/// The grid of a case, and the file that defined it.
struct ReferenceGrid {
    path: PathBuf,
    shape: [usize; 3],
    geometry: Geometry,
    /// Whether the file stores the geometry.
    has_place: bool,
}

/// Returns `true` if an image file stores a geometry; `source` is its NIfTI header.
fn has_place(path: &Path, source: Option<&[u8]>) -> bool {
    Format::of(path).map_or(true, Format::has_geometry) && source.is_none_or(nifti::has_geometry)
}

fn is_dicom(path: &Path) -> bool {
    matches!(Format::of(path), Ok(Format::Dicom))
}

/// Extends a DICOM segmentation, whose file leaves out empty slices, to the grid of its image. It stays as it is if the
/// grids do not fit or marked voxels would be lost.
///
/// # Shapes
/// `[1, d, h, w]` → `[1, d', h', w']`.
fn on_grid(labels: Volume<u8>, grid: &ReferenceGrid) -> Volume<u8> {
    let [.., h, w] = labels.shape;
    let Some(start) = grid.geometry.offset_of(&labels.geometry) else { return labels };
    let [depth, height, width] = grid.shape;
    let mut data = vec![0; depth * height * width];
    for (at, &label) in labels.data.iter().enumerate().filter(|(_, label)| **label > 0) {
        let place = [at / (w * h), at / w % h, at % w];
        let place = [0, 1, 2].map(|axis| start[axis] + place[axis] as isize);
        let is_inside = (0..3).all(|axis| (0..grid.shape[axis] as isize).contains(&place[axis]));
        if !is_inside {
            return labels;
        }
        let [z, y, x] = place.map(|place| place as usize);
        data[(z * height + y) * width + x] = label;
    }
    Volume { data, shape: [1, depth, height, width], geometry: grid.geometry }
}

/// The center crop of `side` pixels along height and width; a shorter side stays as it is.
fn center_crop<T: Copy>(volume: Volume<T>, side: Option<usize>) -> Volume<T> {
    let Some(side) = side else { return volume };
    let [c, d, h, w] = volume.shape;
    let (new_h, new_w) = (h.min(side), w.min(side));
    let (top, left) = ((h - new_h) / 2, (w - new_w) / 2);
    let planes = volume.data.chunks_exact(h * w);
    let rows = planes.flat_map(|plane| plane.chunks_exact(w).skip(top).take(new_h));
    let data = rows.flat_map(|row| row[left..left + new_w].iter().copied()).collect();
    Volume { data, shape: [c, d, new_h, new_w], geometry: volume.geometry }
}

type ReadImage = Result<(Volume<f32>, Option<Vec<u8>>), FileError>;

/// An image in single precision, and what its file says beside. There must be memory for its values twice: as they are, and
/// joined with those of other channels.
fn read_image(path: &Path) -> ReadImage {
    let image = read(path, &Limits::default())?;
    check_left(image.voxels.len() as u64 * TWICE).map_err(|problem| problem.in_file(path))?;
    Ok((image.to_f32(), image.source))
}

/// Bytes of a number in single precision, twice.
const TWICE: u64 = 8;
/// Bytes of files from which on they are read at the same time: decompressing takes longest.
const LARGE: u64 = 1 << 20;
/// Images have room at the same time where their files take less than this part of the free memory.
const PART_OF_MEMORY: u64 = 64;

/// All images that have a path, in their order.
fn read_images(paths: &[Option<PathBuf>]) -> Vec<Option<ReadImage>> {
    let bytes = |path: &PathBuf| fs::metadata(path).map_or(0, |file| file.len());
    let large: Vec<u64> = paths.iter().flatten().map(bytes).filter(|bytes| *bytes >= LARGE).collect();
    let together = large.iter().sum::<u64>().saturating_mul(PART_OF_MEMORY);
    if large.len() < 2 || together > parallel::available_bytes() as u64 {
        return paths.iter().map(|path| path.as_deref().map(read_image)).collect();
    }
    // Threads of their own: others wait for those of the pool.
    thread::scope(|scope| {
        let begin = |path| (path, thread::Builder::new().spawn_scoped(scope, move || read_image(path)));
        let begun: Vec<_> = paths.iter().map(|path| path.as_deref().map(begin)).collect();
        let finish = |(path, reading): (_, std::io::Result<ScopedJoinHandle<'_, _>>)| match reading {
            Ok(reading) => reading.join().unwrap_or_else(|panic| resume_unwind(panic)),
            // The system gives no more threads.
            Err(_) => read_image(path),
        };
        begun.into_iter().map(|reading| reading.map(finish)).collect()
    })
}

struct CaseReader<'a> {
    dataset: &'a Dataset,
    findings: Vec<Finding>,
}

impl CaseReader<'_> {
    fn error(
        &mut self,
        path: &Path,
        kind: FindingKind,
        reason: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.findings.push(Finding::error(kind, reason, advice).in_file(path));
    }

    fn channel(&self, number: usize) -> &str {
        self.dataset.stored_channels.get(number).map_or("", String::as_str)
    }

    fn of_files(&mut self, files: &CaseFiles) -> Option<Case> {
        let mut grid: Option<ReferenceGrid> = None;
        let (mut values, mut channels, mut header) = (vec![], 0, None);
        for (number, (path, image)) in files.images.iter().zip(read_images(&files.images)).enumerate() {
            let (Some(path), Some(image)) = (path, image) else {
                let reason = format!("the channel {:?} is missing", self.channel(number));
                let advice = "add the file, or leave the channel out in the config (data.channels)";
                self.findings.push(Finding::error(FindingKind::MissingChannel, reason, advice));
                continue;
            };
            let (mut image, source) = match image {
                Ok(read) => read,
                Err(error) => {
                    self.findings.push(Finding::unreadable(error));
                    continue;
                }
            };
            let has_place = has_place(path, source.as_deref());
            if grid.is_none() {
                header = source;
            }
            if self.dataset.reading.depth_is_channels && image.shape[0] == 1 {
                image.shape.swap(0, 1);
            }
            let image = center_crop(image, self.dataset.reading.center_crop);
            if self.fits(&mut grid, path, &image, has_place) {
                self.check_finite(path, channels, &image.data, image.shape[0]);
                channels += image.shape[0];
                values.extend(image.data);
            }
        }
        let (mut raters, mut rater_numbers) = (vec![], vec![]);
        for rater in &files.raters {
            if !self.is_expected(rater) {
                continue;
            }
            if let Some(labels) = self.rater(&rater.maps, &mut grid) {
                raters.push(labels);
                rater_numbers.push(rater.number);
            }
        }
        if files.raters.is_empty() && self.dataset.reading.labels == LabelPolicy::Required {
            let advice = "add the label files, remove the case, or set data.missing_rater = \"empty\" if nothing is to be marked";
            let finding = Finding::error(FindingKind::MissingLabels, "no rater's labels are there", advice);
            self.findings.push(finding);
        }
        let mask = files.mask.as_ref().and_then(|path| self.mask(path, &mut grid));
        let grid = grid?;
        if rater_numbers.iter().enumerate().all(|(index, number)| index == *number) {
            rater_numbers.clear();
        }
        let case = self.finish(&grid, channels, values, raters, mask)?;
        Some(Case { rater_numbers, header, ..case })
    }

    /// Whether the files of a rater have to be read. Some layouts name label files without looking, so that an
    /// absent one counts only where labels are needed.
    fn is_expected(&self, rater: &RaterFiles) -> bool {
        match self.dataset.reading.labels {
            LabelPolicy::Required => true,
            LabelPolicy::Optional => rater.files().iter().all(|path| path.exists()),
            LabelPolicy::Ignored => false,
        }
    }

    fn rater(&mut self, maps: &RaterMaps, grid: &mut Option<ReferenceGrid>) -> Option<Vec<u8>> {
        let masks = match maps {
            RaterMaps::Labels(path) => {
                let mut labels = self.labels(path, grid)?;
                let names = match self.dataset.reading.by_name {
                    true => NamedLabels::read(path),
                    false => Ok(None),
                };
                let names = names.map_err(|error| self.unusable(path, &error)).ok()?;
                self.decode(path, &mut labels, names.as_ref());
                return Some(self.inverted(labels));
            }
            RaterMaps::Masks(masks) => masks,
        };
        let threshold = if let LabelCoding::Threshold(t) = self.dataset.reading.coding { t } else { 0 };
        let mut merged: Option<Vec<u8>> = None;
        for (class, path) in masks {
            let labels = self.labels(path, grid)?;
            let map = merged.get_or_insert_with(|| vec![0; labels.len()]);
            map.iter_mut()
                .zip(&labels)
                .filter(|(_, label)| **label > threshold)
                .for_each(|(to, _)| *to = *class);
        }
        merged
            .map(|labels| self.inverted(labels))
            .or_else(|| Some(vec![0; grid.as_ref()?.shape.iter().product()]))
    }

    /// Labels of two classes, exchanged if the dataset has them the other way round.
    fn inverted(&self, mut labels: Vec<u8>) -> Vec<u8> {
        if self.dataset.reading.invert {
            labels.iter_mut().for_each(|label| *label = u8::from(*label == 0));
        }
        labels
    }

    fn labels(&mut self, path: &Path, grid: &mut Option<ReferenceGrid>) -> Option<Vec<u8>> {
        let read = || {
            let image = read_label_image(path)?;
            let labels = image.to_labels().map_err(|problem| Finding::unreadable(problem.in_file(path)))?;
            Ok((labels, image.source))
        };
        let (mut labels, source) = read().map_err(|finding| self.findings.push(finding)).ok()?;
        if let Some(grid) = grid.as_ref().filter(|_| folder_and_series(path).is_some() || is_dicom(path)) {
            labels = on_grid(labels, grid);
        }
        let labels = center_crop(labels, self.dataset.reading.center_crop);
        self.fits(grid, path, &labels, has_place(path, source.as_deref())).then_some(labels.data)
    }

    /// Replaces stored values by classes: by their names where they have names, else by the rule of the dataset.
    fn decode(&mut self, path: &Path, labels: &mut [u8], names: Option<&NamedLabels>) {
        let classes = &self.dataset.classes;
        let by_name = names.map(|names| names.table(classes)).transpose();
        let table = match by_name {
            Ok(table) => table.unwrap_or_else(|| self.dataset.reading.coding.table(classes.len())),
            Err(error) => return self.unusable(path, &error),
        };
        let Some(unknown) = table.decode(labels) else { return };
        let shown: Vec<String> = unknown.values.iter().take(5).map(u8::to_string).collect();
        let more = if unknown.values.len() > 5 { ", …" } else { "" };
        let allowed = match &self.dataset.reading.coding {
            _ if names.is_some() => {
                format!("that of one of its segments: {}", names.map(NamedLabels::list).unwrap_or_default())
            }
            LabelCoding::Plain => format!("0 to {}", self.dataset.classes.len().saturating_sub(1)),
            LabelCoding::Values(values) => format!("one of {values:?}"),
            LabelCoding::Threshold(_) => "any".to_owned(),
        };
        let reason = format!(
            "{} voxels have the label {}{more}, but it must be {allowed}",
            unknown.voxels,
            shown.join(", ")
        );
        let advice =
            "name every class in the config (data.classes, data.label_values), or correct the labels";
        self.error(path, FindingKind::LabelRange, reason, advice);
    }

    /// Tells of a label file with names that do not fit.
    fn unusable(&mut self, path: &Path, error: &Error) {
        let (reason, advice) = match &error.advice {
            Some(advice) => (error.reason.clone(), advice.as_str()),
            None => (error.to_string(), "write the file again"),
        };
        self.error(path, FindingKind::LabelRange, reason, advice);
    }

    /// The region of interest: what is above one half, for masks may be stored with a slope.
    fn mask(&mut self, path: &Path, grid: &mut Option<ReferenceGrid>) -> Option<Vec<u8>> {
        let image = read_label_image(path).map_err(|finding| self.findings.push(finding)).ok()?;
        let mask = center_crop(image.to_f32(), self.dataset.reading.center_crop);
        if !self.fits(grid, path, &mask, has_place(path, image.source.as_deref())) {
            return None;
        }
        let mask: Vec<u8> = mask.data.iter().map(|&x| u8::from(x > 0.5)).collect();
        if !mask.contains(&1) {
            let advice = "correct the mask, or leave it out";
            self.error(path, FindingKind::EmptyMask, "the region of interest is empty", advice);
        }
        Some(mask)
    }

    /// Returns `true` if an array has the size of the others of the case, the first of which defines the grid. Geometries that
    /// differ are found, too.
    fn fits<T>(
        &mut self,
        grid: &mut Option<ReferenceGrid>,
        path: &Path,
        volume: &Volume<T>,
        has_place: bool,
    ) -> bool {
        let [_, d, h, w] = volume.shape;
        let Some(grid) = grid else {
            let (path, geometry) = (path.to_owned(), volume.geometry);
            *grid = Some(ReferenceGrid { path, shape: [d, h, w], geometry, has_place });
            return true;
        };
        if grid.shape != [d, h, w] {
            let reason = format!(
                "the size is {d} × {h} × {w}, but that of {} is {} × {} × {} (depth × height × width)",
                grid.path.display(),
                grid.shape[0],
                grid.shape[1],
                grid.shape[2]
            );
            self.error(path, FindingKind::SizeMismatch, reason, "resample one onto the grid of the other");
            return false;
        }
        // A file without a geometry may belong to any.
        if !(has_place && grid.has_place) {
            return true;
        }
        // A geometry that nobody set may be next to any array, so that a difference is no error.
        let turn = grid.geometry.turn(&volume.geometry, grid.shape).filter(|_| !volume.geometry.is_unset());
        if let Some(turn) = turn {
            let [found, expected] = [volume.geometry, grid.geometry].map(|geometry| geometry.orientation());
            let orientation = match found == expected {
                true => String::new(),
                false => format!(": width, height and depth run to {found}, but there to {expected}"),
            };
            let reason = format!("the voxels are {turn}, compared with {}{orientation}", grid.path.display());
            let advice = "resample one onto the grid of the other; if the voxels match and only the header is wrong, save it with \
                          the header of the other";
            self.error(path, FindingKind::GeometryMismatch, reason, advice);
            return true;
        }
        if let Some(differences) = grid.geometry.differences(&volume.geometry, Tolerance::default()) {
            let rows =
                differences.0.iter().map(|d| format!("{} {:.6} and {:.6}", d.quantity, d.first, d.second));
            let reason = format!(
                "the geometry differs from that of {}: {}",
                grid.path.display(),
                rows.collect::<Vec<_>>().join(", ")
            );
            let advice = "resample one onto the grid of the other, or correct its header";
            self.findings.push(Finding::warning(FindingKind::GeometryMismatch, reason, advice).in_file(path));
        }
        true
    }

    fn of_record(&mut self, path: &Path, record: &Result<PackedCase, String>) -> Option<Case> {
        let record = match record {
            Ok(record) => record,
            Err(reason) => {
                self.error(path, FindingKind::Unreadable, reason.clone(), "correct the entry, or remove it");
                return None;
            }
        };
        let grid = ReferenceGrid {
            path: path.to_owned(),
            shape: record.shape,
            geometry: Geometry::default(),
            has_place: false,
        };
        let voxels = record.shape.iter().product();
        let mut raters = vec![];
        let is_read = self.dataset.reading.labels != LabelPolicy::Ignored;
        for stored in record.raters.iter().filter(|_| is_read) {
            let mut labels = stored.unpack(voxels);
            self.decode(path, &mut labels, None);
            raters.push(self.inverted(labels));
        }
        if raters.is_empty() && self.dataset.reading.labels == LabelPolicy::Required {
            let advice = "add the masks, or remove the case";
            self.error(path, FindingKind::MissingLabels, "no rater's labels are there", advice);
        }
        let values = record.pixels.unpack();
        self.check_finite(path, 0, &values, record.channels);
        self.finish(&grid, record.channels, values, raters, None)
    }

    /// Reports values that are not finite in the channels from `first` on.
    fn check_finite(&mut self, path: &Path, first: usize, values: &[f32], channels: usize) {
        for (number, channel) in values.chunks((values.len() / channels.max(1)).max(1)).enumerate() {
            let bad = channel.iter().filter(|x| !x.is_finite()).count();
            if bad > 0 {
                let name = self.channel(first + number);
                let reason = format!("{bad} values of the channel {name:?} are not finite (NaN or infinity)");
                let advice = "replace them, for example by 0, and write the file again";
                self.error(path, FindingKind::NotFinite, reason, advice);
            }
        }
    }

    /// The case, with the channels that are wanted.
    fn finish(
        &mut self,
        grid: &ReferenceGrid,
        channels: usize,
        values: Vec<f32>,
        raters: Vec<Vec<u8>>,
        mask: Option<Vec<u8>>,
    ) -> Option<Case> {
        let (names, voxels) = (&self.dataset.stored_channels, grid.shape.iter().product::<usize>());
        let broken = self
            .findings
            .iter()
            .any(|f| matches!(f.kind, FindingKind::MissingChannel | FindingKind::Unreadable));
        if channels != names.len() && !broken {
            let reason = format!(
                "the number of channels is {channels}, but it must be {} ({})",
                names.len(),
                names.join(", ")
            );
            self.error(&grid.path, FindingKind::MissingChannel, reason, "give every case these channels");
        }
        if channels != names.len() {
            return None;
        }
        let (channels, image) = match &self.dataset.reading.pick {
            None => (channels, values),
            Some(pick) => {
                let part = |&c: &usize| values[c * voxels..(c + 1) * voxels].iter().copied();
                (pick.len(), pick.iter().flat_map(part).collect())
            }
        };
        Some(Case {
            channels,
            shape: grid.shape,
            image,
            raters,
            mask,
            geometry: grid.geometry,
            ..Case::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use ssn_io::{Image, Voxels, write};

    use super::*;

    #[test]
    fn a_center_crop_is_in_the_middle() {
        let volume = Volume { data: (0..40).collect(), shape: [2, 1, 4, 5], geometry: Geometry::default() };
        let part = center_crop(volume.clone(), Some(2));
        assert_eq!((part.shape, part.data), ([2, 1, 2, 2], vec![6, 7, 11, 12, 26, 27, 31, 32]));
        assert_eq!(center_crop(volume.clone(), Some(9)), volume);
    }

    /// A folder `images/` and one `labels/` with a case `a` of 2 × 3 × 4 voxels, whose labels have another geometry.
    fn labels_at(image: Geometry, labels: Geometry) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, geometry) in [("images", image), ("labels", labels)] {
            fs::create_dir(folder.path().join(name)).unwrap();
            let voxels = Voxels::U8((0..24).map(|i| if name == "images" { i } else { i % 2 }).collect());
            let image = Image::new(voxels, [1, 2, 3, 4], geometry, &Limits::default()).unwrap();
            write(&folder.path().join(name).join("a.nii"), &image).unwrap();
        }
        folder
    }

    /// The findings about the geometry of the labels, with their severity.
    fn told(folder: &tempfile::TempDir) -> Vec<(Severity, String)> {
        let dataset = Dataset::open(folder.path()).unwrap();
        let (case, findings) = dataset.inspect(0);
        assert_eq!(case.is_none(), findings.iter().any(|finding| finding.severity == Severity::Error));
        assert_eq!(case.is_none(), dataset.load_raw(0).is_err());
        let of_geometry =
            findings.into_iter().filter(|finding| finding.kind == FindingKind::GeometryMismatch);
        let path = folder.path().display().to_string();
        of_geometry.map(|finding| (finding.severity, finding.reason.replace(&path, "FOLDER"))).collect()
    }

    /// Columns of a matrix as directions.
    fn turned(columns: [[f64; 3]; 3]) -> Geometry {
        let direction = [0, 1, 2].map(|row| columns.map(|column| column[row]));
        Geometry { spacing: [0.7, 0.7, 2.0], origin: [-20.0, 5.0, 9.0], direction }
    }

    const X: [f64; 3] = [1.0, 0.0, 0.0];
    const Y: [f64; 3] = [0.0, 1.0, 0.0];
    const Z: [f64; 3] = [0.0, 0.0, 1.0];

    #[test]
    fn labels_with_turned_axes_are_an_error() {
        let (s, c) = 5f64.to_radians().sin_cos();
        for (labels, expected) in [
            (
                turned([[-1.0, 0.0, 0.0], Y, Z]),
                "the voxels are mirrored along the width, compared with FOLDER/images/a.nii: width, height and depth run to \
                 LAS, but there to RAS",
            ),
            (
                turned([[-1.0, 0.0, 0.0], Y, [0.0, 0.0, -1.0]]),
                "mirrored along the width and the depth, compared",
            ),
            (
                turned([Y, X, Z]),
                "the voxels are stored along other axes, compared with FOLDER/images/a.nii: width, height and depth run to \
                 ARS, but there to RAS",
            ),
            (turned([[c, s, 0.0], [-s, c, 0.0], Z]), "the voxels are rotated by 5.0°, compared with"),
        ] {
            let found = told(&labels_at(turned([X, Y, Z]), labels));
            assert!(
                matches!(&found[..], [(Severity::Error, reason)] if reason.contains(expected)),
                "{found:?}"
            );
        }
        // An image whose geometry is that of a file without any.
        let mirrored =
            Geometry { direction: turned([[-1.0, 0.0, 0.0], Y, Z]).direction, ..Geometry::default() };
        let found = told(&labels_at(Geometry::default(), mirrored));
        assert!(matches!(found[..], [(Severity::Error, _)]), "{found:?}");
    }

    #[test]
    fn moved_labels_are_a_warning() {
        let (s, c) = 0.5f64.to_radians().sin_cos();
        let image = turned([X, Y, Z]);
        for labels in [
            Geometry { origin: [0.0; 3], ..image },
            Geometry { spacing: [1.0; 3], ..image },
            turned([[c, s, 0.0], [-s, c, 0.0], Z]),
        ] {
            let found = told(&labels_at(image, labels));
            assert!(matches!(found[..], [(Severity::Warning, _)]), "{found:?}");
        }
    }

    #[test]
    fn labels_without_a_place_are_used() {
        // What nibabel and SimpleITK write if nobody sets a geometry.
        let image = turned([[-1.0, 0.0, 0.0], Y, Z]);
        for labels in [Geometry::default(), Geometry::default().with_x_and_y_flipped()] {
            let found = told(&labels_at(image, labels));
            assert!(matches!(found[..], [(Severity::Warning, _)]), "{found:?}");
        }
        // NIfTI with neither sform nor qform.
        let folder = labels_at(turned([X, Y, Z]), turned([X, Y, Z]));
        for name in ["labels", "images"] {
            let path = folder.path().join(name).join("a.nii");
            let mut bytes = fs::read(&path).unwrap();
            bytes[252..256].fill(0);
            fs::write(&path, bytes).unwrap();
            assert_eq!(told(&folder), [], "{name}");
        }
    }

    #[test]
    fn regions_and_channels_with_turned_axes_are_an_error() {
        let folder = labels_at(turned([X, Y, Z]), turned([X, Y, Z]));
        let voxels = Voxels::U8(vec![1; 24]);
        let other = turned([X, [0.0, -1.0, 0.0], Z]);
        let image = Image::new(voxels, [1, 2, 3, 4], other, &Limits::default()).unwrap();
        write(&folder.path().join("other.nii"), &image).unwrap();
        let (images, labels, other) = ("images/a.nii", "labels/a.nii", "other.nii");
        for index in [
            format!("id,flair,seg,sampling_mask\na,{images},{labels},{other}\n"),
            format!("id,flair,t1,seg\na,{images},{other},{labels}\n"),
        ] {
            fs::write(folder.path().join("index.csv"), index).unwrap();
            let found = told(&folder);
            let is_told =
                matches!(&found[..], [(Severity::Error, reason)] if reason.contains("along the height"));
            assert!(is_told, "{found:?}");
        }
    }

    /// A PNG file of 2 × 2 pixels with these colors and color numbers.
    fn palette_png(colors: &[[u8; 3]], numbers: [u8; 4]) -> Vec<u8> {
        let mut zlib = flate2::write::ZlibEncoder::new(vec![], flate2::Compression::fast());
        zlib.write_all(&[0, numbers[0], numbers[1], 0, numbers[2], numbers[3]]).unwrap();
        let header = [0, 0, 0, 2, 0, 0, 0, 2, 8, 3, 0, 0, 0];
        let chunks = [
            (b"IHDR", header.to_vec()),
            (b"PLTE", colors.concat()),
            (b"IDAT", zlib.finish().unwrap()),
            (b"IEND", vec![]),
        ];
        let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
        for (kind, content) in chunks {
            let mut sum = flate2::Crc::new();
            sum.update(kind);
            sum.update(&content);
            bytes.extend((content.len() as u32).to_be_bytes());
            bytes.extend_from_slice(kind);
            bytes.extend(content);
            bytes.extend(sum.sum().to_be_bytes());
        }
        bytes
    }

    #[test]
    fn palettes_of_images_are_colors_and_of_labels_are_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let save = |name: &str, colors: &[[u8; 3]], numbers: [u8; 4]| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, palette_png(colors, numbers)).unwrap();
            path
        };
        // The colors of VOC for its first classes.
        let voc = [[0, 0, 0], [128, 0, 0], [0, 128, 0]];
        save("labels/a.png", &voc, [0, 1, 2, 1]);
        for (colors, expected) in [
            (&[[9, 9, 9], [70, 70, 70], [200, 200, 200]], &[200.0, 70.0, 9.0, 200.0][..]),
            (
                &[[9, 1, 5], [70, 2, 6], [200, 3, 7]],
                &[200.0, 70.0, 9.0, 200.0, 3.0, 2.0, 1.0, 3.0, 7.0, 6.0, 5.0, 7.0],
            ),
        ] {
            let image = save("images/a.png", colors, [2, 1, 0, 2]);
            let dataset = Dataset::open(folder.path()).unwrap();
            let case = dataset.load_raw(0).unwrap();
            assert_eq!((&case.image[..], &case.raters[..]), (expected, &[vec![0, 1, 2, 1]][..]));
            assert_eq!(dataset.stored_channels.len(), expected.len() / 4);
            assert_eq!(dataset.classes.len(), 3);
            // Prediction takes the same channels.
            let images = Dataset::of_images(&[image], &dataset.channels, &dataset.classes).unwrap();
            assert_eq!(images.load_raw(0).unwrap().image, expected);
        }
        // A region of interest is what is not 0.
        save("images/a.png", &[[5, 5, 5], [6, 6, 6]], [0, 1, 0, 1]);
        save("mask.png", &voc, [0, 1, 1, 0]);
        fs::write(
            folder.path().join("index.csv"),
            "id,image,seg,sampling_mask\na,images/a.png,labels/a.png,mask.png\n",
        )
        .unwrap();
        let case = Dataset::open(folder.path()).unwrap().load_raw(0).unwrap();
        assert_eq!((case.image, case.mask), (vec![5.0, 6.0, 5.0, 6.0], Some(vec![0, 1, 1, 0])));
    }
}
