//! GED² and diversities beside golden values of the authors' code.

use std::error::Error;
use std::path::Path;

use safetensors::{Dtype, SafeTensors};
use serde_json::Value;
use ssn_core::metrics::ged;
use ssn_core::{BitPlanes, LabelMap};

/// Both sides compute in double precision and differ only in the order of summation.
const TOLERANCE: f64 = 1e-12;

/// Prints a table for `ged.json` and `ged.safetensors` of a folder; the number of cases, and whether every value agrees.
pub fn table(folder: &Path) -> Result<(usize, bool), Box<dyn Error>> {
    let bytes = std::fs::read(folder.join("ged.safetensors"))?;
    let file = SafeTensors::deserialize(&bytes)?;
    let cases: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(folder.join("ged.json"))?)?;
    let mut all_agree = true;
    println!(
        "{:<6} {:>7} {:>7} {:>7}  {:<17} {:>20} {:>20} {:>10}",
        "case", "classes", "samples", "raters", "score", "golden", "ours", "difference"
    );
    for (index, case) in cases.iter().enumerate() {
        let classes = case["classes"].as_u64().ok_or("a case has no number of classes")? as usize;
        let samples = planes(&file, &format!("case{index}.samples"), classes)?;
        let raters = planes(&file, &format!("case{index}.raters"), classes)?;
        let ours = ged(&samples, &raters)?;
        for (score, value) in [
            ("ged", ours.squared),
            ("sample_diversity", ours.sample_diversity),
            ("rater_diversity", ours.rater_diversity),
        ] {
            let golden = case[score].as_f64().ok_or_else(|| format!("case {index} has no {score}"))?;
            let difference = (value - golden).abs();
            all_agree &= difference <= TOLERANCE;
            let (m, n) = (samples.len(), raters.len());
            println!(
                "{index:<6} {classes:>7} {m:>7} {n:>7}  {score:<17} {golden:>20.16} {value:>20.16} {difference:>10.1e}"
            );
        }
    }
    println!("{}", if all_agree { "all agree to 1e-12" } else { "NOT all agree to 1e-12" });
    Ok((cases.len(), all_agree))
}

fn planes(file: &SafeTensors<'_>, key: &str, classes: usize) -> Result<Vec<BitPlanes>, Box<dyn Error>> {
    let tensor = file.tensor(key)?;
    if tensor.dtype() != Dtype::U8 {
        return Err(format!("{key} is {:?}, but label maps must be uint8", tensor.dtype()).into());
    }
    let voxels: usize = tensor.shape().iter().skip(1).product();
    let maps = tensor.data().chunks_exact(voxels.max(1));
    Ok(maps
        .map(|map| Ok(BitPlanes::new(&LabelMap::new(map.to_vec(), classes)?)))
        .collect::<ssn_core::Result<_>>()?)
}
