//! Opening files to read: plain files alone. A pipe would wait for a writer for ever, and a device has no end.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::problem::{Problem, refused};

/// Opens a plain file to read. The type is that of what was opened, so that nothing can be exchanged in between.
///
/// # Errors
/// What the system says, and anything that is no plain file.
pub fn open_file(path: &Path) -> Result<File, Problem> {
    // Opening a pipe does not wait, and a terminal does not become that of the program.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    if kind.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
    }
    let found = format!("{}, which is no plain file", name(kind));
    Err(refused("the path", found, "a plain file", "give another one"))
}

/// The bytes of a plain file, without any limit: for files of our own.
///
/// # Errors
/// What the system says, and anything that is no plain file.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open_file(path).map_err(|problem| match problem {
        Problem::Io(error) => error,
        other => io::Error::other(other.to_string()),
    })?;
    let mut bytes = vec![];
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The same of a text.
///
/// # Errors
/// As [`read_file`], and bytes that are no UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_file(path)?).map_err(io::Error::other)
}

fn name(kind: std::fs::FileType) -> &'static str {
    match kind {
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(path: &Path) -> String {
        open_file(path).unwrap_err().to_string()
    }

    #[test]
    fn only_plain_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let [plain, pipe, link] = ["plain", "pipe", "link"].map(|name| folder.path().join(name));
        std::fs::write(&plain, b"x").unwrap();
        assert!(open_file(&plain).is_ok());
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::os::unix::fs::symlink(&pipe, &link).unwrap();
        for pipe in [pipe, link] {
            assert_eq!(
                said(&pipe),
                "the path is a pipe, which is no plain file, but it must be a plain file; give another one"
            );
        }
        for device in ["/dev/null", "/dev/zero"] {
            assert!(said(Path::new(device)).contains("a device, which is no plain file"));
        }
        assert!(matches!(open_file(folder.path()), Err(Problem::Io(_))));
    }
}
