//! Several named arrays: `.npz`, a zip archive of `.npy` members.
//!
//! Sizes are taken from what arrives. An archive that claims to expand far more than ordinary ones do is
//! first expanded to its end without keeping anything; only when every check sum and every length is right
//! does it get memory.

use std::io::{Cursor, Read, Write};

use zip::read::{ArchiveOffset, Config};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::{encode_npy, npy, parse_npy};
use crate::array::Array;
use crate::error::Problem;
use crate::gzip::must_be_proven;
use crate::limits::Limits;

/// Enough for the header of every array of numbers: version 1.0 has at most this.
const START: usize = (1 << 16) + 12;
const BUFFER: usize = 1 << 16;
/// The memory that a byte of an array costs at most: its place in the member and in C order, its value, and a copy of that
/// in single precision.
const MEMORY_PER_BYTE: u64 = 7;
/// The memory that a member costs beside its array and its name: what the archive notes, and the lengths of 64 axes.
const MEMORY_PER_MEMBER: u64 = 1024;
/// The ending of the name of every member.
const ENDING: &str = ".npy";
/// From this size on a member needs the fields of zip64.
const LARGE: usize = u32::MAX as usize;

type Archive<'a> = ZipArchive<Cursor<&'a [u8]>>;

/// Reads an `.npz` file: the arrays with their names (without `.npy`), in the order of the archive.
///
/// Members are stored or deflated and their check sums verified. Refused: members that overlap, appear twice,
/// are encrypted, have a name that leaves the folder, or are no arrays of numbers.
pub fn parse_npz(bytes: &[u8], limits: &Limits) -> Result<Vec<(String, Array)>, Problem> {
    limits.check_file_bytes(bytes.len() as u64)?;
    let config = Config { archive_offset: ArchiveOffset::Known(0) };
    let mut archive = ZipArchive::with_config(config, Cursor::new(bytes)).map_err(damaged)?;
    let members = archive.len() as u64;
    if members > limits.members {
        let (what, limit) = ("the number of members", limits.members);
        return Err(Problem::Limit { what, found: members, limit, name: "members" });
    }
    archive.validate_header_consistency().map_err(damaged)?;
    let mut names = vec![];
    let mut claimed = 0u64;
    for index in 0..archive.len() {
        let member = archive.by_index_data(index).map_err(damaged)?;
        let name = member.name().map_err(damaged)?.into_owned();
        check_method(&name, member.compression(), member.encrypted())?;
        names.push(check_name(&name)?.to_owned());
        claimed = claimed.saturating_add(member.size());
    }
    if claimed > limits.expanded_bytes {
        let (what, limit) = ("the expanded size", limits.expanded_bytes);
        return Err(Problem::Limit { what, found: claimed, limit, name: "expanded_bytes" });
    }
    let memory = claimed.saturating_mul(MEMORY_PER_BYTE).saturating_add(members * MEMORY_PER_MEMBER);
    limits.check_memory(memory, bytes.len() as u64)?;
    if must_be_proven(claimed, bytes.len() as u64) {
        for index in 0..archive.len() {
            prove_member(&mut archive, index, limits)?;
        }
    }
    let read = |(index, name)| Ok((name, parse_npy(&keep_member(&mut archive, index)?, limits)?));
    names.into_iter().enumerate().map(read).collect()
}

/// Expands a member without keeping it: its check sum must be right and its length what its header asks for.
fn prove_member(archive: &mut Archive<'_>, index: usize, limits: &Limits) -> Result<(), Problem> {
    let mut start = vec![];
    let found = expand_member(archive, index, |part| {
        let room = START.saturating_sub(start.len());
        start.extend_from_slice(&part[..part.len().min(room)]);
    })?;
    let needed = npy::claimed_bytes(&start, limits)?;
    if found == needed {
        return Ok(());
    }
    Err(Problem::Field {
        field: "the length of a member",
        found: format!("{found} bytes"),
        allowed: "what its header asks for",
        advice: "header and data do not belong together: save the arrays again",
    })
}

fn keep_member(archive: &mut Archive<'_>, index: usize) -> Result<Vec<u8>, Problem> {
    let mut out = vec![];
    expand_member(archive, index, |part| out.extend_from_slice(part))?;
    Ok(out)
}

/// Hands out the expanded bytes of a member; verifies its check sum and returns how many bytes there were.
fn expand_member(
    archive: &mut Archive<'_>,
    index: usize,
    mut take: impl FnMut(&[u8]),
) -> Result<u64, Problem> {
    let mut member = archive.by_index(index).map_err(damaged)?;
    let claimed = member.size();
    let mut buffer = vec![0; BUFFER];
    let mut found = 0u64;
    loop {
        let part = "a member of the archive";
        let count =
            member.read(&mut buffer).map_err(|error| Problem::Damaged { part, reason: error.to_string() })?;
        if count == 0 && found < claimed {
            return Err(Problem::Truncated { part, needed: claimed, found });
        }
        if count == 0 {
            return Ok(found);
        }
        found += count as u64;
        if found > claimed {
            let reason = format!("it expands to more than the {claimed} bytes of its entry");
            return Err(Problem::Damaged { part, reason });
        }
        take(&buffer[..count]);
    }
}

fn check_method(name: &str, method: CompressionMethod, encrypted: bool) -> Result<(), Problem> {
    let advice = "save the arrays again with numpy.savez";
    if encrypted {
        return Err(Problem::Unsupported { what: format!("the encrypted member {name:?}"), advice });
    }
    if matches!(method, CompressionMethod::Stored | CompressionMethod::Deflated) {
        return Ok(());
    }
    Err(Problem::Unsupported { what: format!("the compression {method} of the member {name:?}"), advice })
}

/// The name of the array; refuses names that mean another place than one in the archive.
fn check_name(member: &str) -> Result<&str, Problem> {
    let name = member.strip_suffix(ENDING).unwrap_or_default();
    let inside = |part: &str| !matches!(part, "" | "." | "..");
    let odd = |c: char| c == '\\' || c == ':' || c.is_control();
    if !name.is_empty() && name.split('/').all(inside) && !name.contains(odd) {
        return Ok(name);
    }
    Err(Problem::Field {
        field: "the name of a member",
        found: format!("{member:?}"),
        allowed: "a relative name that ends in .npy, without `..`, `\\` and `:`",
        advice: "save the arrays again with numpy.savez; archives in archives are not read",
    })
}

/// The bytes of an `.npz` file with deflated members; the same arrays always give the same bytes.
pub fn encode_npz<'a>(arrays: impl IntoIterator<Item = (&'a str, &'a Array)>) -> Result<Vec<u8>, Problem> {
    let mut writer = ZipWriter::new(Cursor::new(vec![]));
    for (name, array) in arrays {
        let member = format!("{name}{ENDING}");
        check_name(&member)?;
        let data = encode_npy(array)?;
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .large_file(data.len() >= LARGE);
        // Fails for a name that is there already.
        writer.start_file(member, options).map_err(damaged)?;
        writer.write_all(&data)?;
    }
    Ok(writer.finish().map_err(damaged)?.into_inner())
}

fn damaged(error: ZipError) -> Problem {
    Problem::Damaged { part: "the archive", reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::voxels::Voxels;

    fn array(count: usize) -> Array {
        Array { voxels: Voxels::I16((0..count as i16).collect()), shape: vec![count] }
    }

    #[test]
    fn names_stay_in_the_archive() {
        for good in ["a.npy", "a/b.npy", "..a.npy", "ä.npy"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in
            ["", ".npy", "a", "a.npz", "/a.npy", "../a.npy", "a/../b.npy", "a\\b.npy", "C:a.npy", "a//b.npy"]
        {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn archives_go_round_and_keep_their_order() {
        let (a, b) = (array(300), array(2));
        let bytes = encode_npz([("z", &a), ("folder/a", &b)]).unwrap();
        assert_eq!(bytes, encode_npz([("z", &a), ("folder/a", &b)]).unwrap());
        let back = parse_npz(&bytes, &Limits::default()).unwrap();
        assert_eq!(back, [("z".to_owned(), a.clone()), ("folder/a".to_owned(), b)]);
        assert!(encode_npz([("x", &a), ("x", &a)]).is_err());
        assert!(encode_npz([("../x", &a)]).is_err());
        assert!(parse_npz(&encode_npz([]).unwrap(), &Limits::default()).unwrap().is_empty());
    }

    #[test]
    fn limits_hold() {
        let bytes = encode_npz([("a", &array(300)), ("b", &array(2))]).unwrap();
        for (limits, name) in [
            (Limits { members: 1, ..Limits::default() }, "members"),
            (Limits { expanded_bytes: 700, ..Limits::default() }, "expanded_bytes"),
            (Limits { file_bytes: 100, ..Limits::default() }, "file_bytes"),
            (Limits { values: 299, ..Limits::default() }, "values"),
        ] {
            let message = parse_npz(&bytes, &limits).unwrap_err().to_string();
            assert!(message.contains(&format!("`{name}`")), "{message}");
        }
    }

    #[test]
    fn a_large_and_even_array_is_proven_and_read() {
        let zeros = Array { voxels: Voxels::U8(vec![0; 17 << 20]), shape: vec![17, 1 << 20] };
        let bytes = encode_npz([("zeros", &zeros)]).unwrap();
        assert!(bytes.len() < 64 << 10, "{}", bytes.len());
        assert!(parse_npz(&bytes, &Limits::default()).unwrap()[0].1 == zeros);
    }
}
