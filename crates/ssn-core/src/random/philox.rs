//! Philox4x32-10 (Salmon et al., SC 2011): four random words from a counter of four words and a key of two.

/// How many counters are worked on side by side. The loops over lanes have no dependencies, so that the
/// compiler turns them into vector instructions of whatever width the processor has.
pub const LANES: usize = 16;

const ROUNDS: usize = 10;
const MULTIPLIER: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// Four words for one counter.
pub fn philox4x32(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let words = philox_lanes(counter.map(|word| [word; 1]), key);
    words.map(|lanes| lanes[0])
}

/// Four words for `N` counters: `counter[j][lane]` is word `j` of the counter of `lane`.
#[inline(always)]
pub(crate) fn philox_lanes<const N: usize>(counter: [[u32; N]; 4], key: [u32; 2]) -> [[u32; N]; 4] {
    let [mut a, mut b, mut c, mut d] = counter;
    let [mut k0, mut k1] = key;
    for _ in 0..ROUNDS {
        for lane in 0..N {
            let p0 = u64::from(MULTIPLIER[0]) * u64::from(a[lane]);
            let p1 = u64::from(MULTIPLIER[1]) * u64::from(c[lane]);
            a[lane] = (p1 >> 32) as u32 ^ b[lane] ^ k0;
            b[lane] = p1 as u32;
            c[lane] = (p0 >> 32) as u32 ^ d[lane] ^ k1;
            d[lane] = p0 as u32;
        }
        k0 = k0.wrapping_add(WEYL[0]);
        k1 = k1.wrapping_add(WEYL[1]);
    }
    [a, b, c, d]
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
