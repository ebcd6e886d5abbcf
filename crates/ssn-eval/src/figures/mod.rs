//! Figures as SVG, and pages of HTML that hold figures and tables in one file.
//!
//! PNG is the same drawing rasterized with an embedded font, so that it looks the same on every machine.

mod axis;
pub mod color;
pub mod curves;
pub mod escape;
pub mod histogram;
pub mod html;
pub mod matrix;
pub mod picture;
pub mod raster;
pub mod sample_dice;
pub mod strips;
pub mod svg;
pub mod table;
pub mod toy;

pub use raster::{RasterError, png_from_svg};
