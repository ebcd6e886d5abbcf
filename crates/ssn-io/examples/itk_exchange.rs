//! Reads NRRD and MetaImage files and folders of DICOM series whose names come on the standard input, one on a line, for
//! comparison with ITK.
//!
//! For each file a line comes back: `ok`, the type, the shape, and spacing, origin and direction; or `refused` and
//! the reason. Beside a file that is read come its values (`.voxels`, little endian, `[c, d, h, w]`) and what
//! the writers make of it (`.raw.nrrd`, `.gz.nrrd`, `.raw.mha`, `.zlib.mha`).

use std::error::Error;
use std::fs;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use ssn_io::formats::{metaimage, nrrd};
use ssn_io::{Image, Limits, read};

fn main() -> Result<(), Box<dyn Error>> {
    for line in io::stdin().lock().lines() {
        let path = PathBuf::from(line?);
        let answer = match read(&path, &Limits::default()) {
            Ok(image) => {
                write_beside(&path, &image)?;
                let (geometry, [c, d, h, w]) = (image.geometry, image.shape);
                let numbers =
                    geometry.spacing.iter().chain(&geometry.origin).chain(geometry.direction.as_flattened());
                let numbers: Vec<String> = numbers.map(|x| format!("{x:?}")).collect();
                format!("ok {:?} {c} {d} {h} {w} {}", image.voxels.kind(), numbers.join(" "))
            }
            Err(error) => format!("refused {}", error.problem),
        };
        writeln!(io::stdout(), "{answer}")?;
    }
    Ok(())
}

fn write_beside(path: &Path, image: &Image) -> Result<(), Box<dyn Error>> {
    let named = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    fs::write(named(".voxels"), image.voxels.to_le_bytes())?;
    fs::write(named(".raw.nrrd"), nrrd::encode(image))?;
    fs::write(named(".gz.nrrd"), nrrd::encode_gzip(image)?)?;
    fs::write(named(".raw.mha"), metaimage::encode(image))?;
    fs::write(named(".zlib.mha"), metaimage::encode_zlib(image)?)?;
    Ok(())
}
