//! DICOM: the slices of a series in a folder are one image.
//!
//! Files are known by what they hold, not by their names. Slices are put in order by their positions along the normal of
//! their plane, as ITK does it, and the distance of slices comes from these positions, never from `SliceThickness`. A
//! series that is not a straight block of equal slices at equal distances is refused: a missing slice that nobody notices
//! would move everything behind it.
//!
//! Read are gray values of 8, 16 and 32 bits, signed or not, as they are or compressed by RLE, JPEG baseline or lossless
//! JPEG, and segmentations (SEG) as label maps. Other multi-frame files, RTSTRUCT, colors, `MONOCHROME1` (which ITK inverts and pydicom does not), JPEG-LS, JPEG 2000 and
//! deflated files are refused.
//!
//! The standard: <https://dicom.nema.org/medical/dicom/current/output/html/part03.html>, section C.7.6.

mod segmentation;
mod slice;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::formats::Format;
use crate::formats::dicom::segmentation::is_segmentation;
use crate::formats::dicom::slice::{
    COLUMNS, MODALITY, ORIENTATION, PIXEL_SPACING, POSITION, Plane, ROWS, SERIES_DESCRIPTION, SERIES_NUMBER,
    SERIES_UID, SPACING_BETWEEN_SLICES, Slice, dot, not_dicom, opened,
};
use crate::formats::seg_nrrd::Segment;
use crate::formats::text_header::{checked_geometry, shown};
use crate::geometry::Geometry;
use crate::limits::{Limits, check_left, memory_of, within};
use crate::problem::{FileError, Problem, refused};
use crate::volume::{ByteOrder, Image, Voxels};

/// One image of a folder of DICOM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesInfo {
    /// `SeriesInstanceUID`.
    pub uid: String,
    /// `SeriesDescription`; may be empty.
    pub description: String,
    /// `Modality`, such as `CT`.
    pub modality: String,
    /// `SeriesNumber`.
    pub number: Option<i64>,
    /// The files of its slices, in the order of their names.
    pub files: Vec<PathBuf>,
}

impl SeriesInfo {
    /// Whether somebody means this series: by its UID, its number, or its description in any case.
    fn is_called(&self, name: &str) -> bool {
        let number = self.number.is_some_and(|number| number.to_string() == name);
        self.uid == name || number || self.description.eq_ignore_ascii_case(name)
    }

    /// What it is, in a few words.
    pub fn describe(&self) -> String {
        let number = self.number.map_or(String::new(), |number| format!("number {number}, "));
        let slices = match self.files.len() {
            1 => "1 slice".to_owned(),
            count => format!("{count} slices"),
        };
        format!("{} ({number}{}, {slices}, UID {})", shown(&self.description), self.modality, self.uid)
    }
}

/// The folder of a path that names a DICOM series, and the series that is chosen, if any: a folder, or
/// `FOLDER#DESCRIPTION`, `FOLDER#NUMBER` or `FOLDER#UID`. Nothing for other paths.
pub fn folder_and_series(path: &Path) -> Option<(PathBuf, Option<String>)> {
    if path.exists() {
        return path.is_dir().then(|| (path.to_owned(), None));
    }
    let (folder, series) = path.to_str()?.rsplit_once('#')?;
    Path::new(folder).is_dir().then(|| (folder.into(), Some(series.to_owned())))
}

/// Returns `true` for labels: a segmentation, in a file or alone in a folder, or contours of RTSTRUCT, which [`read_file`]
/// refuses with advice.
pub fn has_labels(path: &Path) -> bool {
    if path.is_dir() {
        return matches!(kinds(path), Kinds { images: 0, labels: 1 });
    }
    matches!(Slice::open(path, &Limits::default()), Ok(Some(slice)) if is_labels(&slice))
}

fn is_labels(slice: &Slice) -> bool {
    is_segmentation(slice) || slice.text(MODALITY) == RTSTRUCT
}

const RTSTRUCT: &str = "RTSTRUCT";

/// Returns the segments of a segmentation, in a file or alone in a folder; none for other files.
pub fn segments(path: &Path, limits: &Limits) -> Result<Vec<Segment>, FileError> {
    let slices = match folder_and_series(path) {
        Some((folder, series)) => chosen(&folder, series.as_deref(), limits)?.1,
        None => Slice::open(path, limits).map_err(|problem| problem.in_file(path))?.into_iter().collect(),
    };
    let [slice] = &slices[..] else { return Ok(vec![]) };
    if !is_segmentation(slice) {
        return Ok(vec![]);
    }
    segmentation::segments(slice, limits).map_err(|problem| problem.in_file(path))
}

/// Whether a folder itself holds a DICOM image, among the first files whose names are not those of another format, or a
/// segmentation alone.
pub fn is_series_folder(folder: &Path) -> bool {
    let Kinds { images, labels } = kinds(folder);
    images > 0 || labels == 1
}

/// DICOM files in a folder, up to the first image.
#[derive(Default)]
struct Kinds {
    images: usize,
    labels: usize,
}

fn kinds(folder: &Path) -> Kinds {
    let mut found = Kinds::default();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    let paths = entries.flatten().map(|entry| entry.path());
    let paths = paths.filter(|path| !matches!(Format::of(path), Ok(format) if format != Format::Dicom));
    for path in paths.filter(|path| path.is_file()).take(MOST_OPENED) {
        match opened(&path) {
            Ok(Some(_)) if has_labels(&path) => found.labels += 1,
            Ok(Some(_)) => return Kinds { images: 1, ..found },
            _ => {}
        }
    }
    found
}

/// The series of a folder that `series` means, a description, number or UID; without one, the folder must hold a single
/// series.
pub fn find_series(folder: &Path, series: Option<&str>, limits: &Limits) -> Result<SeriesInfo, FileError> {
    Ok(chosen(folder, series, limits)?.0)
}

/// The files of a series in the order of its slices; `series` as in [`find_series`].
pub fn series_files(folder: &Path, series: Option<&str>, limits: &Limits) -> Result<Vec<PathBuf>, FileError> {
    let mut slices = chosen(folder, series, limits)?.1;
    if !slices.iter().any(is_segmentation) {
        slices = straight_block(folder, slices)?.0;
    }
    Ok(slices.into_iter().map(|slice| slice.path).collect())
}

/// The image of a series, `[1, d, h, w]`; `series` as in [`find_series`].
pub fn read_series(folder: &Path, series: Option<&str>, limits: &Limits) -> Result<Image, FileError> {
    image_of(folder, chosen(folder, series, limits)?.1, limits)
}

/// The image of one file, of depth 1.
pub fn read_file(path: &Path, limits: &Limits) -> Result<Image, FileError> {
    let slice = Slice::open(path, limits).and_then(|slice| slice.ok_or_else(not_dicom));
    let slice = slice.map_err(|problem| problem.in_file(path))?;
    if slice.text(MODALITY) == RTSTRUCT {
        let what = "RTSTRUCT, contours instead of voxels,".to_owned();
        let advice = "convert it to a label map, for example with 3D Slicer, plastimatch or dcmrtstruct2nii";
        return Err(Problem::Unsupported { what, advice }.in_file(path));
    }
    image_of(path, vec![slice], limits)
}

type Series = (SeriesInfo, Vec<Slice>);

/// The series of images in a folder and the folders in it, by their numbers. Only headers are read.
fn by_series(folder: &Path, limits: &Limits) -> Result<Vec<Series>, FileError> {
    let mut found = BTreeMap::<String, Series>::new();
    for path in files_below(folder, limits).map_err(|problem| problem.in_file(folder))? {
        let Some(slice) = Slice::open(&path, limits).map_err(|problem| problem.in_file(&path))? else {
            let end = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
            if ["dcm", "ima", "dicom"].contains(&end.as_str()) {
                return Err(not_dicom().in_file(path));
            }
            continue;
        };
        if slice.is_image() {
            let uid = slice.text(SERIES_UID);
            let (info, slices) = found.entry(uid.clone()).or_insert_with(|| {
                let number = slice.text(SERIES_NUMBER).parse().ok();
                let (description, modality) = (slice.text(SERIES_DESCRIPTION), slice.text(MODALITY));
                (SeriesInfo { uid, description, modality, number, files: vec![] }, vec![])
            });
            info.files.push(path);
            slices.push(slice);
        }
    }
    let mut found: Vec<Series> = found.into_values().collect();
    // A segmentation next to the slices of its image is no image.
    let is_labels = |(_, slices): &Series| slices.iter().all(is_segmentation);
    if !found.iter().all(is_labels) {
        found.retain(|series| !is_labels(series));
    }
    found.sort_by_key(|(info, _)| info.number);
    Ok(found)
}

/// The plain files of a folder and the folders in it, by name. Pipes, devices and hidden files are left alone.
fn files_below(folder: &Path, limits: &Limits) -> Result<Vec<PathBuf>, Problem> {
    let (mut files, mut folders) = (vec![], vec![folder.to_owned()]);
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(&inner)? {
            let entry = entry?;
            let path = entry.path();
            let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            match fs::metadata(&path) {
                Ok(about) if about.is_file() && !hidden => files.push(path),
                Ok(about) if about.is_dir() && !hidden && inner == folder => folders.push(path),
                _ => {}
            }
            within("the number of files in the folder", files.len() as u64, limits.members, "members")?;
        }
    }
    files.sort();
    Ok(files)
}

/// The only series, or the one that is called so.
fn chosen(folder: &Path, series: Option<&str>, limits: &Limits) -> Result<Series, FileError> {
    let all = by_series(folder, limits)?;
    let names: Vec<String> = all.iter().take(MOST_LISTED).map(|(info, _)| info.describe()).collect();
    let listed = format!("{}{}", names.join(", "), if all.len() > MOST_LISTED { ", …" } else { "" });
    let is_meant = |(info, _): &Series| series.is_none_or(|series| info.is_called(series));
    let mut meant: Vec<Series> = all.into_iter().filter(is_meant).collect();
    if meant.len() == 1 {
        return Ok(meant.remove(0));
    }
    let choose = "name one behind the folder, as FOLDER#DESCRIPTION, FOLDER#NUMBER or FOLDER#UID";
    let problem = match (series, meant.len()) {
        _ if listed.is_empty() => {
            let advice = "give the folder with the files of its slices";
            refused("the folder", "without DICOM images", "one with a series of slices", advice)
        }
        (None, count) => refused("the number of series", format!("{count}: {listed}"), "1", choose),
        (Some(name), count) => {
            let found = format!("{}, which {count} of the series have: {listed}", shown(name));
            refused("the description, number or UID", found, "that of one series", choose)
        }
    };
    Err(problem.in_file(folder))
}

/// Files that are opened to find out whether a folder is one of DICOM files.
const MOST_OPENED: usize = 20;
/// Series that a message lists.
const MOST_LISTED: usize = 10;

/// How far slices of one series may differ, relative to one voxel or one unit.
const CLOSE: f64 = 1e-4;
/// How far the distance of two slices may be from that of the others, and slices from a straight line, in distances.
const UNEVEN: f64 = 0.02;

/// The slices in their order, and where the block lies in LPS.
fn straight_block(place: &Path, slices: Vec<Slice>) -> Result<(Vec<Slice>, Geometry), FileError> {
    let plane = |slice: Slice| match slice.plane() {
        Ok(plane) => Ok((slice, plane)),
        Err(problem) => Err(problem.in_file(slice.path)),
    };
    let mut block = slices.into_iter().map(plane).collect::<Result<Vec<_>, _>>()?;
    let Some(&(_, first)) = block.first() else { return Err(not_dicom().in_file(place)) };
    for (slice, plane) in &block {
        check_alike(&block[0].0, &first, slice, plane).map_err(|problem| problem.in_file(&slice.path))?;
    }
    let across = first.axes[2];
    block.sort_by(|(_, a), (_, b)| dot(a.position, across).total_cmp(&dot(b.position, across)));
    let between = match &block[..] {
        [(slice, _)] => {
            let said = slice.decimals(SPACING_BETWEEN_SLICES).map_err(|problem| problem.in_file(place))?;
            said.map_or(1.0, |[distance]| distance)
        }
        _ => distance(&block, across).map_err(|(path, problem)| problem.in_file(path.unwrap_or(place)))?,
    };
    let (origin, [i, j]) = (block[0].1.position, first.spacing);
    let direction = [0, 1, 2].map(|row| first.axes.map(|axis| axis[row]));
    let geometry = Geometry { spacing: [i, j, between], origin, direction };
    let names = [PIXEL_SPACING.name, POSITION.name, ORIENTATION.name];
    let geometry = checked_geometry(geometry, names).map_err(|problem| problem.in_file(place))?;
    Ok((block.into_iter().map(|(slice, _)| slice).collect(), geometry))
}

/// Refuses a slice that does not fit onto another one.
fn check_alike(first: &Slice, plane: &Plane, other: &Slice, other_plane: &Plane) -> Result<(), Problem> {
    let far = |a: &[f64], b: &[f64], unit: f64| a.iter().zip(b).any(|(a, b)| (a - b).abs() > CLOSE * unit);
    let turned = far(plane.axes.as_flattened(), other_plane.axes.as_flattened(), 1.0);
    let differs = [
        (ROWS, first.number(ROWS)? != other.number(ROWS)?),
        (COLUMNS, first.number(COLUMNS)? != other.number(COLUMNS)?),
        (ORIENTATION, turned),
        (PIXEL_SPACING, far(&plane.spacing, &other_plane.spacing, plane.spacing[0])),
    ];
    let Some((attribute, _)) = differs.into_iter().find(|(_, differs)| *differs) else { return Ok(()) };
    let shown_of = |slice: &Slice| match attribute.tag {
        tag if tag == ROWS.tag || tag == COLUMNS.tag => slice.number(attribute).map(|x| x.to_string()),
        _ => Ok(shown(&slice.text(attribute))),
    };
    let found = format!("{} ({} in {})", shown_of(other)?, shown_of(first)?, name(&first.path));
    let advice = "the files are of different scans: keep those of one in the folder";
    Err(refused(attribute.name, found, "the same in all slices", advice))
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The distance of neighboring slices, if it is the same everywhere and straight along the normal.
fn distance(block: &[(Slice, Plane)], across: [f64; 3]) -> Result<f64, (Option<&Path>, Problem)> {
    let heights: Vec<f64> = block.iter().map(|(_, plane)| dot(plane.position, across)).collect();
    let steps: Vec<f64> = heights.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mut sorted = steps.clone();
    sorted.sort_by(f64::total_cmp);
    let usual = sorted[sorted.len() / 2];
    for (pair, &step) in block.windows(2).zip(&steps) {
        let [before, after] = [0, 1].map(|at| name(&pair[at].0.path));
        if step <= CLOSE * usual.max(1.0) {
            let found = format!("that of {before}");
            let advice = "remove one of the two, or choose one phase of the series";
            let problem = refused(POSITION.name, found, "another one in every slice", advice);
            return Err((Some(&pair[1].0.path), problem));
        }
        if (step - usual).abs() > UNEVEN * usual {
            let found = format!("{step:.4} mm between {before} and {after}, and {usual:.4} mm elsewhere");
            let advice =
                "slices are missing or are of two scans: copy the folder again, or export the series again";
            return Err((None, refused("the distance of slices", found, "the same everywhere", advice)));
        }
    }
    let (origin, length) = (block[0].1.position, heights[heights.len() - 1] - heights[0]);
    let aside = |(plane, height): (&Plane, &f64)| {
        let shift =
            [0, 1, 2].map(|row| plane.position[row] - origin[row] - (height - heights[0]) * across[row]);
        dot(shift, shift).sqrt()
    };
    let shift = block.iter().map(|(_, plane)| plane).zip(&heights).map(aside).fold(0.0, f64::max);
    if shift > UNEVEN * usual {
        let what =
            format!("a series whose slices are shifted sideways, by up to {shift:.3} mm (gantry tilt),");
        let advice = "resample it onto a straight grid, for example with 3D Slicer, and give that file";
        return Err((None, Problem::Unsupported { what, advice }));
    }
    Ok(length / steps.len() as f64)
}

/// The image of slices. `place` is what a message names that is about no single one.
fn image_of(place: &Path, slices: Vec<Slice>, limits: &Limits) -> Result<Image, FileError> {
    if let [slice] = &slices[..]
        && is_segmentation(slice)
    {
        return segmentation::image(slice, limits).map_err(|problem| problem.in_file(&slice.path));
    }
    let (slices, geometry) = straight_block(place, slices)?;
    let format = |slice: &Slice| slice.format().map_err(|problem| problem.in_file(&slice.path));
    let formats = slices.iter().map(format).collect::<Result<Vec<_>, _>>()?;
    let (kind, [h, w]) = (formats[0].kind, formats[0].size);
    let shape = [1, slices.len(), h, w];
    for (slice, format) in slices.iter().zip(&formats) {
        if format.kind != kind {
            let found = format!("{:?} ({kind:?} in {})", format.kind, name(&slices[0].path));
            let advice = "store all slices with the same bits and sign";
            return Err(
                refused("the type of values", found, "the same in all slices", advice).in_file(&slice.path)
            );
        }
    }
    limits.check_values(&shape).map_err(|problem| problem.in_file(place))?;
    let same = formats.iter().all(|format| format.rescale == formats[0].rescale);
    let (mut bytes, mut scaled) = (vec![], vec![]);
    for (slice, format) in slices.iter().zip(&formats) {
        let values = slice.values(format, limits);
        let mut values = values.map_err(|problem| problem.in_file(&slice.path))?;
        if bytes.is_empty() && scaled.is_empty() {
            let count = slices.len().saturating_mul(values.len() / kind.bytes());
            let memory = memory_of(count as u64, kind.bytes());
            check_left(memory).map_err(|problem| problem.in_file(place))?;
        }
        let [slope, intercept] = format.rescale;
        match same {
            true => bytes.append(&mut values),
            false => scaled
                .extend(Voxels::from_bytes(kind, &values, ByteOrder::Little).scaled_f32(slope, intercept)),
        }
    }
    let voxels = if same { Voxels::from_bytes(kind, &bytes, ByteOrder::Little) } else { Voxels::F32(scaled) };
    let image = Image::new(voxels, shape, geometry.with_x_and_y_flipped(), limits);
    let image = image.map_err(|problem| problem.in_file(place))?;
    let [slope, intercept] = if same { formats[0].rescale } else { [1.0, 0.0] };
    Ok(Image { slope, intercept, ..image })
}
