//! Progress of long work on standard error: a bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// How often plain lines are written where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// A count of steps on their way to a total, shared by threads.
pub struct Progress {
    bar: ProgressBar,
    /// When the last plain line was written; nothing on a terminal or when quiet.
    last_line: Option<Mutex<Instant>>,
}

impl Progress {
    /// Starts at 0 of `total`.
    pub fn new(total: u64, quiet: bool) -> Self {
        if quiet {
            return Self { bar: ProgressBar::hidden(), last_line: None };
        }
        if !std::io::stderr().is_terminal() {
            let bar = ProgressBar::hidden();
            bar.set_length(total);
            return Self { bar, last_line: Some(Mutex::new(Instant::now())) };
        }
        let bar = ProgressBar::new(total);
        let template = "{wide_bar} {human_pos}/{human_len} steps · {msg} · {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, last_line: None }
    }

    /// Advances by `steps`; `message` says what is going on.
    pub fn advance(&self, steps: u64, message: impl FnOnce() -> String) {
        self.bar.inc(steps);
        let Some(last) = &self.last_line else {
            self.bar.set_message(message());
            return;
        };
        let Ok(mut last) = last.lock() else { return };
        if last.elapsed() >= LINE_INTERVAL {
            *last = Instant::now();
            let (done, total) = (self.bar.position(), self.bar.length().unwrap_or(0));
            eprintln!("{done}/{total} steps · {}", message());
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
