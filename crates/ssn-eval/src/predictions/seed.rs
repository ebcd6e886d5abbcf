//! The seed of one case out of that of many.

use ssn_core::random::derive_seed;

/// The purpose of a case's seed.
const CASE_SAMPLES: u32 = 0x6361_7365;

/// The seed of a case's samples, where `seed` is that of all cases.
///
/// With one seed for all, sample i would have the same noise in every case: their errors would not average out
/// over cases, and standard errors would be too small.
pub fn case_seed(seed: u64, case: &str) -> u64 {
    derive_seed(seed, CASE_SAMPLES, fnv1a(case))
}

/// FNV-1a of 64 bits: a number for a name, the same everywhere.
fn fnv1a(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_of_a_case_never_changes() {
        assert_eq!(case_seed(0, "patient 1"), 0x2e0e_7372_e7fb_695d);
        assert_eq!(case_seed(7, "patient 1"), 0xe552_b86b_cd55_6b84);
        assert_eq!(case_seed(0, ""), 0x8e2d_27ea_fa3e_9473);
    }
}
