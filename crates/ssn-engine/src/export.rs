//! `ssn export` and `ssn import`: a trained network as one file, and the authors' weights as a model of ours.

use std::fmt::Write;

use serde_json::json;
use ssn::{ExportFormat, ImportNames, export};
use ssn_cli::args::{self, ExportArgs, Global, ImportArgs};
use ssn_cli::exit::{Exit, Failure, json, print};
use ssn_nn::HeadConfig;

use crate::failure::{failure, which};

/// Runs `ssn export`.
pub fn run(args: &ExportArgs, global: &Global) -> Result<Exit, Failure> {
    let format = match args.format {
        args::ExportFormat::Safetensors => ExportFormat::Safetensors,
        args::ExportFormat::Torchscript => ExportFormat::TorchScript,
    };
    let exported = export(&args.model, which(args.checkpoint), format, args.out.clone(), args.overwrite)
        .map_err(failure)?;
    if global.json {
        return print(&json(&exported)?);
    }
    let (about, [d, h, w]) = (&exported.about, exported.patch);
    let mut text = format!(
        "model       {}\nparameters  {}\nchannels    {}\nclasses     {}\n",
        exported.name,
        exported.parameters,
        about.channels.join(", "),
        about.classes.join(", ")
    );
    if format == ExportFormat::TorchScript {
        text += &format!("input       [1, {}, {d}, {h}, {w}]\n", about.channels.len());
    }
    print(&(text + &format!("written     {}\n", exported.written.display())))
}

/// Runs `ssn import`.
pub fn import(args: &ImportArgs, global: &Global) -> Result<Exit, Failure> {
    let [channels, classes] = [&args.channels, &args.classes]
        .map(|names| names.iter().map(|name| name.trim().to_owned()).collect());
    let names = ImportNames { channels, classes, normalization: args.normalization };
    let names = (!args.channels.is_empty()).then_some(names);
    let [channels, classes] = match &names {
        Some(names) => [&names.channels, &names.classes].map(|list| format!(" ({})", list.join(", "))),
        None => [const { String::new() }; 2],
    };
    let imported = ssn::import(&args.weights, names, &args.out, args.overwrite).map_err(failure)?;
    let (config, report) = (imported.model.config(), &imported.report);
    let parameters = imported.model.parameters().count();
    if global.json {
        let answer = json!({
            "model": config,
            "parameters": parameters,
            "matched": report.matched.len(),
            "missing": report.missing,
            "unexpected": report.unexpected,
            "written": args.out,
        });
        return print(&format!("{answer:#}\n"));
    }
    let kind = match config.head {
        HeadConfig::Stochastic(head) => format!("stochastic, rank {}", head.rank),
        HeadConfig::Deterministic | HeadConfig::Identity => "deterministic".to_owned(),
        HeadConfig::ProbUnet(_) | HeadConfig::Phiseg(_) => config.head.name().to_owned(),
    };
    let mut text = format!(
        "network     DeepMedic, {kind}\nchannels    {}{channels}\nclasses     {}{classes}\nparameters  {parameters}\n\
         matched     {} tensors\nmissing     {}\nunexpected  {}\n",
        config.channels,
        config.classes,
        report.matched.len(),
        report.missing.len(),
        report.unexpected.len()
    );
    for name in &report.unexpected {
        let _ = writeln!(text, "            {name}");
    }
    let _ = writeln!(text, "written     {}", args.out.display());
    if args.channels.is_empty() {
        text += "`ssn predict` takes it if its channels and classes have names: --channels and --classes.\n";
    }
    print(&text)
}
