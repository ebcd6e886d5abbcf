//! Every command of `ssn` in a block of the documentation is one that `ssn` understands.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

use std::path::{Path, PathBuf};

use clap::Parser;
use clap::error::ErrorKind;
use ssn_cli::Cli;

#[test]
fn documented_commands_are_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    markdown_below(&root.join("docs"), &mut pages);
    let (mut count, mut wrong) = (0, vec![]);
    for page in pages {
        for command in commands(&std::fs::read_to_string(&page).unwrap()) {
            count += 1;
            let asks_for_help = |error: &clap::Error| error.kind() == ErrorKind::DisplayHelp;
            if let Some(error) = Cli::try_parse_from(words(&command)).err().filter(|e| !asks_for_help(e)) {
                let reason = error.to_string();
                wrong.push(format!("{}: {command}\n    {}", page.display(), reason.lines().next().unwrap()));
            }
        }
    }
    assert!(count >= 30, "found only {count} commands");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn markdown_below(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.extension() {
            Some(extension) if extension == "md" => pages.push(path),
            None if path.is_dir() => markdown_below(&path, pages),
            _ => {}
        }
    }
}

/// The commands of `ssn` in the blocks of a page, those that go on over lines joined.
fn commands(page: &str) -> Vec<String> {
    let mut found = vec![];
    let blocks = page.split("```").skip(1).step_by(2);
    // What a terminal shows is not typed.
    for block in blocks.filter(|block| !block.starts_with("text\n")) {
        for line in block.replace("\\\n", " ").lines() {
            let line = line.trim().trim_start_matches("target/release/");
            if line.starts_with("ssn ") {
                found.push(line.to_owned());
            }
        }
    }
    found
}

/// Splits like a shell: at spaces outside of quotes, up to a comment.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (vec![], None::<String>, None);
    for letter in command.chars() {
        match (quote, letter) {
            (None, '#') if word.is_none() => break,
            (None, ' ') => words.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (Some(open), _) if open == letter => quote = None,
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[test]
fn quotes_and_comments_are_understood() {
    let line = "ssn train a --set 'b = { c = 1 }' # a comment";
    assert_eq!(words(line), ["ssn", "train", "a", "--set", "b = { c = 1 }"]);
    assert_eq!(commands("x\n```sh\nssn a \\\n  b\ncargo c\n```\nssn d\n```text\nssn e\n```"), ["ssn a    b"]);
}
