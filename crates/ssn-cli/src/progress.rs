//! Progress of long work on standard error: a line for each phase on a terminal, which changes in its place, and a line now
//! and then elsewhere.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressState, ProgressStyle};
use ssn_core::progress::{PhaseId, Progress};
use ssn_data::text::{spoken, without_controls};

use crate::exit::{colored, tell, terminal_width, unless_ended, wrapped};

/// How often plain lines are written at first where there is no terminal, and at last in long work.
const LINE_INTERVAL: Duration = Duration::from_secs(10);
const LONGEST_INTERVAL: Duration = Duration::from_secs(300);

/// Cells of a bar.
const BAR: usize = 12;

/// The lines that change in their place, of all verbs of the process: there is one terminal.
static LINES: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Writes a line above those that change.
pub fn message(line: &str) {
    match terminal_width() {
        Some(width) => {
            let _ = LINES.println(colored(&wrapped(&without_controls(line), width)));
        }
        None => tell(line),
    }
}

/// Answers a signal: writes a line above those that change, unless the command has ended meanwhile.
pub fn acknowledge(line: &str) {
    unless_ended(|| message(line));
}

/// What is known of a phase.
struct State {
    name: &'static str,
    items: &'static str,
    total: usize,
    done: usize,
    current: String,
    /// When it began, and after how many items: a run that is resumed does not begin at 0.
    begin: (Instant, usize),
    /// When the last item was done.
    last: Instant,
}

impl State {
    /// How many items are done, of how many.
    fn count(&self) -> String {
        match self.total {
            0 => format!("{} {}", self.done, self.items),
            total => format!("{}/{total} {}", self.done, self.items),
        }
    }

    /// The time of an item and of what is left: from all items so far, so that what a training spends on its validations counts.
    fn pace(&self, now: Instant) -> String {
        if self.total == 0 {
            return String::new();
        }
        if self.done >= self.total {
            return " · finishing".to_owned();
        }
        let (begin, before) = self.begin;
        if self.done <= before {
            return " · estimating".to_owned();
        }
        let each = |until: Instant| (until - begin).as_secs_f64() / (self.done - before) as f64;
        // An item that takes longer than those before counts as far as it is.
        let is_late = (now - self.last).as_secs_f64() > each(self.last);
        let each = each(if is_late { now } else { self.last });
        let left = each * (self.total - self.done) as f64;
        let each = if each < 1e-3 { String::new() } else { format!("{} each, ", spoken(each)) };
        format!(" · {each}{} left", spoken(left))
    }

    /// The words on what is worked on.
    fn detail(&self) -> String {
        if self.current.is_empty() { String::new() } else { format!(" · {}", self.current) }
    }

    fn bar(&self, cells: usize) -> String {
        let full = (cells * self.done.min(self.total)).checked_div(self.total).unwrap_or(0);
        format!(" {}{}", "━".repeat(full), "─".repeat(cells - full))
    }

    /// All of it in a line of at most `width` columns; what does not fit is left out as a whole: first the words on what is worked
    /// on, then the bar.
    fn line(&self, width: usize, now: Instant) -> String {
        let bar = if self.total == 0 { String::new() } else { self.bar(BAR) };
        let (name, count, pace) = (self.name, self.count(), self.pace(now));
        let lines = [
            format!("{name}{bar} {count}{pace}{}", self.detail()),
            format!("{name}{bar} {count}{pace}"),
            format!("{name} {count}{pace}"),
        ];
        let shortest = format!("{name} {count}");
        lines.into_iter().find(|line| line.chars().count() <= width).unwrap_or(shortest)
    }
}

/// A phase that goes on.
struct Shown {
    id: PhaseId,
    state: Arc<Mutex<State>>,
    bar: ProgressBar,
}

/// All phases that go on, in the order in which they began.
#[derive(Default)]
struct Phases {
    shown: Vec<Shown>,
    began: Option<Instant>,
    last_line: Option<Instant>,
}

impl Phases {
    fn state(&self, id: PhaseId) -> Option<MutexGuard<'_, State>> {
        self.shown.iter().find(|shown| shown.id == id).map(|shown| lock(&shown.state))
    }

    /// Writes where all phases stand, if the last line was long ago.
    fn plain_line(&mut self, now: Instant) {
        let (began, last) = (*self.began.get_or_insert(now), *self.last_line.get_or_insert(now));
        let interval = (now.duration_since(began) / 20).clamp(LINE_INTERVAL, LONGEST_INTERVAL);
        if now.duration_since(last) < interval {
            return;
        }
        self.last_line = Some(now);
        let Some((innermost, outer)) = self.shown.split_last() else { return };
        let outer = outer.iter().map(|shown| {
            let state = lock(&shown.state);
            format!("{} {}, ", state.name, state.count())
        });
        let state = lock(&innermost.state);
        let (outer, count, pace) = (outer.collect::<String>(), state.count(), state.pace(now));
        tell(&format!("{outer}{} {count}{pace}{}", state.name, state.detail()));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a callback that shows progress, or only warnings when `quiet`.
pub fn show(quiet: bool) -> impl Fn(Progress<'_>) + Sync {
    let phases: Mutex<Phases> = Mutex::default();
    let is_terminal = terminal_width().is_some();
    move |event| {
        if let Progress::Warning(line) = event {
            return message(&format!("warning: {line}"));
        }
        if quiet {
            return;
        }
        let mut phases = lock(&phases);
        match event {
            Progress::Begin { phase: id, name, total, done, items } => {
                let last = Instant::now();
                let begin = (last, done);
                let state = State { name, items, total, done, current: String::new(), begin, last };
                let state = Arc::new(Mutex::new(state));
                let bar = if is_terminal { bar(&state) } else { ProgressBar::hidden() };
                phases.shown.push(Shown { id, state, bar });
            }
            Progress::Done { phase, done } => {
                let now = Instant::now();
                if let Some(mut state) = phases.state(phase) {
                    (state.done, state.last) = (done, now);
                }
                if !is_terminal {
                    phases.plain_line(now);
                }
            }
            Progress::Current { phase, what } => {
                if let Some(mut state) = phases.state(phase) {
                    state.current = without_controls(what).into_owned();
                }
            }
            Progress::Message(line) | Progress::Warning(line) => message(line),
            Progress::End { phase } => {
                if let Some(place) = phases.shown.iter().position(|shown| shown.id == phase) {
                    phases.shown.remove(place).bar.finish_and_clear();
                }
            }
        }
    }
}

/// A line on the terminal that is drawn from the state several times a second.
fn bar(state: &Arc<Mutex<State>>) -> ProgressBar {
    let bar = LINES.add(ProgressBar::no_length());
    let state = state.clone();
    let line = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
        // One column stays free: some terminals break a line that fills the last.
        let width = terminal_width().unwrap_or(80).saturating_sub(1);
        let _ = out.write_str(&lock(&state).line(width, Instant::now()));
    };
    if let Ok(style) = ProgressStyle::with_template("{line}") {
        bar.set_style(style.with_key("line", line));
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(total: usize, done: usize, begin: (Instant, usize), last: Instant) -> State {
        State { name: "training", items: "steps", total, done, current: "loss 0.3142".into(), begin, last }
    }

    #[test]
    fn nothing_is_estimated_before_there_is_something_to_estimate_from() {
        let now = Instant::now();
        assert_eq!(state(0, 0, (now, 0), now).line(80, now), "training 0 steps · loss 0.3142");
        let begun = state(200, 100, (now, 100), now);
        assert_eq!(begun.line(80, now), "training ━━━━━━────── 100/200 steps · estimating · loss 0.3142");
        let ended = state(200, 200, (now, 100), now);
        assert!(ended.line(80, now).contains("200/200 steps · finishing"));
    }

    #[test]
    fn time_left_grows_while_an_item_takes_longer() {
        let begin = Instant::now();
        let state = state(10, 8, (begin, 4), begin + Duration::from_secs(40));
        let after = |seconds| state.pace(begin + Duration::from_secs(seconds));
        assert_eq!(after(40), " · 10 s each, 20 s left");
        assert_eq!(after(50), " · 10 s each, 20 s left");
        assert_eq!(after(80), " · 20 s each, 40 s left");
    }

    #[test]
    fn a_line_leaves_out_whole_parts_to_fit() {
        let now = Instant::now();
        let state = state(10, 5, (now - Duration::from_secs(10), 0), now);
        let full = state.line(200, now);
        let width = full.chars().count();
        assert_eq!(full, "training ━━━━━━────── 5/10 steps · 2.0 s each, 10 s left · loss 0.3142");
        assert_eq!(state.line(width, now), full);
        assert_eq!(state.line(width - 1, now), "training ━━━━━━────── 5/10 steps · 2.0 s each, 10 s left");
        assert_eq!(state.line(50, now), "training 5/10 steps · 2.0 s each, 10 s left");
        assert_eq!(state.line(5, now), "training 5/10 steps");
    }
}
