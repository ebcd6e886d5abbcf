//! The commands of `docs/guides/quick-start.md`, one after the other, as a reader types them: on a small dataset, with fewer
//! steps, and without those that set the machine up.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

use std::path::Path;
use std::process::Command;

use ssn_data::{Synthetic, SyntheticConfig};

/// What the test does not run: the set-up, and the long form of a training whose short form follows.
const LEFT_OUT: [&str; 2] = ["cargo ", "export "];
const LONG_TRAINING: &str = "ssn train ssn.toml --out run";
/// A later setting wins over the page's.
const FEWER_STEPS: &str = " --set training.steps=12 --set loss.pretrain_steps=4 --set training.validate_every=6 --device cpu --workers 1 --set loss.pretrain_steps=0 --set loss.likelihood_steps=0";

#[test]
fn the_quick_start_works_as_it_is_written() {
    let engine = Path::new(env!("CARGO_BIN_EXE_ssn-engine"));
    let programs = engine.parent().unwrap();
    assert!(programs.join("ssn").is_file(), "`ssn` is not built; run `cargo build -p ssn-cli` first");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/quick-start.md");
    let page = std::fs::read_to_string(page).unwrap();

    let folder = tempfile::tempdir().unwrap();
    let config = SyntheticConfig { cases: 20, size: [1, 32, 32], ..SyntheticConfig::default() };
    Synthetic::new(config).unwrap().write(&folder.path().join("my-data"), &|_| ()).unwrap();

    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut count = 0;
    for command in commands(&page) {
        let more = match command.split(' ').nth(1) {
            Some("train") => FEWER_STEPS,
            // It would serve until somebody stops it.
            Some("view") => " --export view.html",
            _ => "",
        };
        let output = Command::new("sh")
            .args(["-c", &format!("{command}{more}")])
            .current_dir(folder.path())
            .env("PATH", &path)
            .env("OMP_NUM_THREADS", "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "`{command}` ends with {:?}:\n{said}", output.status.code());
        count += 1;
    }
    assert!(count >= 8, "the page has only {count} commands");
    for file in
        ["ssn.toml", "run/config.toml", "predictions/prediction.csv", "predictions/report/report.html"]
    {
        assert!(folder.path().join(file).is_file(), "{file} is not there");
    }
    let samples = std::fs::read_to_string(folder.path().join("samples/samples.csv")).unwrap();
    assert!(samples.lines().count() > 10);
}

/// The commands in the shell blocks of the page, without comments.
fn commands(page: &str) -> Vec<String> {
    let blocks = page.split("```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("sh\n"));
    let lines = blocks.flat_map(str::lines).map(|line| line.split(" #").next().unwrap().trim());
    let typed = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    typed
        .filter(|line| *line != LONG_TRAINING && LEFT_OUT.iter().all(|start| !line.starts_with(start)))
        .map(str::to_owned)
        .collect()
}
