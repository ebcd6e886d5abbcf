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
use ssn_io::limits::check_left;
use ssn_io::{
    FileError, Format, Geometry, Image, Limits, Problem, Tolerance, Volume, Voxels, files_of, open_file, read,
};

use crate::dataset::{
    Case, CaseEntry, Dataset, Finding, FindingKind, LabelCoding, NamedLabels, PackedCase, Severity,
    read_labels,
};
use crate::error::{DataError, Result as DataResult};
use crate::parallel;
use crate::text::hex;

/// The files of a case of its own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CaseFiles {
    /// One file per channel, or one with all channels; `None` for a channel that the case lacks.
    pub images: Vec<Option<PathBuf>>,
    /// The files of each rater who looked at the case, in the order of their numbers.
    pub raters: Vec<RaterFiles>,
    pub mask: Option<PathBuf>,
}

impl CaseFiles {
    /// All of them.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        let raters = self.raters.iter().flat_map(RaterFiles::files);
        self.images.iter().flatten().chain(&self.mask).chain(raters)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaterFiles {
    /// Which of the dataset's raters this is: the same number in all cases, from 0.
    pub number: usize,
    pub maps: RaterMaps,
}

/// How a rater's marks are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RaterMaps {
    Labels(PathBuf),
    /// A mask for each class; none at all for a map without any mark. Where masks overlap, the later class counts.
    Masks(Vec<(u8, PathBuf)>),
}

impl RaterFiles {
    pub fn new(number: usize, labels: PathBuf) -> Self {
        Self { number, maps: RaterMaps::Labels(labels) }
    }

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
    pub labels: LabelPolicy,
}

impl CaseEntry {
    /// Whether the first image file, or without one the first label file, has a geometry; pictures and packed cases do not.
    pub fn has_geometry(&self) -> bool {
        let labels = self.files.raters.iter().flat_map(RaterFiles::files);
        self.files.images.iter().flatten().chain(labels).next().is_some_and(|path| !is_picture(path))
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

    /// The same with the labels of all raters.
    pub fn case_sha256(&self, index: usize) -> DataResult<String> {
        let mut digest = Sha256::new();
        self.hash_image(index, &mut digest)?;
        let entry = &self.entries[index];
        for rater in &entry.files.raters {
            digest.update((rater.number as u64).to_le_bytes());
            rater.files().into_iter().try_for_each(|path| hash_file(path, &mut digest))?;
        }
        if let Some(record) = entry.record() {
            let voxels = record.shape.iter().product();
            record.raters.iter().for_each(|labels| digest.update(labels.unpack(voxels)));
        }
        Ok(hex(&digest.finalize()))
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
}

/// Whether a file is of a kind that has no geometry.
fn is_picture(path: &Path) -> bool {
    matches!(Format::of(path), Ok(Format::Png | Format::Jpeg | Format::Tiff | Format::Npy))
}

/// A picture in gray that was stored in color, as one channel; anything else as it is.
fn gray(image: Image) -> Image {
    let [channels, d, h, w] = image.shape;
    let Voxels::U8(values) = &image.voxels else { return image };
    let voxels = d * h * w;
    let same = channels > 1 && values.chunks(voxels.max(1)).all(|channel| channel == &values[..voxels]);
    if !same {
        return image;
    }
    let first = values[..voxels].to_vec();
    Image { voxels: Voxels::U8(first), shape: [1, d, h, w], ..image }
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
    fn error(&mut self, path: &Path, kind: FindingKind, reason: impl Into<String>, advice: &'static str) {
        self.findings.push(Finding::error(kind, reason, advice).in_file(path));
    }

    fn channel(&self, number: usize) -> &str {
        self.dataset.stored_channels.get(number).map_or("", String::as_str)
    }

    fn read(&mut self, path: &Path) -> Option<Image> {
        read(path, &Limits::default()).map_err(|error| self.findings.push(Finding::unreadable(error))).ok()
    }

    /// An image of one channel.
    fn read_flat(&mut self, path: &Path, what: &str, advice: &'static str) -> Option<Image> {
        let image = gray(self.read(path)?);
        let channels = image.shape[0];
        if channels == 1 {
            return Some(image);
        }
        let reason = format!("the {what} has {channels} channels, but it must have 1");
        self.error(path, FindingKind::SizeMismatch, reason, advice);
        None
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
            if grid.is_none() {
                header = source;
            }
            if self.dataset.reading.depth_is_channels && image.shape[0] == 1 {
                image.shape.swap(0, 1);
            }
            let image = center_crop(image, self.dataset.reading.center_crop);
            if self.fits(&mut grid, path, &image) {
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
        let labels = read_labels(path).map_err(|finding| self.findings.push(finding)).ok()?;
        let labels = center_crop(labels, self.dataset.reading.center_crop);
        self.fits(grid, path, &labels).then_some(labels.data)
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
    fn unusable(&mut self, path: &Path, error: &DataError) {
        let (reason, advice) = match error {
            DataError::Dataset { reason, advice, .. } => (reason.clone(), *advice),
            other => (other.to_string(), "write the file again"),
        };
        self.error(path, FindingKind::LabelRange, reason, advice);
    }

    /// The region of interest: what is above one half, for masks may be stored with a slope.
    fn mask(&mut self, path: &Path, grid: &mut Option<ReferenceGrid>) -> Option<Vec<u8>> {
        let mask = self.read_flat(path, "mask", "store one value per voxel")?.to_f32();
        let mask = center_crop(mask, self.dataset.reading.center_crop);
        if !self.fits(grid, path, &mask) {
            return None;
        }
        let mask: Vec<u8> = mask.data.iter().map(|&x| u8::from(x > 0.5)).collect();
        if !mask.contains(&1) {
            let advice = "correct the mask, or leave it out";
            self.error(path, FindingKind::EmptyMask, "the region of interest is empty", advice);
        }
        Some(mask)
    }

    /// Whether an array has the grid of the others; the first one defines it.
    fn fits<T>(&mut self, grid: &mut Option<ReferenceGrid>, path: &Path, volume: &Volume<T>) -> bool {
        let [_, d, h, w] = volume.shape;
        let Some(grid) = grid else {
            *grid =
                Some(ReferenceGrid { path: path.to_owned(), shape: [d, h, w], geometry: volume.geometry });
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
        // Pictures have no geometry, so that one beside a volume says nothing.
        if is_picture(path) || is_picture(&grid.path) {
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
        let grid =
            ReferenceGrid { path: path.to_owned(), shape: record.shape, geometry: Geometry::default() };
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
    use super::*;

    #[test]
    fn a_center_crop_is_in_the_middle() {
        let volume = Volume { data: (0..40).collect(), shape: [2, 1, 4, 5], geometry: Geometry::default() };
        let part = center_crop(volume.clone(), Some(2));
        assert_eq!((part.shape, part.data), ([2, 1, 2, 2], vec![6, 7, 11, 12, 26, 27, 31, 32]));
        assert_eq!(center_crop(volume.clone(), Some(9)), volume);
    }
}
