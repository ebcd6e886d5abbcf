//! Made-up images as a dataset in a folder, with the section `[data]` that reads them.

use std::path::Path;

use ssn_cli::args::Global;
use ssn_cli::progress::Progress;
use ssn_cli::{Failure, datasets};
use ssn_data::{Synthetic, SyntheticConfig};

/// Writes the images into a folder.
pub fn write(config: SyntheticConfig, folder: &Path, global: &Global) -> Result<(), Failure> {
    let cases = config.cases;
    let set = Synthetic::new(config).map_err(datasets::failure)?;
    let progress = Progress::new(cases, "images made", global.quiet);
    set.write(folder, &|done| progress.reached(done)).map_err(datasets::failure)?;
    progress.finish();
    Ok(())
}

/// What a config says about them: where they are, their scale (pictures have gray values of 16 bits), and how they are
/// divided.
pub fn data_section(config: &SyntheticConfig, path: &str) -> String {
    let scale = match config.size[0] {
        1 => {
            "# Gray values of 16 bits to -0.5 ... 0.5.\n\
             normalization = { kind = \"scale\", subtract = 32767.5, divide = 65535 }\n"
        }
        _ => "",
    };
    format!("[data]\npath = \"{path}\"\n{scale}\n[data.split]\nratios = [60, 20, 20]\n")
}
