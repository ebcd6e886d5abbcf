//! What NRRD and MetaImage share: a header of text lines, and data behind it or in a file beside it.
//!
//! Knows how lines, words, numbers, names of files and blocks of values are read, and what can be said about a
//! geometry; not which fields there are or what they mean, which is each format's own.

pub(crate) mod lines;
pub(crate) mod place;
pub(crate) mod sibling;
pub(crate) mod stored;
pub(crate) mod words;
