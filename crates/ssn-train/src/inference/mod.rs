//! Whole images, in tiles where they are large.

pub mod tiles;
pub mod whole_image;
