//! Reads pictures and NumPy files and writes what it read, for comparison with other programs.
//!
//! Reads paths from the standard input, one to a line. For each it prints one line of fields between tabs: the path, and
//! `read` with type and shape (`U8 3,1,5,4`), or `refused` with the reason.
//! The values go to the path with `.raw` behind it, least significant byte first, and the file written again to the path
//! with `again.` before its name.

use std::io::{self, BufRead, Write};
use std::path::Path;

use ssn_io::formats::{npy, raster};
use ssn_io::{Array, FileError, Limits, Problem, read, read_bytes};

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        match exchange(Path::new(&line)) {
            Ok(array) => {
                let shape: Vec<String> = array.shape.iter().map(usize::to_string).collect();
                writeln!(out, "{line}\tread\t{:?} {}", array.voxels.kind(), shape.join(","))?;
                std::fs::write(format!("{line}.raw"), array.voxels.to_le_bytes())?;
            }
            Err(error) => {
                writeln!(out, "{line}\trefused\t{}", error.problem.to_string().replace(['\n', '\t'], " "))?
            }
        }
    }
    Ok(())
}

/// Reads a file and writes it again.
fn exchange(path: &Path) -> Result<Array, FileError> {
    let limits = Limits::default();
    let ending = path.extension().unwrap_or_default().to_string_lossy().into_owned();
    let (array, again) = if ending == "npy" {
        let array =
            npy::parse(&read_bytes(path, &limits)?, &limits).map_err(|problem| problem.in_file(path))?;
        let again = npy::encode(&array);
        (array, again)
    } else {
        let image = read(path, &limits)?;
        let again = if ending == "tif" { raster::encode_tiff(&image) } else { raster::encode_png(&image) };
        (Array { voxels: image.voxels, shape: image.shape.to_vec() }, again)
    };
    // Not everything that is read can be written, such as stacks as PNG.
    if let (Ok(bytes), Some(name)) = (again, path.file_name()) {
        let path = path.with_file_name(format!("again.{}", name.to_string_lossy()));
        std::fs::write(&path, bytes).map_err(|error| Problem::Io(error).in_file(&path))?;
    }
    Ok(array)
}
