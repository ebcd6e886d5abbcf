//! `ssn prepare`: the paper's datasets, made ready once.

use ssn_data::CACHE_ENDING;
use ssn_data::Dataset;
use ssn_data::prepare::{BRATS_CONFIG, BratsOptions, brats, lidc};
use ssn_eval::ErrorKind;

use crate::answer::Answer;
use crate::args::{BratsArgs, Global, LidcArgs, PrepareArgs};
use crate::exit::Failure;
use crate::shard;
use crate::verbs::init::config_head;
use serde_json::json;
use ssn_core::Control;

/// Prepares a dataset.
pub fn answer(args: &PrepareArgs, global: &Global, control: Control<'_>) -> Result<Answer, Failure> {
    match args {
        PrepareArgs::Brats(args) => prepare_brats(args, global, control),
        PrepareArgs::Lidc(args) => prepare_lidc(args, control),
    }
}

fn prepare_brats(args: &BratsArgs, global: &Global, control: Control<'_>) -> Result<Answer, Failure> {
    let dataset = Dataset::open(&args.dataset)?;
    std::fs::create_dir_all(&args.out).map_err(|error| {
        Failure::new(ErrorKind::Io, format!("cannot create the folder {}: {error}", args.out.display()))
    })?;
    let shard = shard::choose(args.shard, global.quiet, global.json);
    let (head, overwrite) = (config_head(false, "brats"), args.overwrite);
    let options = BratsOptions { seed: args.seed, shard, overwrite, config_head: &head };
    let made = brats(&dataset, &args.out, &options, control)?;
    let [train, validation, test] = made.parts;
    let mut json = json!({
        "out": args.out, "prepared": made.prepared, "kept": made.kept,
        "train": train, "validation": validation, "test": test,
    });
    let (out, config) = (args.out.display(), args.out.join(BRATS_CONFIG));
    let config = config.display();
    let done = format!("{} cases prepared, {} kept from before, in {out}", made.prepared, made.kept);
    let text = match made.waiting {
        Some(waiting) => {
            json["shards"] = json!(waiting);
            format!("{done}\n{waiting}; the last one writes {config}\n")
        }
        None => format!(
            "{done}: {train} for training, {validation} for validation, {test} for test\n\
             wrote {config}; next: ssn check {config}\n"
        ),
    };
    let mut answer = Answer::new(text, &json)?;
    if !shard::prints_json(args.shard) {
        answer.json = None;
    }
    Ok(answer)
}

fn prepare_lidc(args: &LidcArgs, control: Control<'_>) -> Result<Answer, Failure> {
    if !args.out.to_string_lossy().ends_with(CACHE_ENDING) {
        let message = format!("--out is {}, but its name must end in {CACHE_ENDING}", args.out.display());
        return Err(Failure::new(ErrorKind::Usage, message));
    }
    ssn_eval::check_free(&args.out, args.overwrite)?;
    let dataset = Dataset::open(&args.dataset)?;
    let made = lidc(&dataset, &args.out, control)?;
    let (out, megabytes) = (args.out.display(), made.bytes as f64 / 1e6);
    let text = format!("{} cases in {out} ({megabytes:.1} MB)\nnext: ssn init {out}\n", made.cases);
    Answer::new(text, &json!({ "out": args.out, "cases": made.cases, "bytes": made.bytes }))
}
