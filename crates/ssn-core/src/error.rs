//! What can be wrong with the input of this crate. Every variant names the field, the index and the value.

use thiserror::Error;

/// The result of every fallible function of this crate.
pub type Result<T> = std::result::Result<T, CoreError>;

/// Input that cannot be used.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum CoreError {
    /// A value that must be finite is not.
    #[error("{field}[{index}] is {value}, but every value must be finite")]
    NonFinite {
        /// The array that holds the value.
        field: &'static str,
        /// Flat index into that array.
        index: usize,
        /// The value found.
        value: f64,
    },
    /// A value outside the range that it may have.
    #[error("{field}[{index}] is {value}, but it must be {expected}")]
    OutOfRange {
        /// The array or parameter that holds the value.
        field: &'static str,
        /// Flat index into that array, 0 for a single parameter.
        index: usize,
        /// The value found.
        value: f64,
        /// The range in words, such as "at least 0".
        expected: &'static str,
    },
    /// An array whose length does not follow from the shape.
    #[error("{field} has length {found}, but the shape asks for {expected}")]
    Length {
        /// The array.
        field: &'static str,
        /// The length that the shape asks for.
        expected: usize,
        /// The length found.
        found: usize,
    },
    /// A label that is not a class.
    #[error("{field}[{index}] is label {label}, but there are only {classes} classes (0 to {})", classes - 1)]
    Label {
        /// The label map that holds the label.
        field: &'static str,
        /// The voxel.
        index: usize,
        /// The label found.
        label: u8,
        /// The number of classes.
        classes: usize,
    },
    /// A collection that must not be empty.
    #[error("{field} is empty, but at least one is needed")]
    Empty {
        /// The collection.
        field: &'static str,
    },
}
