//! Progress of long work on standard error: a bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::exit::tell;

/// How often plain lines are written where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// A count of things on their way to a total, shared by threads.
pub struct Progress {
    bar: ProgressBar,
    noun: &'static str,
    /// When the last plain line was written; nothing on a terminal or when quiet.
    last_line: Option<Mutex<Instant>>,
}

impl Progress {
    /// Starts at 0 of `total` things, such as `cases`.
    pub fn new(total: usize, noun: &'static str, quiet: bool) -> Self {
        if quiet {
            return Self { bar: ProgressBar::hidden(), noun, last_line: None };
        }
        if !std::io::stderr().is_terminal() {
            let bar = ProgressBar::hidden();
            bar.set_length(total as u64);
            return Self { bar, noun, last_line: Some(Mutex::new(Instant::now())) };
        }
        let bar = ProgressBar::new(total as u64);
        let template = format!("{{wide_bar}} {{human_pos}}/{{human_len}} {noun}{{msg}} · {{eta}} left");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, noun, last_line: None }
    }

    /// `done` of the total are done; smaller numbers that come late are ignored.
    pub fn reached(&self, done: usize) {
        let done = (done as u64).max(self.bar.position());
        self.bar.set_position(done);
        self.write_line(String::new);
    }

    /// `more` are done; `message` says what is going on.
    pub fn advance(&self, more: usize, message: impl FnOnce() -> String) {
        self.bar.inc(more as u64);
        let message = || format!(" · {}", message());
        match &self.last_line {
            Some(_) => self.write_line(message),
            None => self.bar.set_message(message()),
        }
    }

    /// Writes a line where there is no terminal, if the last one is long ago.
    fn write_line(&self, message: impl FnOnce() -> String) {
        let Some(last) = &self.last_line else { return };
        let Ok(mut last) = last.lock() else { return };
        if last.elapsed() >= LINE_INTERVAL {
            *last = Instant::now();
            let (done, total) = (self.bar.position(), self.bar.length().unwrap_or(0));
            tell(&format!("{done}/{total} {}{}", self.noun, message()));
        }
    }

    /// Says on the bar what is going on; nothing where there is no terminal.
    pub fn note(&self, message: impl FnOnce() -> String) {
        if self.last_line.is_none() && !self.bar.is_hidden() {
            self.bar.set_message(format!(" · {}", message()));
        }
    }

    /// Writes a line above the bar, or alone; nothing when quiet.
    pub fn say(&self, line: &str) {
        match &self.last_line {
            Some(_) => tell(line),
            None => self.bar.println(line),
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
