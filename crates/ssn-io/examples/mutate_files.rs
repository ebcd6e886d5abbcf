//! Reads mutations of files for some seconds: `mutate_files SEED SECONDS FOLDER SEEDS`.
//!
//! Small files of every format that can be written here, and all files below the folder SEEDS, are changed at random and read
//! from a file in FOLDER. A panic ends it with code 101, and the file stays.

use std::error::Error;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ssn_io::{
    Array, Format, Geometry, Image, Limits, Voxels, npy, pickle, read, read_bytes, torch_file, write,
};

/// Endings of files that are read as something else than an image.
const OTHER: [&str; 5] = ["pickle", "pickle.gz", "pt", "npz", "npy"];

/// A file that is mutated: its ending, and its bytes.
type Seed = (String, Vec<u8>);

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [seed, seconds, folder, seeds] = &words[..] else {
        return Err("usage: mutate_files SEED SECONDS FOLDER SEEDS".into());
    };
    let (mut chance, end) = (Chance(seed.parse()?), Instant::now() + Duration::from_secs(seconds.parse()?));
    let folder = PathBuf::from(folder);
    let mut files = written(&folder)?;
    collect(Path::new(seeds), &mut files)?;
    files.retain(|(ending, _)| {
        OTHER.contains(&ending.as_str()) || Format::of(Path::new(&format!("a.{ending}"))).is_ok()
    });
    // Panics inside of decoders are caught by the readers; what comes through is an error below.
    std::panic::set_hook(Box::new(|_| {}));
    let (mut inputs, mut accepted) = (0u64, 0u64);
    while Instant::now() < end {
        let (ending, bytes) = &files[chance.below(files.len())];
        let other = &files[chance.below(files.len())].1;
        let path = folder.join(format!("input.{ending}"));
        fs::write(&path, mutated(bytes, other, &mut chance))?;
        let read = catch_unwind(AssertUnwindSafe(|| is_read(&path, ending)));
        inputs += 1;
        accepted += u64::from(read.map_err(|_| format!("{} made the program panic", path.display()))?);
        fs::remove_file(&path)?;
    }
    println!("{accepted} were read, the others refused\ninputs {inputs}");
    Ok(())
}

/// SplitMix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % count.max(1) as u64) as usize
    }
}

/// A small image in every format that can be written, by its ending.
fn written(folder: &Path) -> Result<Vec<Seed>, Box<dyn Error>> {
    let mut files = vec![];
    for (ending, depth) in [("nii", 3), ("nii.gz", 3), ("nrrd", 3), ("mha", 3), ("png", 1)] {
        let voxels = Voxels::U8((0..depth * 42).map(|i| (i % 5) as u8).collect());
        let image = Image::new(voxels, [1, depth, 6, 7], Geometry::default(), &Limits::default())?;
        let path = folder.join(format!("seed.{ending}"));
        write(&path, &image)?;
        files.push((ending.to_owned(), fs::read(&path)?));
        fs::remove_file(&path)?;
    }
    let array = Array { shape: vec![3, 4], voxels: Voxels::F32(vec![0.5; 12]) };
    files.push(("npy".to_owned(), npy::encode(&array)?));
    Ok(files)
}

/// All files below a folder.
fn collect(folder: &Path, files: &mut Vec<Seed>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if let Some((_, ending)) =
            path.file_name().unwrap_or_default().to_string_lossy().split_once('.')
        {
            files.push((ending.to_owned(), fs::read(&path)?));
        }
    }
    files.sort();
    Ok(())
}

/// The bytes, with one to four changes of the kinds that break readers.
fn mutated(bytes: &[u8], other: &[u8], chance: &mut Chance) -> Vec<u8> {
    const NUMBERS: [u64; 8] = [0, 1, 0x7f, 0xff, 0x7fff_ffff, 0xffff_ffff, u64::MAX, 1 << 40];
    let mut bytes = bytes.to_vec();
    for _ in 0..1 + chance.below(4) {
        let length = bytes.len();
        let place = chance.below(length);
        match chance.below(8) {
            _ if bytes.is_empty() => bytes.push(chance.below(256) as u8),
            0 | 1 => bytes[place] ^= 1 << chance.below(8),
            2 => bytes[place] = chance.below(256) as u8,
            3 => bytes.truncate(place),
            4 => {
                // A number in a header, in either byte order.
                let (number, size) = (NUMBERS[chance.below(NUMBERS.len())], 1 << chance.below(4));
                let written = if chance.below(2) == 0 {
                    number.to_le_bytes()
                } else {
                    number.rotate_left(32).to_be_bytes()
                };
                bytes.iter_mut().skip(place).zip(&written[..size]).for_each(|(byte, new)| *byte = *new);
            }
            5 => drop(bytes.drain(place..(place + chance.below(32)).min(length))),
            6 => {
                let copied: Vec<u8> = bytes[place..(place + chance.below(64)).min(length)].to_vec();
                let to = chance.below(length);
                bytes.splice(to..to, copied);
            }
            _ => {
                let from = chance.below(other.len());
                let part = other[from..(from + chance.below(64)).min(other.len())].to_vec();
                bytes.splice(place..place, part);
            }
        }
    }
    bytes
}

/// Reads a file as its name says, and converts its values; whether it could.
fn is_read(path: &Path, ending: &str) -> bool {
    let limits = Limits { expanded_bytes: 256 << 20, values: 1 << 26, ..Limits::default() };
    let bytes = || read_bytes(path, &limits).ok();
    match ending {
        "pickle" | "pickle.gz" => bytes().is_some_and(|bytes| {
            pickle::parse(&bytes, &limits).is_ok_and(|pickle| match pickle.root().entries() {
                Ok(Some(entries)) => {
                    entries.into_iter().all(|(_, value)| value.array().is_none_or(|array| array.is_ok()))
                }
                _ => false,
            })
        }),
        "pt" => bytes().is_some_and(|bytes| torch_file::parse(&bytes, &limits).is_ok()),
        "npz" => bytes().is_some_and(|bytes| npy::parse_npz(&bytes, &[], &limits).is_ok()),
        "npy" => bytes().is_some_and(|bytes| npy::parse(&bytes, &limits).is_ok()),
        _ => read(path, &limits).is_ok_and(|image| {
            let _ = image.to_labels();
            image.to_f32().data.len() == image.shape.iter().product::<usize>()
        }),
    }
}
