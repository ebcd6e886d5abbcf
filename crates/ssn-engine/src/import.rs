//! `ssn import`: the authors' weights as a model of ours.

use std::fmt::Write;

use serde_json::json;
use ssn_cli::args::{Global, ImportArgs};
use ssn_cli::exit::{Exit, Failure, print};
use ssn_nn::weights::{ImportedModel, import, save};
use ssn_nn::{Execution, HeadConfig, Precision};

use crate::failure::failure;

/// Runs the verb.
pub fn run(args: &ImportArgs, global: &Global) -> Result<Exit, Failure> {
    if args.out.exists() && !args.overwrite {
        let advice = "choose another name with --out, or replace it with --overwrite";
        return Err(Failure::new(Exit::Usage, format!("{} exists; {advice}", args.out.display())));
    }
    let imported = import(&args.weights, Execution::cpu(Precision::F32))
        .map_err(|error| Failure::new(Exit::BadData, error))?;
    // A network with holes would predict noise without saying so.
    if !imported.report.missing.is_empty() {
        let missing = imported.report.missing.join(", ");
        let message = format!("{}: it has no weights for {missing}", args.weights.display());
        return Err(Failure::new(Exit::BadData, message));
    }
    save(&args.out, &imported.model, None).map_err(failure)?;
    print(&if global.json { as_json(&imported, args) } else { as_text(&imported, args) })
}

fn as_json(imported: &ImportedModel, args: &ImportArgs) -> String {
    let report = &imported.report;
    let answer = json!({
        "model": imported.model.config(),
        "parameters": imported.model.parameters().count(),
        "matched": report.matched.len(),
        "missing": report.missing,
        "unexpected": report.unexpected,
        "written": args.out,
    });
    format!("{answer:#}\n")
}

fn as_text(imported: &ImportedModel, args: &ImportArgs) -> String {
    let (config, report) = (imported.model.config(), &imported.report);
    let kind = match config.head {
        HeadConfig::Stochastic(head) => format!("stochastic, rank {}", head.rank),
        HeadConfig::Deterministic | HeadConfig::Identity => "deterministic".to_owned(),
        HeadConfig::ProbUnet(_) | HeadConfig::Phiseg(_) => config.head.name().to_owned(),
    };
    let mut text = String::new();
    let _ = writeln!(text, "network     DeepMedic, {kind}");
    let _ = writeln!(text, "channels    {}", config.channels);
    let _ = writeln!(text, "classes     {}", config.classes);
    let _ = writeln!(text, "parameters  {}", imported.model.parameters().count());
    let _ = writeln!(text, "matched     {} tensors", report.matched.len());
    let _ = writeln!(text, "missing     {}", report.missing.len());
    let _ = writeln!(text, "unexpected  {}", report.unexpected.len());
    for name in &report.unexpected {
        let _ = writeln!(text, "            {name}");
    }
    let _ = writeln!(text, "written     {}", args.out.display());
    text
}
