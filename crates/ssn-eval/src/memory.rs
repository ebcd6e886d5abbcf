//! Whether there is memory for something whose size a file claims. A file of a few kilobytes may claim an image of
//! gigabytes, and a program that the system gives no memory ends at once.

use ssn_data::parallel::available_bytes;
use ssn_io::{Error, Result};

/// Below this, the system is not asked what is free: there is always so much, or nothing works any more.
const SMALL: u64 = 64 << 20;

/// Refuses work that needs more bytes than there are.
///
/// # Errors
/// When less is free, or when the system refuses that much at once, as under `ulimit -v`.
pub fn check_memory(what: &str, bytes: u64) -> Result<()> {
    let free = if bytes < SMALL { u64::MAX } else { available_bytes() as u64 };
    // Nothing is written to it, so it costs nothing.
    let is_given =
        usize::try_from(bytes).is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok());
    if is_given && bytes <= free {
        return Ok(());
    }
    Err(Error::memory(what, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_has_is_refused() {
        assert!(check_memory("a map", 1 << 20).is_ok());
        for bytes in [1 << 50, u64::MAX] {
            let message = check_memory("a map", bytes).unwrap_err().to_string();
            assert!(message.starts_with("a map needs ") && message.contains("MiB of memory"), "{message}");
        }
    }
}
