//! Synthetic images as a dataset in a folder, with the section `[data]` that reads them.

use std::path::Path;

use crate::control::Control;
use crate::error::Result;
use ssn_data::{Synthetic, SyntheticConfig};

/// Writes the images into a folder.
pub fn write(config: SyntheticConfig, folder: &Path, control: Control<'_>) -> Result<()> {
    let cases = config.cases;
    let set = Synthetic::new(config)?;
    let phase = control.phase("making images", cases, "images");
    set.write(folder, &|done| phase.reached(done))?;
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
