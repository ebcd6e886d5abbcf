//! The two check sums of the format.

/// Whether a check sum is the stored one. A fuzzer could never guess one, so it is let through.
pub(super) fn agree(computed: u32, stored: u32) -> bool {
    computed == stored || cfg!(fuzzing)
}

/// Bob Jenkins' `lookup3`, which protects the newer parts of the structure.
pub(super) fn lookup3(bytes: &[u8]) -> u32 {
    let mut state = [0xdead_beef_u32.wrapping_add(bytes.len() as u32); 3];
    let mut rest = bytes;
    while let Some((block, after)) = rest.split_first_chunk::<12>().filter(|(_, after)| !after.is_empty()) {
        add(&mut state, block);
        mix(&mut state);
        rest = after;
    }
    if rest.is_empty() {
        return state[2];
    }
    let mut last = [0; 12];
    last[..rest.len()].copy_from_slice(rest);
    add(&mut state, &last);
    finish(&mut state);
    state[2]
}

fn add(state: &mut [u32; 3], block: &[u8; 12]) {
    for (sum, word) in state.iter_mut().zip(block.as_chunks().0) {
        *sum = sum.wrapping_add(u32::from_le_bytes(*word));
    }
}

fn mix([a, b, c]: &mut [u32; 3]) {
    /// `x` loses `z` and takes in its rotated bits; then `z` gains `y`.
    fn step(x: &mut u32, z: &mut u32, y: u32, bits: u32) {
        *x = x.wrapping_sub(*z) ^ z.rotate_left(bits);
        *z = z.wrapping_add(y);
    }
    step(a, c, *b, 4);
    step(b, a, *c, 6);
    step(c, b, *a, 8);
    step(a, c, *b, 16);
    step(b, a, *c, 19);
    step(c, b, *a, 4);
}

fn finish([a, b, c]: &mut [u32; 3]) {
    fn step(x: &mut u32, y: u32, bits: u32) {
        *x = (*x ^ y).wrapping_sub(y.rotate_left(bits));
    }
    step(c, *b, 14);
    step(a, *c, 11);
    step(b, *a, 25);
    step(c, *b, 16);
    step(a, *c, 4);
    step(b, *a, 14);
    step(c, *b, 24);
}

/// Fletcher's sum of words of 16 bits, which protects the values of a chunk.
pub(super) fn fletcher32(bytes: &[u8]) -> u32 {
    /// So many words may be added before a sum of 32 bits overflows.
    const WORDS: usize = 360;
    let (mut low, mut high) = (0u32, 0u32);
    let (words, odd) = bytes.as_chunks::<2>();
    let last = odd.first().map(|&byte| [byte, 0]);
    for block in words.chunks(WORDS).chain(last.as_ref().map(std::slice::from_ref)) {
        for word in block {
            low += u32::from(u16::from_be_bytes(*word));
            high += low;
        }
        (low, high) = (low % 65535, high % 65535);
    }
    high << 16 | low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_their_authors() {
        // From the comments in Jenkins' source, and from a file of h5py.
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
        assert_eq!(fletcher32(&[0, 1, 0, 2]), 0x0004_0003);
        assert_eq!(fletcher32(&[0, 1, 0, 2, 3]), 0x0307_0303);
    }
}
