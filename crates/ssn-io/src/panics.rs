//! Panics in the decoders of other crates, as refusals of the file.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::Problem;

/// What `decode` returns; a panic in it is damage of `part`. The message of the panic is still printed.
///
/// Every call of a foreign decoder goes through here. `decode` owns what it changes, so nothing half-done is seen
/// after a panic.
pub(crate) fn catch_panic<T>(
    part: &'static str,
    decode: impl FnOnce() -> Result<T, Problem>,
) -> Result<T, Problem> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let reason = format!("its decoder stopped: {}", text.unwrap_or("no reason given"));
        Err(Problem::Damaged { part, reason })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_damage() {
        let message = catch_panic::<()>("the file", || panic!("index {}", 7)).unwrap_err().to_string();
        assert!(message.starts_with("the file is damaged (its decoder stopped: index 7)"), "{message}");
        assert_eq!(catch_panic("the file", || Ok(3)).unwrap(), 3);
    }
}
