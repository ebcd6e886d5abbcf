//! Our network beside golden values of the authors' code: `golden_network DIR` prints a table for every `NAME.json` of a
//! folder that comes with `NAME.pt` and `NAME.safetensors`. Ends with 1 when a value differs by more than it may.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

#[path = "../tests/golden/compare.rs"]
mod compare;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("error: which folder? golden_network DIR, with NAME.json, NAME.pt and NAME.safetensors");
        return ExitCode::from(2);
    };
    match table(Path::new(&folder)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {}: {error}", Path::new(&folder).display());
            ExitCode::from(65)
        }
    }
}

/// Prints the table; whether every value agrees.
fn table(folder: &Path) -> Result<bool, Box<dyn Error>> {
    let mut names = vec![];
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "json") && path.with_extension("pt").exists() {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    if names.is_empty() {
        return Err("there is no NAME.json with NAME.pt and NAME.safetensors".into());
    }
    let mut all_agree = true;
    for name in names {
        let ([golden, ours], mut lines) = compare::compare(folder, &name)?;
        let verdict = if golden == ours { "as in the golden network" } else { "NOT the golden network's" };
        println!("{name}: {ours} parameters, {verdict} ({golden})");
        all_agree &= golden == ours;
        lines.sort_by(|a, b| a.what.cmp(&b.what));
        println!("  {:<46} {:<5} {:>12} {:>9}", "value", "", "difference", "allowed");
        for line in &lines {
            let precision = format!("{:?}", line.precision).to_lowercase();
            let measure = if line.relative { "relative" } else { "absolute" };
            let mark = if line.agrees() { "" } else { "  DIFFERS" };
            println!(
                "  {:<46} {precision:<5} {:>12.1e} {:>9.0e} {measure}{mark}",
                line.what, line.difference, line.allowed
            );
            all_agree &= line.agrees();
        }
    }
    Ok(all_agree)
}
