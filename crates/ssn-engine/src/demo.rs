//! `ssn demo`: the whole way from images to samples and scores, with nothing but the program.

mod figure;
mod table;

use std::path::{Path, PathBuf};
use std::time::Instant;

use ssn_cli::args::{DemoArgs, Global};
use ssn_cli::evaluate::{Evaluated, evaluate};
use ssn_cli::exit::print;
use ssn_cli::{Exit, Failure, Verb};
use ssn_data::{Shard, SyntheticConfig};

use crate::command::{command, wrong_verb};
use crate::predict::predict;
use crate::synthetic;
use crate::train::{outcome, train};
use crate::workplace::{DATA, is_begun, stopped, write_file};

/// The config of the demo, which marks its folder.
const CONFIG: &str = "demo.toml";

/// The networks that are compared: name, and how their head differs from the preset.
const MODELS: [(&str, Option<&str>); 3] = [
    ("deterministic", Some("model.head=deterministic")),
    ("diagonal", Some("model.head={stochastic={rank=0}}")),
    ("low-rank", None),
];

/// Runs the verb.
pub fn run(args: &DemoArgs, global: &Global) -> Result<Exit, Failure> {
    let start = Instant::now();
    let config = prepare(args, global)?;
    let mut evaluated = vec![];
    for (name, head) in MODELS {
        evaluated.push((name, compare(args, global, &config, name, head)?));
    }
    let table = table::table(&evaluated);
    let svg = figure::figure(args, &evaluated)?;
    let png = figure::png(&svg)?;
    let json = table::json(args, &evaluated, start.elapsed().as_secs_f64());
    for (name, bytes) in [
        ("scores.md", table.as_bytes()),
        ("samples.svg", svg.as_bytes()),
        ("samples.png", &png),
        ("demo.json", json.as_bytes()),
    ] {
        write_file(&args.out.join(name), bytes)?;
    }
    let comparison = report(args, global, &["low-rank", "diagonal", "deterministic"], "report")?;
    let detail = report(args, global, &["low-rank"], "report-low-rank")?;
    print(&if global.json {
        json
    } else {
        format!(
            "\n{table}\n{:.0} s. Open in a browser:\n  {}  the three networks beside each other\n  {}  the low-rank network alone, steered\n",
            start.elapsed().as_secs_f64(),
            comparison.display(),
            detail.display()
        )
    })
}

/// Shows some of the networks, with their training, on a page in a folder of the demo's.
fn report(args: &DemoArgs, global: &Global, models: &[&str], folder: &str) -> Result<PathBuf, Failure> {
    let of = |kind: &str, model: &&str| args.out.join(kind).join(model).display().to_string();
    let predictions = models.iter().map(|model| of("predictions", model));
    let runs = models.iter().map(|model| of("runs", model));
    let out = args.out.join(folder).display().to_string();
    let words: Vec<String> = std::iter::once("report".to_owned())
        .chain(predictions)
        .chain(runs)
        .chain(["--out".to_owned(), out, "--overwrite".to_owned()])
        .collect();
    match command(&words, global)? {
        Verb::Report(args) => Ok(ssn_cli::report::report(&args, global.quiet)?.report),
        _ => Err(wrong_verb()),
    }
}

/// Writes the dataset and the config; both stay as they are in a demo that goes on.
fn prepare(args: &DemoArgs, global: &Global) -> Result<PathBuf, Failure> {
    let path = args.out.join(CONFIG);
    let set = SyntheticConfig { cases: args.cases as usize, seed: args.seed, ..SyntheticConfig::default() };
    let text = config_text(args, &set);
    if !is_begun(&args.out, CONFIG, &text, "a demo with other settings is in it")? {
        synthetic::write(set, &args.out.join(DATA), global)?;
        write_file(&path, text.as_bytes())?;
    }
    Ok(path)
}

fn config_text(args: &DemoArgs, set: &SyntheticConfig) -> String {
    let settings: String = args.settings.iter().map(|setting| format!(" --set {setting}")).collect();
    format!(
        "# The config of `ssn demo --seed {} --cases {}{settings}`.\npreset = \"demo\"\n\n{}",
        args.seed,
        args.cases,
        synthetic::data_section(set, DATA)
    )
}

/// Trains, predicts and scores one network, each by its command.
fn compare(
    args: &DemoArgs,
    global: &Global,
    config: &Path,
    name: &str,
    head: Option<&str>,
) -> Result<Evaluated, Failure> {
    let run = args.out.join("runs").join(name);
    let predictions = args.out.join("predictions").join(name);
    let [run_text, predictions_text] = [&run, &predictions].map(|path| path.display().to_string());
    let seed = args.seed.to_string();
    let mut train_command = match run.join(ssn_train::run::CONFIG).exists() {
        true => vec!["train".to_owned(), "--resume".to_owned(), run_text.clone()],
        false => {
            let mut words = ["train", &config.display().to_string(), "--out", &run_text, "--seed", &seed]
                .map(str::to_owned)
                .to_vec();
            for setting in head.map(str::to_owned).into_iter().chain(args.settings.iter().cloned()) {
                words.extend(["--set".to_owned(), setting]);
            }
            words
        }
    };
    let device = args.device.to_string();
    train_command.extend(["--device", &device, "--workers", "1"].map(str::to_owned));
    if let Verb::Train(args) = command(&train_command, global)? {
        let trained = train(&args, global, None)?;
        outcome(trained.ended, &trained.path).map_err(stopped)?;
    }
    let words = ["predict", &run_text, "--out", &predictions_text, "--device", &device].map(str::to_owned);
    if let Verb::Predict(args) = command(&words, global)? {
        predict(&args, Shard::WHOLE, global.quiet)?;
    }
    match command(&["evaluate".to_owned(), predictions_text], global)? {
        Verb::Evaluate(args) => evaluate(&args, global.quiet),
        _ => Err(wrong_verb()),
    }
}
