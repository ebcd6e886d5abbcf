//! What can be wrong with the input of this crate. Every variant names the field, the index and the value.

use thiserror::Error;

/// The result of every fallible function of this crate.
pub type Result<T> = std::result::Result<T, CoreError>;

/// Input that cannot be used.
#[derive(Debug, Clone, PartialEq, Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum CoreError {
    /// A value that must be finite is not.
    #[error("{field}[{index}] is {value}, but every value must be finite")]
    NonFinite { field: &'static str, index: usize, value: f64 },
    /// A value outside the range that it may have.
    #[error("{field}[{index}] is {value}, but it must be {expected}")]
    OutOfRange {
        field: &'static str,
        /// Flat index into that array, 0 for a single parameter.
        index: usize,
        value: f64,
        /// The range in words, such as "at least 0".
        expected: &'static str,
    },
    /// An array whose length does not follow from the shape.
    #[error("{field} has length {found}, but the shape asks for {expected}")]
    Length { field: &'static str, expected: usize, found: usize },
    /// A label that is not a class.
    #[error("{field}[{index}] is label {label}, but there are only {classes} classes (0 to {})", classes - 1)]
    Label { field: &'static str, index: usize, label: u8, classes: usize },
    /// A collection that must not be empty.
    #[error("{field} is empty, but at least one is needed")]
    Empty { field: &'static str },
}
