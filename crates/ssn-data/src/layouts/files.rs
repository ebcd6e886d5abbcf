//! Files and folders by their names, in natural order.

use std::fs;
use std::path::{Path, PathBuf};

use ssn_io::dicom::{folder_and_series, is_series_folder};
use ssn_io::{FileError, Format, Limits, Problem, read};

use crate::error::{DataError, Result};

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
    Err(DataError::dataset(folder, format!("the name {name:?} is not UTF-8"), "rename the file or folder"))
}

/// The folders in a folder.
pub fn subfolders(folder: &Path) -> Result<Vec<PathBuf>> {
    Ok(entries(folder)?.into_iter().filter(|path| path.is_dir()).collect())
}

/// The files in a folder whose names end as those of images do, and the folders in it of DICOM files.
pub fn images(folder: &Path) -> Result<Vec<PathBuf>> {
    let is_one = |path: &PathBuf| {
        if path.is_dir() { is_series_folder(path) } else { is_image(path) && path.is_file() }
    };
    Ok(entries(folder)?.into_iter().filter(is_one).collect())
}

/// The last part of a path as text, which [`check_name`] found to be UTF-8.
pub fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Whether a name ends as those of images do. A DICOM file is a slice of one: the image is its folder.
pub fn is_image(path: &Path) -> bool {
    Format::of(path).is_ok_and(|format| format != Format::Dicom)
}

/// Endings of pictures that are not read.
const OTHER_PICTURES: [&str; 8] = [".bmp", ".gif", ".webp", ".jp2", ".pgm", ".ppm", ".tga", ".heic"];

/// Whether a name ends as those of pictures that are not read.
pub fn is_other_picture(path: &Path) -> bool {
    let lower = name(path).to_lowercase();
    OTHER_PICTURES.iter().any(|ending| lower.ends_with(ending))
}

/// Returns the shape `[c, d, h, w]` of an image as it is loaded.
pub fn shape(path: &Path) -> Result<[usize; 4], FileError> {
    read(path, &Limits::default()).map(|image| image.shape)
}

/// The name of a file without its ending; `.nii.gz` and `.seg.nrrd` are one ending. A folder has none.
pub fn stem(path: &Path) -> String {
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

/// A subfolder or file by its name in any case, the first of several names that is there.
pub fn child(folder: &Path, names: &[&str]) -> Result<Option<PathBuf>> {
    let present = entries(folder)?;
    let find = |wanted: &&str| present.iter().find(|path| name(path).eq_ignore_ascii_case(wanted)).cloned();
    Ok(names.iter().find_map(find))
}

/// A number behind the last separator of a name, with what stands before: `case1_r2` is (`case1`, 2).
///
/// The separator is `_` or `-`, and one of `words` may stand before the number.
pub fn numbered_suffix<'a>(stem: &'a str, words: &[&str]) -> Option<(&'a str, usize)> {
    let at = stem.rfind(['_', '-'])?;
    let (before, last) = (&stem[..at], stem[at + 1..].to_lowercase());
    let digits = words.iter().find_map(|word| last.strip_prefix(word)).unwrap_or(&last);
    if before.is_empty() || digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().map(|number| (before, number))
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

    #[test]
    fn suffixes_are_numbers() {
        let words = ["rater", "r"];
        assert_eq!(numbered_suffix("case1_0", &words), Some(("case1", 0)));
        assert_eq!(numbered_suffix("case_1-rater12", &words), Some(("case_1", 12)));
        assert_eq!(numbered_suffix("case_r2", &words), Some(("case", 2)));
        for none in ["case1", "case_x", "_3", "case_r", "case_3a"] {
            assert_eq!(numbered_suffix(none, &words), None, "{none}");
        }
    }
}
