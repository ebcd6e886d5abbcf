//! What this program was built against and runs on.

/// The version of libtorch that this program was built for.
pub const LIBTORCH_VERSION: &str = "2.11.0";
