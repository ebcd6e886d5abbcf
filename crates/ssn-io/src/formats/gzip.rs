//! Compressed bytes, expanded with bounded memory and verified to the end.

use std::io::Read;

use flate2::bufread::{MultiGzDecoder, ZlibDecoder};

use crate::limits::{Limits, check_left, within};
use crate::problem::{Problem, refused};

/// The kind of compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// gzip, possibly of several members, with a checksum each.
    Gzip,
    /// zlib, with a checksum.
    Zlib,
}

/// Expanded bytes up to this size are kept while they arrive, whatever the ratio: a label map of 4096 × 4096 in one
/// color is this large and takes some 20 KB of PNG.
const KEPT_AT_ONCE: u64 = 16 << 20;
/// Up to this ratio of expanded to stored bytes, larger data is kept while it arrives too.
const TRUSTED_RATIO: u64 = 32;
const BUFFER: usize = 1 << 16;

/// Whether data must be expanded once without keeping it, to see that all of it is there and right, before it gets
/// memory: the one rule of every reader. A file that lies about its size then costs time but no memory.
pub(crate) fn must_be_proven(expanded: u64, stored: u64) -> bool {
    expanded > KEPT_AT_ONCE && expanded / TRUSTED_RATIO > stored
}

/// Whether bytes start like a gzip file.
pub fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// The first `count` expanded bytes, or fewer where there are no more. Nothing is verified yet.
pub fn expand_start(bytes: &[u8], compression: Compression, count: usize) -> Result<Vec<u8>, Problem> {
    let mut start = vec![];
    decoder(bytes, compression).take(count as u64).read_to_end(&mut start).map_err(damaged)?;
    Ok(start)
}

/// All expanded bytes, of which there must be exactly `expected`; verifies lengths and checksums to the end.
///
/// `part` names the data in refusals.
pub fn expand_exactly(
    bytes: &[u8],
    compression: Compression,
    expected: u64,
    part: &'static str,
    limits: &Limits,
) -> Result<Vec<u8>, Problem> {
    within("the expanded size", expected, limits.expanded_bytes, "expanded_bytes")?;
    let room = (bytes.len() as u64).saturating_mul(TRUSTED_RATIO);
    let suspicious = must_be_proven(expected, bytes.len() as u64);
    if suspicious {
        expand(bytes, compression, expected, part, None)?;
    }
    // The values made of the bytes, and a copy in another type.
    check_left(expected.saturating_mul(3))?;
    // What was suspicious is proven now; other data is at most a small multiple of what has arrived already.
    let mut out = Vec::with_capacity(if suspicious { expected } else { expected.min(room) } as usize);
    expand(bytes, compression, expected, part, Some(&mut out))?;
    Ok(out)
}

/// Expands everything, into `out` where there is one.
fn expand(
    bytes: &[u8],
    compression: Compression,
    expected: u64,
    part: &'static str,
    mut out: Option<&mut Vec<u8>>,
) -> Result<(), Problem> {
    let mut decoder = decoder(bytes, compression);
    let mut buffer = vec![0; BUFFER];
    let mut found = 0u64;
    loop {
        let count = decoder.read(&mut buffer).map_err(damaged)?;
        if count == 0 {
            break;
        }
        found += count as u64;
        if found > expected {
            let found = format!("longer than {expected} bytes");
            let advice = "header and data do not belong together: export the image again";
            return Err(refused(part, found, "as long as the header says", advice));
        }
        if let Some(out) = &mut out {
            out.extend_from_slice(&buffer[..count]);
        }
    }
    if found < expected {
        return Err(Problem::Truncated { part, needed: expected, found });
    }
    Ok(())
}

fn decoder(bytes: &[u8], compression: Compression) -> Box<dyn Read + '_> {
    match compression {
        Compression::Gzip => Box::new(MultiGzDecoder::new(bytes)),
        Compression::Zlib => Box::new(ZlibDecoder::new(bytes)),
    }
}

fn damaged(error: std::io::Error) -> Problem {
    Problem::Damaged { part: "the compressed data", reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn expand_all(bytes: &[u8], expected: usize) -> Result<Vec<u8>, Problem> {
        expand_exactly(bytes, Compression::Gzip, expected as u64, "the data", &Limits::default())
    }

    #[test]
    fn members_are_joined_and_lengths_must_agree() {
        let data: Vec<u8> = (0..100_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
        let (first, second) = data.split_at(30_000);
        let file = [gzip(first), gzip(second)].concat();
        assert!(is_gzip(&file));
        assert_eq!(expand_start(&file, Compression::Gzip, 10).unwrap(), data[..10]);
        assert_eq!(expand_all(&file, data.len()).unwrap(), data);
        assert!(matches!(expand_all(&file, data.len() - 1), Err(Problem::Field { .. })));
        assert!(matches!(expand_all(&file, data.len() + 1), Err(Problem::Truncated { found: 100_000, .. })));
        let limits = Limits { expanded_bytes: 10, ..Limits::default() };
        let refused = expand_exactly(&file, Compression::Gzip, data.len() as u64, "the data", &limits);
        assert!(refused.unwrap_err().to_string().contains("raise the limit `expanded_bytes`"));
    }

    #[test]
    fn only_large_and_highly_compressed_data_is_proven() {
        assert!(!must_be_proven(16 << 20, 100));
        assert!(!must_be_proven(32 << 20, 1 << 20));
        assert!(must_be_proven((32 << 20) + 32, 1 << 20));
        assert!(must_be_proven(u64::MAX, 1 << 20));
    }

    #[test]
    fn a_large_expansion_is_verified_before_it_gets_memory() {
        let zeros = vec![0u8; (KEPT_AT_ONCE + 1000) as usize];
        let mut file = gzip(&zeros);
        assert_eq!(expand_all(&file, zeros.len()).unwrap().len(), zeros.len());
        let crc = file.len() - 8;
        file[crc] ^= 1;
        assert!(matches!(expand_all(&file, zeros.len()), Err(Problem::Damaged { .. })));
    }
}
