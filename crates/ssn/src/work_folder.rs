//! The folder in which a verb does many things one after the other, and goes on where it was stopped.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use ssn_data::{Synthetic, SyntheticConfig};
use ssn_io::write_atomically;

use crate::error::{Error, ErrorKind, Result};
use ssn_core::Control;

/// A synthetic dataset, which is written before the folder is marked.
const DATA: &str = "data";

/// Returns the error of work that was stopped, and that the same command resumes.
pub fn stopped_work() -> Error {
    Error::stopped().advise("the same command goes on")
}

/// What was stopped on the way goes on with the command of the whole.
pub fn stopped(error: Error) -> Error {
    match error.kind {
        ErrorKind::Stopped => stopped_work(),
        _ => error,
    }
}

/// Whether the folder is one that was begun with the same settings, which the text of its marking file tells; it is
/// not yet if it is empty, or as far as a dataset.
///
/// # Errors
/// A folder with other settings (`what` is in it), or with anything else.
pub fn is_begun(folder: &Path, mark: &str, text: &str, what: &str) -> Result<bool> {
    let path = folder.join(mark);
    if path.exists() {
        return match ssn_io::read_text(&path).is_ok_and(|old| old == text) {
            true => Ok(true),
            false => Err(occupied(folder, what)),
        };
    }
    // What a process that was killed began to write is no obstacle.
    let is_own =
        |name: &OsStr| name == DATA || name.as_encoded_bytes().starts_with(ssn_io::UNFINISHED.as_bytes());
    let others = fs::read_dir(folder)
        .is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(|entry| !is_own(&entry.file_name()))));
    if others || folder.is_file() { Err(occupied(folder, "it is not empty")) } else { Ok(false) }
}

/// That a folder cannot be used, with the reason.
pub fn occupied(folder: &Path, why: &str) -> Error {
    let message = format!("{}: {why}; name another folder with --out, or remove it", folder.display());
    Error::usage(message)
}

/// Makes a folder and all above it.
pub fn make_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|error| {
        Error::new(ErrorKind::Io, format!("cannot create the folder {}: {error}", path.display()))
    })
}

/// Writes a file, whole or not at all.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    Ok(write_atomically(path, |out| out.write_all(bytes))?)
}

/// Writes synthetic images, which are the dataset in the folder.
pub fn write_images(config: SyntheticConfig, folder: &Path, control: Control<'_>) -> Result<()> {
    let cases = config.cases;
    let set = Synthetic::new(config)?;
    let phase = control.phase("making images", cases, "images");
    set.write(&folder.join(DATA), &|done| phase.reached(done))?;
    Ok(())
}

/// What a config in the folder says about them: where they are, their scale (pictures have gray values of 16 bits), and how they
/// are divided.
pub fn data_section(config: &SyntheticConfig) -> String {
    let scale = match config.size[0] {
        1 => {
            "# Gray values of 16 bits to -0.5 ... 0.5.\n\
             normalization = { kind = \"scale\", subtract = 32767.5, divide = 65535 }\n"
        }
        _ => "",
    };
    format!("[data]\npath = \"{DATA}\"\n{scale}\n[data.split]\nratios = [60, 20, 20]\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_belongs_to_one_text() {
        let folder = tempfile::tempdir().unwrap();
        let begun = |text| is_begun(folder.path(), "mark", text, "something else is in it");
        assert!(!begun("a").unwrap());
        fs::create_dir(folder.path().join(DATA)).unwrap();
        assert!(!begun("a").unwrap());
        write_file(&folder.path().join("mark"), b"a").unwrap();
        assert!(begun("a").unwrap());
        assert!(begun("b").unwrap_err().to_string().contains("something else is in it"));
        fs::remove_file(folder.path().join("mark")).unwrap();
        fs::write(folder.path().join("other"), "").unwrap();
        assert!(begun("a").unwrap_err().to_string().contains("not empty"));
    }
}
