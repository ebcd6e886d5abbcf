//! Philox4x32-10 (Salmon et al., SC 2011): four random words from a counter of four words and a key of two.

/// How many counters are worked on side by side. The loops over lanes have no dependencies, so that the
/// compiler turns them into vector instructions of whatever width the CPU has.
pub const LANES: usize = 16;

const ROUNDS: usize = 10;
const MULTIPLIER: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
const LOW_HALF: u64 = 0xFFFF_FFFF;
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// Four words for one counter.
pub fn philox4x32(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let words = philox_lanes::<1>(counter, key);
    words.map(|lanes| lanes[0])
}

/// Four words for each of `N` counters that differ in their first word: that of `lane` is `counter[0] + lane`.
///
/// A word lives in the lower half of 64 bits, whose upper half holds what previous products left there: a widening
/// multiplication ignores it, and no instruction is spent on packing and unpacking between rounds.
#[inline(always)]
pub(crate) fn philox_lanes<const N: usize>(counter: [u32; 4], key: [u32; 2]) -> [[u32; N]; 4] {
    let (mut a, mut b, mut c, mut d) = ([0u64; N], [0u64; N], [0u64; N], [0u64; N]);
    for lane in 0..N {
        a[lane] = u64::from(counter[0]) + lane as u64;
        b[lane] = u64::from(counter[1]);
        c[lane] = u64::from(counter[2]);
        d[lane] = u64::from(counter[3]);
    }
    let [mut k0, mut k1] = key;
    for _ in 0..ROUNDS {
        for lane in 0..N {
            let p0 = MULTIPLIER[0] * (a[lane] & LOW_HALF);
            let p1 = MULTIPLIER[1] * (c[lane] & LOW_HALF);
            a[lane] = (p1 >> 32) ^ b[lane] ^ u64::from(k0);
            b[lane] = p1;
            c[lane] = (p0 >> 32) ^ d[lane] ^ u64::from(k1);
            d[lane] = p0;
        }
        k0 = k0.wrapping_add(WEYL[0]);
        k1 = k1.wrapping_add(WEYL[1]);
    }
    let mut words = [[0u32; N]; 4];
    for lane in 0..N {
        words[0][lane] = a[lane] as u32;
        words[1][lane] = b[lane] as u32;
        words[2][lane] = c[lane] as u32;
        words[3][lane] = d[lane] as u32;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers that the authors of Philox publish with their library.
    #[test]
    fn known_answers() {
        let all = u32::MAX;
        assert_eq!(philox4x32([0; 4], [0; 2]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
        assert_eq!(philox4x32([all; 4], [all; 2]), [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
        assert_eq!(
            philox4x32([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0]),
            [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]
        );
    }
}
