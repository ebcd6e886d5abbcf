//! Writes a synthetic set as files: `cargo run -p ssn-data --example write_synthetic -- FOLDER CASES [DEPTH]`.

use std::error::Error;
use std::path::Path;

use ssn_data::{Synthetic, SyntheticConfig};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, cases, depth @ ..] = arguments.as_slice() else {
        return Err("write_synthetic FOLDER CASES [DEPTH]".into());
    };
    let mut config = match depth {
        [] => SyntheticConfig::default(),
        [depth, ..] => {
            let depth = depth.parse()?;
            SyntheticConfig { size: [depth, depth, depth], ..SyntheticConfig::volume() }
        }
    };
    config.cases = cases.parse()?;
    Synthetic::new(config)?.write(Path::new(folder), &|_| {})?;
    Ok(())
}
