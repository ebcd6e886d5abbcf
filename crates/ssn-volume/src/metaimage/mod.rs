//! MetaImage.
