//! When a compressed picture is believed before all of it has been expanded.

/// Pictures up to this size get their memory while they arrive, whatever the ratio: a label map of 4096 ×
/// 4096 in one colour is this large and takes some 20 KB of PNG.
const KEPT_AT_ONCE: u64 = 16 << 20;
/// Up to this ratio of expanded to stored bytes, larger pictures get their memory while they arrive.
const TRUSTED_RATIO: u64 = 32;

/// Whether a picture must be expanded once without keeping it, to see that all of it is there and right,
/// before it gets memory. A file that lies about its size then costs time but no memory.
pub(super) fn must_be_proven(expanded: u64, stored: u64) -> bool {
    expanded > KEPT_AT_ONCE && expanded / TRUSTED_RATIO > stored
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_and_highly_compressed_pictures_are_proven() {
        assert!(!must_be_proven(16 << 20, 100));
        assert!(!must_be_proven(32 << 20, 1 << 20));
        assert!(must_be_proven((32 << 20) + 32, 1 << 20));
        assert!(must_be_proven(u64::MAX, 1 << 20));
    }
}
