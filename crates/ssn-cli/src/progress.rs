//! Progress of long work on standard error: a bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use ssn_core::progress::Progress;

use crate::exit::tell;

/// How often plain lines are written where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// The phase of the work that goes on, as it is shown.
struct Shown {
    bar: ProgressBar,
    items: &'static str,
    current: String,
    last_line: Instant,
}

/// A callback that shows progress, or nothing when `quiet`.
pub fn show(quiet: bool) -> impl Fn(Progress<'_>) + Sync {
    let shown: Mutex<Option<Shown>> = Mutex::new(None);
    let is_terminal = std::io::stderr().is_terminal();
    move |event| {
        if quiet {
            return;
        }
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        match (event, &mut *shown) {
            (Progress::Begin { total, items }, shown) => {
                let bar = if is_terminal { bar(total, items) } else { ProgressBar::hidden() };
                bar.set_length(total as u64);
                *shown = Some(Shown { bar, items, current: String::new(), last_line: Instant::now() });
            }
            (Progress::Done(done), Some(phase)) => {
                phase.bar.set_position(done as u64);
                if !is_terminal && phase.last_line.elapsed() >= LINE_INTERVAL {
                    phase.last_line = Instant::now();
                    let total = phase.bar.length().unwrap_or(0);
                    tell(&format!("{done}/{total} {}{}", phase.items, phase.current));
                }
            }
            (Progress::Current(what), Some(phase)) => {
                phase.current = format!(" · {what}");
                phase.bar.set_message(phase.current.clone());
            }
            (Progress::Message(line), Some(phase)) if is_terminal => phase.bar.println(line),
            (Progress::Message(line), _) => tell(line),
            (Progress::End, shown) => {
                if let Some(phase) = shown.take() {
                    phase.bar.finish_and_clear();
                }
            }
            (Progress::Done(_) | Progress::Current(_), None) => {}
        }
    }
}

fn bar(total: usize, items: &str) -> ProgressBar {
    let bar = ProgressBar::new(total as u64);
    let template = format!("{{wide_bar}} {{human_pos}}/{{human_len}} {items}{{msg}} · {{eta}} left");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
