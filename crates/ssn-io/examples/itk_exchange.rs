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
use ssn_io::{Image, Limits};

fn main() -> Result<(), Box<dyn Error>> {
    for line in io::stdin().lock().lines() {
        let path = PathBuf::from(line?);
        let answer = match read(&path) {
            Ok(image) => {
                write_beside(&path, &image)?;
                let (geometry, [c, d, h, w]) = (image.geometry, image.shape);
                let numbers =
                    geometry.spacing.iter().chain(&geometry.origin).chain(geometry.direction.as_flattened());
                let numbers: Vec<String> = numbers.map(|x| format!("{x:?}")).collect();
                format!("ok {:?} {c} {d} {h} {w} {}", image.voxels.kind(), numbers.join(" "))
            }
            Err(reason) => format!("refused {reason}"),
        };
        writeln!(io::stdout(), "{answer}")?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<Image, Box<dyn Error>> {
    if path.is_dir() {
        return Ok(ssn_io::read(path, &Limits::default())?);
    }
    let (bytes, limits) = (fs::read(path)?, Limits::default());
    let beside = |name: &str| fs::read(path.with_file_name(name));
    let image = if path.extension().is_some_and(|end| end == "nrrd" || end == "nhdr") {
        match nrrd::parse_header(&bytes, &limits)?.data_file() {
            Some(name) => nrrd::parse_detached(&bytes, &beside(name)?, &limits)?,
            None => nrrd::parse(&bytes, &limits)?,
        }
    } else {
        match metaimage::parse_header(&bytes, &limits)?.data_file() {
            Some(name) => metaimage::parse_detached(&bytes, &beside(name)?, &limits)?,
            None => metaimage::parse(&bytes, &limits)?,
        }
    };
    Ok(image)
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
