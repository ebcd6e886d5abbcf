//! Files and folders by their names, in natural order.

use std::fs;
use std::path::{Path, PathBuf};

use ssn_io::dicom::{folder_and_series, has_labels};
use ssn_io::{Error, FileError, Format, Limits, Problem, Result, read};
use unicode_normalization::UnicodeNormalization;

use crate::dataset::Split;
use crate::resolve::PartPath;

pub use crate::text::natural_order;

/// Everything in a folder that is not hidden, in natural order: `case2` stands before `case10`.
///
/// # Errors
/// A folder that cannot be listed, and a name that [`check_name`] refuses.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let list = || -> std::io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect()
    };
    let mut paths = list().map_err(|error| Problem::Io(error).in_file(folder))?;
    paths.retain(|path| !name(path).starts_with('.'));
    paths.iter().try_for_each(|path| check_name(path))?;
    paths.sort_by(|a, b| natural_order(&name(a), &name(b)));
    Ok(paths)
}

/// Refuses a name that is not UTF-8. Cases are matched by names as text, in which all bytes that are not UTF-8 are the same:
/// one patient's label would go to another's image.
pub fn check_name(path: &Path) -> Result<()> {
    let name = path.file_name().unwrap_or_default();
    if name.to_str().is_some() {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    Err(Error::data(folder, format!("the name {name:?} is not UTF-8")).advise("rename the file or folder"))
}

/// The last part of a path as text, which [`check_name`] found to be UTF-8.
pub fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns `true` if a name ends like those of images. A DICOM file is an image if it holds labels; otherwise it is a slice,
/// and the image is its folder.
pub fn is_image(path: &Path) -> bool {
    match Format::of(path) {
        Ok(Format::Dicom) => has_labels(path),
        format => format.is_ok(),
    }
}

/// Endings of pictures that are not read.
const OTHER_PICTURES: [&str; 8] = [".bmp", ".gif", ".webp", ".jp2", ".pgm", ".ppm", ".tga", ".heic"];

/// Whether a name ends as those of pictures that are not read.
pub fn is_other_picture(path: &Path) -> bool {
    let lower = name(path).to_lowercase();
    Format::of(path).is_err() && OTHER_PICTURES.iter().any(|ending| lower.ends_with(ending))
}

/// Returns the shape `[c, d, h, w]` of an image as it is loaded.
pub fn shape(path: &Path) -> Result<[usize; 4], FileError> {
    read(path, &Limits::default()).map(|image| image.shape)
}

/// Returns the name of a file without its ending; `.nii.gz` and `.seg.nrrd` are one ending, and a folder has none.
///
/// Accents are composed with their letters, as macOS stores them apart.
pub fn stem(path: &Path) -> String {
    written_stem(path).nfc().collect()
}

fn written_stem(path: &Path) -> String {
    if let Some((folder, _)) = folder_and_series(path) {
        return name(&folder);
    }
    let name = name(path);
    let packed = if name.to_lowercase().ends_with(".gz") { ".gz".len() } else { 0 };
    let rest = &name[..name.len() - packed];
    let stem = rest.rsplit_once('.').map_or(rest, |(stem, _)| stem);
    let is_seg = matches!(Format::of(path), Ok(Format::SegNrrd));
    stem[..stem.len() - if is_seg { ".seg".len() } else { 0 }].to_owned()
}

/// Returns the files of one kind in a folder: one alone, or several that are named after the parts of a dataset. If that is not
/// clear, `is_one` looks into the files.
pub fn files_by_part(
    folder: &Path,
    endings: &[&str],
    is_one: &dyn Fn(&Path) -> bool,
) -> Result<Vec<PartPath>> {
    let matches = |path: &PathBuf| path.is_file() && ends_in(path, endings);
    let mut files: Vec<PathBuf> = entries(folder)?.into_iter().filter(matches).collect();
    let split = |path: &PathBuf| Split::from_words(name(path).split('.').next().unwrap_or_default());
    let unclear = |files: &[PathBuf]| files.len() > 1 && files.iter().any(|path| split(path).is_none());
    if unclear(&files) {
        files.retain(|path| is_one(path));
    }
    if unclear(&files) {
        let names: Vec<String> = files.iter().map(|path| name(path)).collect();
        return Err(Error::data(folder, format!("several files could be the dataset: {}", names.join(", ")))
            .advise("give one of them, or name them after train, validation and test"));
    }
    Ok(files.into_iter().map(|path| (split(&path), path)).collect())
}

/// Returns `true` if a name has one of these endings, in any case.
pub fn ends_in(path: &Path, endings: &[&str]) -> bool {
    let lower = name(path).to_lowercase();
    endings.iter().any(|ending| lower.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_go_as_a_whole() {
        for (name, expected) in [
            ("a.nii.gz", "a"),
            ("a.b.NII.GZ", "a.b"),
            ("x.png", "x"),
            ("plain", "plain"),
            ("a.Seg.nrrd", "a"),
        ] {
            assert_eq!(stem(Path::new(name)), expected);
        }
    }
}
