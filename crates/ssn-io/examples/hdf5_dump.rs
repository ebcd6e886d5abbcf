//! Prints what the HDF5 reader makes of files, for comparison with h5py.
//!
//! Reads paths from the standard input. For each dataset of a file it prints the file, the path of the dataset, its type
//! or `text`, its shape or the number of texts, and the CRC-32 of its values as little-endian bytes, or of its texts with a
//! zero behind each; for a file that is refused, the file, `refused` and the reason. Fields are separated by tabs.

use std::io::{self, BufRead, Write};
use std::path::Path;

use flate2::Crc;
use ssn_io::Limits;
use ssn_io::formats::hdf5;
use ssn_io::formats::hdf5::Dataset;

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let file = line?;
        match hdf5::read(Path::new(&file), &Limits::default()) {
            Ok(datasets) => {
                for (path, dataset) in datasets {
                    let (kind, shape, bytes) = described(&dataset);
                    let mut crc = Crc::new();
                    crc.update(&bytes);
                    writeln!(out, "{file}\t{path}\t{kind}\t{shape}\t{}", crc.sum())?;
                }
            }
            Err(problem) => writeln!(out, "{file}\trefused\t{problem}")?,
        }
    }
    Ok(())
}

fn described(dataset: &Dataset) -> (String, String, Vec<u8>) {
    match dataset {
        Dataset::Array(array) => {
            let shape: Vec<String> = array.shape.iter().map(usize::to_string).collect();
            (format!("{:?}", array.voxels.kind()), shape.join(","), array.voxels.to_le_bytes())
        }
        Dataset::Text(texts) => {
            let bytes = texts.iter().flat_map(|text| text.bytes().chain([0])).collect();
            ("text".to_owned(), texts.len().to_string(), bytes)
        }
    }
}
