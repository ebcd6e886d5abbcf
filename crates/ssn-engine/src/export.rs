//! `ssn export` and `ssn import`: a trained network as one file, and the authors' weights as a model of ours.

use std::fmt::Write;

use serde_json::json;
use ssn::{ExportConfig, ExportFormat, ImportConfig, export};
use ssn_cli::{Answer, Failure};
use ssn_nn::HeadConfig;

/// Runs `ssn export`.
pub fn answer(config: &ExportConfig) -> Result<Answer, Failure> {
    let exported = export(config)?;
    let (about, [d, h, w]) = (&exported.about, exported.patch);
    let mut text = format!(
        "model       {}\nparameters  {}\nchannels    {}\nclasses     {}\n",
        exported.name,
        exported.parameters,
        about.channels.join(", "),
        about.classes.join(", ")
    );
    if config.format == ExportFormat::TorchScript {
        text += &format!("input       [1, {}, {d}, {h}, {w}]\n", about.channels.len());
    }
    text += &format!("written     {}\n", exported.written.display());
    Answer::new(text, &exported)
}

/// Runs `ssn import`.
pub fn import_answer(config: &ImportConfig) -> Result<Answer, Failure> {
    let [channels, classes] = [&config.channels, &config.classes].map(|names| match names.as_slice() {
        [] => String::new(),
        names => format!(" ({})", names.join(", ")),
    });
    let imported = ssn::import(config)?;
    let (model, report) = (imported.model.config(), &imported.report);
    let parameters = imported.model.parameters().count();
    let json = json!({
        "model": model,
        "parameters": parameters,
        "matched": report.matched.len(),
        "missing": report.missing,
        "unexpected": report.unexpected,
        "written": config.out,
    });
    let kind = match model.head {
        HeadConfig::Stochastic(head) => format!("stochastic, rank {}", head.rank),
        HeadConfig::Deterministic | HeadConfig::Identity => "deterministic".to_owned(),
        HeadConfig::ProbUnet(_) | HeadConfig::Phiseg(_) => model.head.name().to_owned(),
    };
    let mut text = format!(
        "network     DeepMedic, {kind}\nchannels    {}{channels}\nclasses     {}{classes}\nparameters  {parameters}\n\
         matched     {} tensors\nmissing     {}\nunexpected  {}\n",
        model.channels,
        model.classes,
        report.matched.len(),
        report.missing.len(),
        report.unexpected.len()
    );
    for name in &report.unexpected {
        let _ = writeln!(text, "            {name}");
    }
    let _ = writeln!(text, "written     {}", config.out.display());
    if config.channels.is_empty() {
        text += "`ssn predict` takes it if its channels and classes have names: --channels and --classes.\n";
    }
    Answer::new(text, &json)
}
