//! The commands of README and of `docs/guides/quick-start.md`, one after the other, as a reader types them. Those of the quick
//! start: on a small dataset, with fewer steps, and without those that set the machine up.

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

#[test]
fn the_first_page_shows_what_its_commands_print() {
    let engine = Path::new(env!("CARGO_BIN_EXE_ssn-engine"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("README.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root.join("docs/demo"), folder.path().join("demo")).unwrap();

    let shown = page.split("```console\n").nth(1).unwrap().split("```").next().unwrap();
    let mut count = 0;
    for part in shown.split("$ ").skip(1) {
        let (command, shown) = part.split_once('\n').unwrap();
        let output = Command::new("sh")
            .args(["-c", command])
            .current_dir(folder.path())
            .env("PATH", format!("{}:{}", engine.parent().unwrap().display(), std::env::var("PATH").unwrap()))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "`{command}` ends with {:?}:\n{said}", output.status.code());
        let printed = format!("{}{said}", String::from_utf8_lossy(&output.stdout));
        let words: Vec<&str> = printed.split_whitespace().collect();
        for line in shown.lines().filter(|line| !line.trim().is_empty() && line.trim() != "…") {
            let line: Vec<&str> = line.split_whitespace().collect();
            let is_printed = words.windows(line.len()).any(|words| agrees(&line, words));
            assert!(is_printed, "`{command}` does not print\n{}\nbut\n{printed}", line.join(" "));
        }
        count += 1;
    }
    assert_eq!(count, 3);
    assert!(folder.path().join("predictions/report/report.html").is_file());
}

/// Returns `true` if a line is what the page shows. Seconds depend on the machine, and so do the last digits of other numbers with
/// decimals.
fn agrees(shown: &[&str], printed: &[&str]) -> bool {
    let number = |word: &str| -> Option<(f64, usize)> {
        let number = word.trim_matches(|letter: char| !letter.is_ascii_digit());
        Some((number.parse().ok()?, number.split_once('.')?.1.len()))
    };
    let around = |word: &str| word.replace(|letter: char| letter.is_ascii_digit() || letter == '.', "");
    shown.iter().zip(printed).enumerate().all(|(i, (shown_word, word))| {
        let is_time = shown.get(i + 1).is_some_and(|unit| unit.trim_end_matches([',', ';', '.']) == "s");
        match (number(shown_word), number(word)) {
            (Some((a, places)), Some((b, others))) => {
                let near = (a - b).abs() <= 0.02 * a.abs() + 1.5 * 0.1f64.powi(places as i32);
                places == others && around(shown_word) == around(word) && (is_time || near)
            }
            _ => shown_word == word,
        }
    })
}

#[test]
fn other_numbers_are_not_those_of_the_page() {
    let agree = |shown: &str, printed: &str| {
        let [shown, printed] = [shown, printed].map(|line| line.split(' ').collect::<Vec<_>>());
        agrees(&shown, &printed)
    };
    assert!(agree("12 cases in 0.1 s", "12 cases in 7.4 s"));
    assert!(agree("GED², 0.170 ± 0.033", "GED², 0.171 ± 0.032"));
    assert!(!agree("GED², 0.170 ± 0.033", "GED², 0.270 ± 0.033"));
    assert!(!agree("12 cases in 0.1 s", "13 cases in 0.1 s"));
    assert!(!agree("(0.43 against 0.39,", "(0.43 beside 0.39,"));
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
