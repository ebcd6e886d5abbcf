//! `ssn prepare`: the paper's datasets, made ready once.

use ssn_data::CACHE_ENDING;
use ssn_data::Dataset;
use ssn_data::prepare::{BRATS_CONFIG, BratsOptions, brats, lidc};
use ssn_eval::ErrorKind;

use crate::args::{BratsArgs, Global, LidcArgs, PrepareArgs};
use crate::exit::{Failure, print};
use crate::verbs::init::config_head;
use crate::{progress, shard, signals};
use ssn_core::Control;

/// Prepares a dataset.
pub fn run(args: &PrepareArgs, global: &Global) -> Result<(), Failure> {
    match args {
        PrepareArgs::Brats(args) => run_brats(args, global),
        PrepareArgs::Lidc(args) => run_lidc(args, global),
    }
}

fn run_brats(args: &BratsArgs, global: &Global) -> Result<(), Failure> {
    let dataset = Dataset::open(&args.dataset)?;
    std::fs::create_dir_all(&args.out).map_err(|error| {
        Failure::new(ErrorKind::Io, format!("cannot create the folder {}: {error}", args.out.display()))
    })?;
    let shard = shard::choose(args.shard, global.quiet, global.json);
    let (head, overwrite) = (config_head(false, "brats"), args.overwrite);
    let options = BratsOptions { seed: args.seed, shard, overwrite, config_head: &head };
    let (stop, show) = (signals::stop_flag("case")?, progress::show(global.quiet));
    let made = brats(&dataset, &args.out, &options, Control { progress: &show, stop: &stop })?;
    let [train, validation, test] = made.parts;
    if global.json && !shard::prints_json(args.shard) {
        return Ok(());
    }
    if global.json {
        let mut json = serde_json::json!({
            "out": args.out, "prepared": made.prepared, "kept": made.kept,
            "train": train, "validation": validation, "test": test,
        });
        if let Some(waiting) = made.waiting {
            json["shards"] = serde_json::json!(waiting);
        }
        return print(&format!("{json:#}\n"));
    }
    let (out, config) = (args.out.display(), args.out.join(BRATS_CONFIG));
    let config = config.display();
    if let Some(waiting) = made.waiting {
        return print(&format!(
            "{} cases prepared, {} kept from before, in {out}\n{waiting}; the last one writes {config}\n",
            made.prepared, made.kept
        ));
    }
    print(&format!(
        "{} cases prepared, {} kept from before, in {out}: {train} for training, {validation} for validation, \
         {test} for test\nwrote {config}; next: ssn check {config}\n",
        made.prepared, made.kept
    ))
}

fn run_lidc(args: &LidcArgs, global: &Global) -> Result<(), Failure> {
    if !args.out.to_string_lossy().ends_with(CACHE_ENDING) {
        let message = format!("--out is {}, but its name must end in {CACHE_ENDING}", args.out.display());
        return Err(Failure::new(ErrorKind::Usage, message));
    }
    ssn_eval::check_free(&args.out, args.overwrite)?;
    let dataset = Dataset::open(&args.dataset)?;
    let (stop, show) = (signals::stop_flag("case")?, progress::show(global.quiet));
    let made = lidc(&dataset, &args.out, Control { progress: &show, stop: &stop })?;
    if global.json {
        let json = serde_json::json!({ "out": args.out, "cases": made.cases, "bytes": made.bytes });
        return print(&format!("{json:#}\n"));
    }
    let (out, megabytes) = (args.out.display(), made.bytes as f64 / 1e6);
    print(&format!("{} cases in {out} ({megabytes:.1} MB)\nnext: ssn init {out}\n", made.cases))
}
