//! What the targets of readers share that call decoders of other crates.

use std::collections::HashSet;
use std::panic::Location;
use std::sync::Mutex;

static SEEN: Mutex<Option<HashSet<String>>> = Mutex::new(None);

/// Reports each place of a panic once and goes on, where libFuzzer's own hook would abort. A panic that is not caught
/// on its way still does.
pub fn report_panics() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(Location::to_string).unwrap_or_default();
        let mut seen = SEEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if seen.get_or_insert_default().insert(place) {
            eprintln!("PANIC {info}");
        }
    }));
}
