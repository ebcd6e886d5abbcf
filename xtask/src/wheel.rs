//! One wheel on disk: is it the pinned one, and do the files that come out of it match its RECORD.

use crate::digest::{self, Digest};
use crate::error::Error;
use crate::manifest::Files;
use crate::pins::{Parts, Wheel};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::Path;
use zip::ZipArchive;

type Archive = ZipArchive<BufReader<File>>;

/// Checks size and SHA-256 of a wheel against its pin.
pub fn verify(path: &Path, wheel: &Wheel<'_>) -> Result<(), Error> {
    let file = File::open(path).map_err(Error::io("open", path))?;
    let digest = digest::copy(file, io::sink()).map_err(Error::io("read", path))?;
    if digest.hex() == wheel.sha256 && digest.bytes == wheel.bytes {
        return Ok(());
    }
    Err(Error::WrongWheel {
        package: wheel.package.into(),
        version: wheel.version.into(),
        found: digest.hex(),
        expected: wheel.sha256.into(),
    })
}

/// Unpacks what these parts keep of the wheel into `folder`, and checks every file against the RECORD.
pub fn unpack(path: &Path, wheel: &Wheel<'_>, parts: Parts, folder: &Path) -> Result<Files, Error> {
    let file = File::open(path).map_err(Error::io("open", path))?;
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|error| damaged(path, error))?;
    let record = read_record(path, &mut archive)?;
    let licences = wheel.licences();
    let kept: Vec<&str> = wheel.kept(parts).collect();
    let mut files = Files::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|error| damaged(path, error))?;
        let name = entry.name().map_err(|error| damaged(path, error))?.into_owned();
        if entry.is_dir() || !kept.iter().chain([&licences.as_str()]).any(|pattern| matches(pattern, &name)) {
            continue;
        }
        let Some(inside) = entry.enclosed_name() else {
            return Err(damaged(path, format!("{name} points out of the folder")));
        };
        let expected = record.get(&name).ok_or_else(|| damaged(path, format!("RECORD lacks {name}")))?;
        let digest = write(&mut entry, &folder.join(inside), path)?;
        if digest.base64url() != expected.sha256 || digest.bytes != expected.bytes {
            return Err(damaged(path, format!("{name} does not match RECORD")));
        }
        files.insert(name, digest.into());
    }
    match kept.iter().find(|pattern| !files.keys().any(|name| matches(pattern, name))) {
        Some(missing) => Err(damaged(path, format!("{missing} is not in it"))),
        None => Ok(files),
    }
}

/// Whether a path of a wheel is the file, or lies in the folder, that the pattern names.
fn matches(pattern: &str, name: &str) -> bool {
    if pattern.ends_with('/') { name.starts_with(pattern) } else { name == pattern }
}

/// Writes one file, telling a wheel that cannot be read from a disk that cannot be written.
fn write(entry: &mut impl Read, target: &Path, wheel: &Path) -> Result<Digest, Error> {
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
    }
    let file = File::create(target).map_err(Error::io("create", target))?;
    digest::copy(entry, file).map_err(|error| match error.kind() {
        // These come from the decompressor and from the checksum of the archive.
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
            damaged(wheel, error)
        }
        _ => Error::io("write", target)(error),
    })
}

struct Recorded {
    sha256: String,
    bytes: u64,
}

/// Reads the RECORD of a wheel: for each file its path, its hash and its size.
fn read_record(path: &Path, archive: &mut Archive) -> Result<HashMap<String, Recorded>, Error> {
    let is_record = |name: &str| name.ends_with(".dist-info/RECORD") && name.matches('/').count() == 1;
    let name = archive.file_names().flatten().find(|name| is_record(name)).map(|name| name.into_owned());
    let name = name.ok_or_else(|| damaged(path, "it has no RECORD"))?;
    let mut text = String::new();
    let mut entry = archive.by_name(&name).map_err(|error| damaged(path, error))?;
    entry.read_to_string(&mut text).map_err(|error| damaged(path, error))?;
    Ok(text.lines().filter_map(parse_record_line).collect())
}

/// Parses `path,sha256=HASH,SIZE`; lines without a hash, as that of RECORD itself, are left out.
fn parse_record_line(line: &str) -> Option<(String, Recorded)> {
    // From the end, because a path with a comma is quoted and the other two fields never have one.
    let (rest, bytes) = line.trim_end().rsplit_once(',')?;
    let (name, hash) = rest.rsplit_once(',')?;
    let sha256 = hash.strip_prefix("sha256=")?.to_owned();
    let name = match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => name.to_owned(),
    };
    Some((name, Recorded { sha256, bytes: bytes.parse().ok()? }))
}

fn damaged(wheel: &Path, reason: impl ToString) -> Error {
    Error::DamagedWheel { wheel: wheel.to_owned(), reason: reason.to_string() }
}

/// Hand-made wheels of a few bytes, for the tests of this module and of the installation.
#[cfg(test)]
pub mod fixtures {
    use super::*;
    use crate::pins::Kept;
    use std::io::Write;
    use std::path::PathBuf;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    /// The RECORD that the files deserve.
    pub fn record(files: &[(&str, &str)]) -> String {
        let line = |(name, text): &(&str, &str)| {
            let digest = digest::copy(text.as_bytes(), io::sink()).unwrap();
            format!("{name},sha256={},{}\n", digest.base64url(), digest.bytes)
        };
        files.iter().map(line).chain(["tiny-1.0.dist-info/RECORD,,\n".to_owned()]).collect()
    }

    /// Writes a wheel with the files and the RECORD.
    pub fn write_wheel(folder: &Path, files: &[(&str, &str)], record: &str) -> PathBuf {
        let path = folder.join("tiny-1.0-py3-none-any.whl");
        let mut zip = ZipWriter::new(File::create(&path).unwrap());
        for (name, text) in files.iter().chain([&("tiny-1.0.dist-info/RECORD", record)]) {
            zip.start_file(*name, SimpleFileOptions::default()).unwrap();
            zip.write_all(text.as_bytes()).unwrap();
        }
        zip.finish().unwrap();
        path
    }

    /// A pin for such a wheel; the CPU keeps `torch/`, CUDA also keeps one file of `nvidia`.
    pub fn pin<'a>(path: &Path, sha256: &'a mut String) -> Wheel<'a> {
        let digest = digest::copy(File::open(path).unwrap(), io::sink()).unwrap();
        *sha256 = digest.hex();
        Wheel {
            package: "tiny",
            version: "1.0",
            platform: "any",
            sha256,
            bytes: digest.bytes,
            cpu: Kept { paths: &["torch/"], bytes: 1000 },
            cuda: Kept { paths: &["nvidia/lib/libcuda_part.so"], bytes: 1000 },
        }
    }

    /// The files of the usual hand-made wheel.
    pub const FILES: &[(&str, &str)] = &[
        ("torch/lib/libtorch_cpu.so", "the library"),
        ("torch/include/torch/a, b.h", "a header whose name has a comma"),
        ("nvidia/lib/libcuda_part.so", "the other library"),
        ("tiny/__init__.py", "not kept"),
        ("tiny-1.0.dist-info/licenses/LICENSE", "the licence"),
    ];
}

#[cfg(test)]
mod tests {
    use super::fixtures::{FILES, pin, record, write_wheel};
    use super::*;

    #[test]
    fn the_kept_files_and_the_licences_come_out() {
        let temp = tempfile::tempdir().unwrap();
        let path = write_wheel(temp.path(), FILES, &record(FILES));
        let mut sha256 = String::new();
        let wheel = pin(&path, &mut sha256);
        verify(&path, &wheel).unwrap();
        let out = temp.path().join("out");
        let files = unpack(&path, &wheel, Parts::Cpu, &out).unwrap();
        let names: Vec<_> = files.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "tiny-1.0.dist-info/licenses/LICENSE",
                "torch/include/torch/a, b.h",
                "torch/lib/libtorch_cpu.so"
            ]
        );
        assert_eq!(fs::read_to_string(out.join("torch/lib/libtorch_cpu.so")).unwrap(), "the library");
        assert!(unpack(&path, &wheel, Parts::Cuda, &out).unwrap().contains_key("nvidia/lib/libcuda_part.so"));
        assert!(!out.join("tiny").exists());
    }

    #[test]
    fn a_file_that_is_not_the_recorded_one_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let lie =
            record(FILES).replace(&record(&FILES[..1])[..60], &record(&[(FILES[0].0, "another one")])[..60]);
        let path = write_wheel(temp.path(), FILES, &lie);
        assert_refused(&path, "torch/lib/libtorch_cpu.so does not match RECORD");
    }

    #[test]
    fn a_file_without_a_record_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let path = write_wheel(temp.path(), FILES, &record(&FILES[1..]));
        assert_refused(&path, "RECORD lacks torch/lib/libtorch_cpu.so");
    }

    #[test]
    fn a_wheel_that_lacks_a_kept_file_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let path = write_wheel(temp.path(), &FILES[3..], &record(&FILES[3..]));
        assert_refused(&path, "torch/ is not in it");
    }

    #[test]
    fn a_path_that_leaves_the_folder_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let files = [("torch/../../escaped", "evil")];
        let path = write_wheel(temp.path(), &files, &record(&files));
        assert_refused(&path, "points out of the folder");
        assert!(!temp.path().join("escaped").exists());
    }

    #[test]
    fn a_corrupted_byte_is_found_by_the_pin_and_by_the_archive() {
        let temp = tempfile::tempdir().unwrap();
        let path = write_wheel(temp.path(), FILES, &record(FILES));
        let mut sha256 = String::new();
        let wheel = pin(&path, &mut sha256);
        let mut bytes = fs::read(&path).unwrap();
        // The content of the first file follows its local header of 30 bytes and its name.
        bytes[30 + FILES[0].0.len() + 2] ^= 0xff;
        fs::write(&path, bytes).unwrap();
        assert!(matches!(verify(&path, &wheel), Err(Error::WrongWheel { .. })));
        let error = unpack(&path, &wheel, Parts::Cpu, &temp.path().join("out")).unwrap_err();
        assert!(matches!(error, Error::DamagedWheel { .. }), "{error}");
    }

    #[test]
    fn a_truncated_wheel_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let path = write_wheel(temp.path(), FILES, &record(FILES));
        let mut sha256 = String::new();
        let wheel = pin(&path, &mut sha256);
        File::options().write(true).open(&path).unwrap().set_len(wheel.bytes / 2).unwrap();
        assert!(matches!(verify(&path, &wheel), Err(Error::WrongWheel { .. })));
        let error = unpack(&path, &wheel, Parts::Cpu, &temp.path().join("out")).unwrap_err();
        assert!(matches!(error, Error::DamagedWheel { .. }), "{error}");
    }

    #[test]
    fn quoted_paths_and_lines_without_a_hash_are_understood() {
        let (name, recorded) = parse_record_line("\"a, \"\"b\"\".h\",sha256=abc,12").unwrap();
        assert_eq!((name.as_str(), recorded.sha256.as_str(), recorded.bytes), ("a, \"b\".h", "abc", 12));
        assert!(parse_record_line("tiny-1.0.dist-info/RECORD,,").is_none());
        assert!(parse_record_line("").is_none());
    }

    fn assert_refused(path: &Path, reason: &str) {
        let mut sha256 = String::new();
        let wheel = pin(path, &mut sha256);
        let error = unpack(path, &wheel, Parts::Cpu, &path.with_file_name("out")).unwrap_err();
        assert!(matches!(error, Error::DamagedWheel { .. }) && error.to_string().contains(reason), "{error}");
    }
}
