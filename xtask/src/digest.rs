//! SHA-256 of what passes through, in the two spellings that wheels need: hexadecimal for a whole wheel,
//! unpadded base64url for the files that its RECORD lists.

use sha2::{Digest as _, Sha256};
use std::io::{self, Read, Write};

/// The bytes of a copy are handled in pieces of this size.
const BUFFER: usize = 1 << 20;

/// The SHA-256 and the length of some content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    sha256: [u8; 32],
    /// The number of bytes.
    pub bytes: u64,
}

impl Digest {
    /// The hash in hexadecimal, as index pages and `sha256sum` write it.
    pub fn hex(&self) -> String {
        self.sha256.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The hash in base64url without padding, as the RECORD of a wheel writes it.
    pub fn base64url(&self) -> String {
        base64url(&self.sha256)
    }
}

/// Copies everything and digests it on the way.
pub fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<Digest> {
    let mut hasher = Sha256::new();
    let mut bytes = 0;
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return Ok(Digest { sha256: hasher.finalize().into(), bytes }),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(&buffer[..read]);
        to.write_all(&buffer[..read])?;
        bytes += read as u64;
    }
}

/// Unpadded base64 in the alphabet that is safe in file names (RFC 4648, section 5).
fn base64url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits =
            group.iter().fold(0_u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - group.len()));
        // n bytes need n + 1 letters of six bits each.
        for letter in 0..=group.len() {
            text.push(char::from(ALPHABET[(bits >> (18 - 6 * letter)) as usize & 0x3f]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64url_agrees_with_the_vectors_of_the_rfc() {
        let vectors =
            [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("fooba", "Zm9vYmE")];
        for (plain, coded) in vectors {
            assert_eq!(base64url(plain.as_bytes()), coded);
        }
        assert_eq!(base64url(&[0xfb, 0xff]), "-_8");
    }

    #[test]
    fn the_digest_of_nothing_is_the_known_one() {
        let digest = copy(io::empty(), io::sink()).unwrap();
        assert_eq!(digest.hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(digest.base64url(), "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU");
    }
}
