//! GED² and diversities agree with the reference implementation of the paper's authors.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

use safetensors::SafeTensors;
use ssn_core::LabelMap;
use ssn_core::labels::BitPlanes;
use ssn_core::metrics::{PairStatistic, ged};

/// Both sides compute in float64 and differ only in the order of summation.
const TOLERANCE: f64 = 1e-12;

fn planes(file: &SafeTensors, key: &str, classes: usize) -> Vec<BitPlanes> {
    let tensor = file.tensor(key).unwrap();
    assert_eq!(tensor.dtype(), safetensors::Dtype::U8);
    let voxels = tensor.shape()[1..].iter().product();
    let maps = tensor.data().chunks_exact(voxels);
    maps.map(|labels| BitPlanes::new(&LabelMap::new(labels.to_vec(), classes).unwrap())).collect()
}

#[test]
fn ged_equals_the_reference() {
    let file = SafeTensors::deserialize(include_bytes!("golden/ged.safetensors")).unwrap();
    let cases: serde_json::Value = serde_json::from_str(include_str!("golden/ged.json")).unwrap();
    let cases = cases.as_array().unwrap();
    assert_eq!(cases.len(), 6);
    for (index, case) in cases.iter().enumerate() {
        let classes = case["classes"].as_u64().unwrap() as usize;
        let samples = planes(&file, &format!("case{index}.samples"), classes);
        let raters = planes(&file, &format!("case{index}.raters"), classes);
        let found = ged(&samples, &raters, PairStatistic::V).unwrap();
        let scores = [
            ("ged", found.squared),
            ("sample_diversity", found.sample_diversity),
            ("rater_diversity", found.rater_diversity),
        ];
        for (key, value) in scores {
            let expected = case[key].as_f64().unwrap();
            assert!((value - expected).abs() <= TOLERANCE, "case {index}: {key} is {value}, not {expected}");
        }
    }
}
