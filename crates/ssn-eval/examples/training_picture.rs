//! Draws the curves of a run into one picture: `training_picture RUN OUT.png`.

use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [run, out] = arguments.as_slice() else {
        return Err("training_picture RUN OUT.png".into());
    };
    std::fs::write(out, ssn_eval::training_picture(Path::new(run))?)?;
    Ok(())
}
