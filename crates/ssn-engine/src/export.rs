//! `ssn export`: a trained network as one file.

use std::path::PathBuf;

use serde_json::json;
use ssn_cli::args::{ExportArgs, ExportFormat, Global};
use ssn_cli::datasets::check_free;
use ssn_cli::exit::{Exit, Failure, print};
use ssn_nn::weights::{save, save_torchscript};
use tch::Device;

use crate::failure::failure;
use crate::trained::trained;

/// Runs the verb.
pub fn run(args: &ExportArgs, global: &Global) -> Result<Exit, Failure> {
    let trained = trained(&args.model, args.checkpoint, Device::Cpu)?;
    let ending = match args.format {
        ExportFormat::Safetensors => "safetensors",
        ExportFormat::Torchscript => "pt",
    };
    let about = trained.metadata.clone();
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.{ending}", about.provenance.run)));
    check_free(&out, args.overwrite)?;
    let (parameters, name) = (trained.model.parameters().count(), trained.id().name);
    let patch = trained.model.config().backbone.input_size(about.patch.map(|n| n as i64)).map_err(failure)?;
    match args.format {
        ExportFormat::Safetensors => save(&out, &trained.model, Some(&about)).map_err(failure)?,
        ExportFormat::Torchscript => {
            let [d, h, w] = patch;
            save_torchscript(&out, trained.model, [1, about.channels.len() as i64, d, h, w])
                .map_err(failure)?;
        }
    }
    print(&if global.json {
        format!("{:#}\n", json!({ "written": out, "parameters": parameters, "about": about }))
    } else {
        let mut text = format!(
            "model       {name}\nparameters  {parameters}\nchannels    {}\nclasses     {}\n",
            about.channels.join(", "),
            about.classes.join(", ")
        );
        if args.format == ExportFormat::Torchscript {
            text += &format!(
                "input       [1, {}, {}, {}, {}]\n",
                about.channels.len(),
                patch[0],
                patch[1],
                patch[2]
            );
        }
        text + &format!("written     {}\n", out.display())
    })
}
