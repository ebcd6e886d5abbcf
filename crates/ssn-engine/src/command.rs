//! Commands that a verb gives to itself: shown as the user could type them, and parsed as if that had been done.

use clap::Parser;
use ssn_cli::args::Global;
use ssn_cli::exit::tell;
use ssn_cli::{Cli, Exit, Failure, Verb};

/// The command, shown unless nothing is to be shown.
pub fn command(words: &[String], global: &Global) -> Result<Verb, Failure> {
    if !global.quiet {
        let shown: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        tell(&format!("$ ssn {}", shown.join(" ")));
    }
    let words = std::iter::once("ssn").chain(words.iter().map(String::as_str));
    match Cli::try_parse_from(words) {
        Ok(cli) => Ok(cli.verb),
        Err(error) => Err(Failure::new(Exit::Internal, error)),
    }
}

/// That a command was parsed as another verb than it names.
pub fn wrong_verb() -> Failure {
    Failure::new(Exit::Internal, "the program gave itself a wrong command; please report this")
}

/// A word as a shell takes it for one.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_take_words_as_they_are_meant() {
        assert_eq!(quoted("training.steps=4"), "training.steps=4");
        assert_eq!(quoted("model.head={stochastic={rank=0}}"), "'model.head={stochastic={rank=0}}'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
