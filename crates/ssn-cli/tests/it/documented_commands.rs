//! Every command of `ssn` in a block of the documentation is one that `ssn` understands; of commands inside sentences, which
//! leave things out, verb and options exist.

use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use ssn_cli::Cli;

#[test]
fn documented_commands_are_understood() {
    let (mut count, mut wrong) = (0, vec![]);
    for page in pages() {
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

#[test]
fn commands_in_sentences_have_verbs_and_options_that_exist() {
    let program = Cli::command();
    let (mut count, mut wrong) = (0, vec![]);
    for page in pages() {
        for command in inline_commands(&std::fs::read_to_string(&page).unwrap()) {
            count += 1;
            let words = words(&command);
            let mut verb = &program;
            while let Some(inner) = words[1..].iter().find_map(|word| verb.find_subcommand(word)) {
                verb = inner;
            }
            // VERB and `…` stand for any.
            let names_verb = words[1].starts_with(|letter: char| letter.is_ascii_lowercase());
            if names_verb && verb.get_name() == program.get_name() {
                wrong.push(format!("{}: `{command}`: there is no verb {}", page.display(), words[1]));
            }
            for option in words.iter().filter_map(|word| word.strip_prefix("--")) {
                let name = option.split('=').next().unwrap();
                let mut options = verb.get_arguments().chain(program.get_arguments());
                if !["help", "version"].contains(&name)
                    && !options.any(|known| known.get_long() == Some(name))
                {
                    wrong.push(format!("{}: `{command}`: there is no --{name}", page.display()));
                }
            }
        }
    }
    assert!(count >= 100, "found only {count} commands");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// README, `docs/`, and the pages of the crates.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    markdown_below(&root.join("docs"), &mut pages);
    let crates = std::fs::read_dir(root.join("crates")).unwrap();
    pages.extend(crates.map(|entry| entry.unwrap().path().join("README.md")).filter(|page| page.exists()));
    pages
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
    // What a terminal shows is not typed, and a crate of this name is no command.
    for block in blocks.filter(|block| !block.starts_with("text\n") && !block.starts_with("toml\n")) {
        for line in block.replace("\\\n", " ").lines() {
            let line = line.trim().trim_start_matches("$ ").trim_start_matches("target/release/");
            if line.starts_with("ssn ") {
                found.push(line.to_owned());
            }
        }
    }
    found
}

/// The commands of `ssn` between backticks outside of blocks.
fn inline_commands(page: &str) -> Vec<String> {
    let sentences = page.split("```").step_by(2).collect::<String>();
    let spans = sentences.split('`').skip(1).step_by(2);
    spans.filter(|span| span.starts_with("ssn ")).map(str::to_owned).collect()
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
    let page = "x\n```sh\nssn a \\\n  b\ncargo c\n```\nssn d `ssn f`\n```text\nssn e\n```";
    assert_eq!(commands(page), ["ssn a    b"]);
    assert_eq!(inline_commands(page), ["ssn f"]);
}
