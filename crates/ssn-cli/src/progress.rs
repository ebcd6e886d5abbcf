//! Progress of long work on standard error: a bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use ssn_core::progress::Progress;
use ssn_data::text::spoken;

use crate::exit::tell;

/// How often plain lines are written where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// The phase of the work that goes on, as it is shown.
struct Shown {
    bar: ProgressBar,
    items: &'static str,
    current: String,
    last_line: Instant,
    /// When the first items were reported, and how many: a resumed run does not begin at 0.
    since: Option<(Instant, usize)>,
}

impl Shown {
    /// The time of an item, and what is left, once some items are done.
    fn pace(&self, done: usize) -> Option<String> {
        let (begin, before) = self.since?;
        let total = self.bar.length().unwrap_or(0) as usize;
        let more = done.checked_sub(before).filter(|more| *more > 0)?;
        let each = begin.elapsed().as_secs_f64() / more as f64;
        let left = each * total.saturating_sub(done) as f64;
        Some(format!(" · {} each, {} left", spoken(each), spoken(left)))
    }
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
                let (current, last_line) = (String::new(), Instant::now());
                *shown = Some(Shown { bar, items, current, last_line, since: None });
            }
            (Progress::Done(done), Some(phase)) => {
                phase.bar.set_position(done as u64);
                let _ = phase.since.get_or_insert((Instant::now(), done));
                if !is_terminal && phase.last_line.elapsed() >= LINE_INTERVAL {
                    phase.last_line = Instant::now();
                    let (total, pace) =
                        (phase.bar.length().unwrap_or(0), phase.pace(done).unwrap_or_default());
                    tell(&format!("{done}/{total} {}{}{pace}", phase.items, phase.current));
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
