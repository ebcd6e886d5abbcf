//! `docs/reference/command-line.md`, which is made of the help of every verb.
//!
//! With `SSN_UPDATE_DOCS=1` the test writes it; otherwise it compares.

use std::fmt::Write as _;

use clap::CommandFactory;
use ssn_cli::Cli;
use ssn_testing::assert_page_is_up_to_date;

const INTRODUCTION: &str = "\
# Every verb and option

What `ssn VERB --help` prints. [Exit codes](exit-codes.md) are the same for all verbs. Results go to standard output, progress and messages to standard
error. Colors appear only on terminals, and not where `NO_COLOR` is set.

Every verb also takes the options of `ssn` itself, listed first. This page is generated: `SSN_UPDATE_DOCS=1 cargo nextest run -p ssn-cli --test it cli_reference`.
";

/// Characters per line.
const WIDTH: usize = 100;

#[test]
fn the_command_line_reference_is_that_of_the_code() {
    let mut text = INTRODUCTION.to_owned();
    let mut command = Cli::command().term_width(WIDTH);
    command.build();
    write!(text, "\n```text\n{}\n```\n", help(&mut command)).unwrap();
    for verb in command.get_subcommands_mut().filter(|verb| !verb.is_hide_set()) {
        chapter(verb, &mut text);
    }
    assert_page_is_up_to_date("command-line.md", &text);
}

/// A verb, and the verbs below it.
fn chapter(verb: &mut clap::Command, text: &mut String) {
    let name = verb.get_bin_name().unwrap_or(verb.get_name()).to_owned();
    *verb = verb.clone().term_width(WIDTH);
    write!(text, "\n## `{name}`\n\n```text\n{}\n```\n", without_common(&help(verb))).unwrap();
    for inner in verb.get_subcommands_mut() {
        chapter(inner, text);
    }
}

/// Returns a help text without the options of every verb, which the first chapter has.
fn without_common(text: &str) -> String {
    let paragraphs = text.split("\n\n").filter(|part| !part.starts_with("Options of every verb:"));
    let text = paragraphs.collect::<Vec<_>>().join("\n\n");
    text.lines().filter(|line| !line.trim_start().starts_with("-h, --help")).collect::<Vec<_>>().join("\n")
}

fn help(command: &mut clap::Command) -> String {
    let text = command.render_help().to_string();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim().to_owned()
}
