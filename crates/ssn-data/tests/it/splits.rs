//! Splits keep groups together, keep their ratios, and are a function of the seed and the names.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use ssn_data::{Ratios, Split, divide, fold};

/// The group of each of up to 200 cases.
fn groups() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(0u8..60, 1..200)
        .prop_map(|numbers| numbers.iter().map(|n| format!("p{n}")).collect())
}

fn ratios() -> impl Strategy<Value = Ratios> {
    let own = (1u32..100, 0u32..100, 0u32..100).prop_map(|(a, b, c)| Ratios([a, b, c]));
    prop_oneof![Just(Ratios::LIDC), Just(Ratios([64, 16, 20])), Just(Ratios::BRATS), own]
}

proptest! {
    #[test]
    fn groups_stay_together_in_their_ratios(groups in groups(), ratios in ratios(), seed: u64) {
        let names: Vec<&str> = groups.iter().map(String::as_str).collect();
        let parts = divide(&names, ratios, seed).unwrap();
        let mut of_group = BTreeMap::new();
        for (group, part) in names.iter().zip(&parts) {
            prop_assert_eq!(*of_group.entry(*group).or_insert(*part), *part);
        }
        let total: u32 = ratios.0.iter().sum();
        let even = ratios.0.iter().all(|share| *share == 0 || of_group.len() as u32 * share >= total);
        for (split, share) in Split::ALL.iter().zip(ratios.0) {
            let exact = of_group.len() as f64 * f64::from(share) / f64::from(total);
            let count = of_group.values().filter(|part| *part == split).count() as f64;
            // Rounding alone is less than one; a part that rounding left empty takes a group from the largest.
            let room = if even { 1.0 } else { 3.0 };
            prop_assert!((count - exact).abs() <= room, "{split}: {count} for {exact}");
            prop_assert!(share > 0 || count == 0.0);
        }
    }

    #[test]
    fn the_order_of_cases_changes_nothing(groups in groups(), seed: u64) {
        let names: Vec<&str> = groups.iter().map(String::as_str).collect();
        let reversed: Vec<&str> = names.iter().rev().copied().collect();
        let mut parts = divide(&names, Ratios::LIDC, seed).unwrap();
        parts.reverse();
        prop_assert_eq!(parts, divide(&reversed, Ratios::LIDC, seed).unwrap());
    }

    #[test]
    fn folds_are_even_and_keep_groups(groups in groups(), folds in 2usize..8, seed: u64) {
        let names: Vec<&str> = groups.iter().map(String::as_str).collect();
        let distinct: BTreeSet<&str> = names.iter().copied().collect();
        prop_assume!(distinct.len() >= folds);
        let numbers = fold(&names, folds, seed).unwrap();
        let of_group: BTreeMap<&str, usize> = names.iter().copied().zip(numbers.iter().copied()).collect();
        prop_assert!(names.iter().zip(&numbers).all(|(name, number)| of_group[name] == *number));
        let sizes: Vec<usize> = (0..folds).map(|f| of_group.values().filter(|n| **n == f).count()).collect();
        prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
    }
}

#[test]
fn different_seeds_differ() {
    let names: Vec<String> = (0..50).map(|i| format!("p{i}")).collect();
    let groups: Vec<&str> = names.iter().map(String::as_str).collect();
    let parts = |seed| divide(&groups, Ratios::LIDC, seed).unwrap();
    assert_eq!(parts(1), parts(1));
    assert_ne!(parts(1), parts(2));
}
