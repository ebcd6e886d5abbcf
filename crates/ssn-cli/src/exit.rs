//! How a command ends: its exit code and, on failure, one sentence.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use signal_hook::consts::SIGABRT;
use signal_hook::flag::register_conditional_shutdown;
use ssn_data::text::without_controls;
use ssn_io::{Error, ErrorKind};

/// A command that failed: the code to exit with and what to tell the user.
#[derive(Debug)]
pub struct Failure {
    /// The kind, whose number is the exit code.
    pub kind: ErrorKind,
    /// What happened, and what to do; empty if the user was told already.
    pub message: String,
}

impl Failure {
    /// A failure with its kind and its sentence.
    pub fn new(kind: ErrorKind, message: impl Display) -> Self {
        Self { kind, message: message.to_string() }
    }

    /// The end of a command that has told what is wrong, or leaves that to another process: the exit code alone.
    pub fn told(kind: ErrorKind) -> Self {
        Self { kind, message: String::new() }
    }

    /// Tells the user on standard error, unless that was done; it is the last that is told.
    pub fn tell(&self) {
        if self.message.is_empty() {
            return;
        }
        *IS_TOLD.lock().unwrap_or_else(PoisonError::into_inner) = true;
        tell(&format!("error: {}", self.message));
    }

    /// Tells the user on standard error and gives the exit code.
    pub fn report(&self) -> ExitCode {
        self.tell();
        ExitCode::from(self.kind as u8)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(error.kind, error)
    }
}

/// Colors for a terminal; they are taken out where there is none, and where `NO_COLOR` is set.
pub mod style {
    use anstyle::{AnsiColor, Style};

    /// What went wrong.
    pub const ERROR: Style = AnsiColor::Red.on_default().bold();
    /// What is doubtful.
    pub const WARNING: Style = AnsiColor::Yellow.on_default().bold();
    /// What is good to know.
    pub const NOTE: Style = AnsiColor::Cyan.on_default();
}

/// Makes the end of memory an exit code: the standard library tells how much could not be had, and aborts. What else aborts, such as
/// a stack that overflows, tells so as well and ends with the same code.
pub fn exit_where_memory_ends() {
    let always = Arc::new(AtomicBool::new(true));
    // Where this cannot be arranged, the program ends as any other.
    let _ = register_conditional_shutdown(SIGABRT, ErrorKind::OutOfMemory as i32, always);
}

/// Whether the end of the command was told.
static IS_TOLD: Mutex<bool> = Mutex::new(false);

/// Does something unless the end of the command was told, or is being told.
pub(crate) fn unless_ended(work: impl FnOnce()) {
    let is_told = IS_TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if !*is_told {
        work();
    }
}

/// A text with the first word in its color, where it is one of those that say how bad something is.
pub(crate) fn colored(text: &str) -> String {
    let words = [("error", style::ERROR), ("warning", style::WARNING), ("note", style::NOTE)];
    let found = words.into_iter().find_map(|(word, style)| {
        // Findings begin with the word, padded to a column.
        let (column, marked) = (format!("{word:<8} "), format!("{word}:"));
        let end = if text.starts_with(&marked) { marked.len() } else { word.len() };
        (text.starts_with(&column) || text.starts_with(&marked)).then(|| (style, text.split_at(end)))
    });
    found.map_or(text.to_owned(), |(style, (word, rest))| format!("{style}{word}{style:#}{rest}"))
}

/// Writes a line to standard error. Where nobody can be told, as on a full disk or after the terminal was closed, the
/// work goes on all the same.
pub fn tell(line: &str) {
    let line = without_controls(line);
    let line = terminal_width().map_or_else(|| line.to_string(), |width| wrapped(&line, width));
    let _ = anstream::stderr().write_all(format!("{}\n", colored(&line)).as_bytes());
}

/// The columns of the terminal that standard error goes to; nothing if that is none.
pub fn terminal_width() -> Option<usize> {
    width_of(&std::io::stderr())
}

fn width_of(stream: &(impl IsTerminal + AsFd)) -> Option<usize> {
    // A terminal that does not tell its size is as wide as the first were.
    let width = || terminal_size::terminal_size_of(stream).map_or(80, |(width, _)| usize::from(width.0));
    stream.is_terminal().then(width)
}

/// A text in lines of at most `width` columns that end between words. Commands stay whole, to be copied: lines that begin with `$`, and
/// what stands between backticks.
pub fn wrapped(text: &str, width: usize) -> String {
    const JOINED: char = '\u{a0}';
    let options = textwrap::Options::new(width)
        .break_words(false)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    let wrap = |line: &str| {
        if line.starts_with("$ ") {
            return line.to_owned();
        }
        let join = |(number, part): (usize, &str)| match number % 2 {
            0 => part.to_owned(),
            _ => part.replace(' ', &JOINED.to_string()),
        };
        let joined: Vec<String> = line.split('`').enumerate().map(join).collect();
        textwrap::fill(&joined.join("`"), &options).replace(JOINED, " ")
    };
    text.lines().map(wrap).collect::<Vec<_>>().join("\n")
}

/// A value as JSON, as files hold it and `--json` prints it.
pub fn json(value: &impl Serialize) -> Result<String, Failure> {
    let text =
        serde_json::to_string_pretty(value).map_err(|error| Failure::new(ErrorKind::Internal, error))?;
    Ok(text + "\n")
}

/// Writes findings and other sentences to standard output, in lines that fit a terminal.
pub fn print_sentences(text: &str) -> Result<(), Failure> {
    let text = without_controls(text);
    let line = |line: &str| match width_of(&std::io::stdout()) {
        Some(width) => colored(&wrapped(line, width)) + "\n",
        None => colored(line) + "\n",
    };
    write_out(&text.lines().map(line).collect::<String>())
}

/// Writes a result to standard output, with what would steer a terminal made visible. A reader that has seen enough, such as
/// `head`, is no error.
pub fn print(text: &str) -> Result<(), Failure> {
    write_out(&without_controls(text))
}

fn write_out(text: &str) -> Result<(), Failure> {
    match anstream::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(ErrorKind::Io, format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_say_how_bad_something_is_have_colors() {
        let (error, warning) = (style::ERROR, style::WARNING);
        assert_eq!(colored("error: a"), format!("{error}error:{error:#} a"));
        assert_eq!(colored("warning  a"), format!("{warning}warning{warning:#}  a"));
        for plain in ["errors are", "a error: b", "note", ""] {
            assert_eq!(colored(plain), plain);
        }
    }

    #[test]
    fn lines_end_between_words_and_commands_stay_whole() {
        let text =
            "the folder is taken; go on with `ssn train --resume a-long/folder/of/a-run` or name another";
        let lines =
            "the folder is taken; go on with\n`ssn train --resume a-long/folder/of/a-run`\nor name another";
        assert_eq!(wrapped(text, 40), lines);
        let command = "$ ssn train --data a-folder --out another-folder --set training.steps=1000";
        assert_eq!(wrapped(command, 40), command);
        assert_eq!(wrapped("two\nlines", 40), "two\nlines");
    }
}
