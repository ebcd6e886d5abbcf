//! Errors of the library as exit codes.

use ssn::Error;
use ssn_cli::Failure;

/// The failure for an error of the library.
pub fn failure(error: Error) -> Failure {
    Failure::new(error.kind, error.message)
}
