//! Interpretation of the names of files and folders, shared by all layouts.
//!
//! A layout walks a [`Tree`], whose names have [`words()`] with the meanings of the [`Hint`]s. [`CaseNames`] aligns
//! files with cases, [`Role`] is the meaning of the rest of a name, and [`Raters`] numbers the raters of the
//! [`FoundCase`]s. If names leave a role open, the tree looks into the file.

mod align;
mod cases;
pub mod files;
mod lexicon;
mod raters;
mod roles;
mod tree;
mod words;

pub use align::{Align, CaseNames, NameMatch};
pub use cases::{FoundCase, Raters, first_unique, kinds_note, patient, unique};
pub use lexicon::Hint;
pub use raters::{RaterKey, rater_of};
pub use roles::{Role, channels_by_case, in_order};
pub use tree::{Look, PartPath, Tree};
pub use words::{
    BEFORE_RATER, BEHIND_CASE, channel_of, cuts, numbered, shared_ends, without_ends, without_kinds, words,
};
