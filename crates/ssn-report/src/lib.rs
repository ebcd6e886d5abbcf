//! Pictures and reports of models and their uncertainty.
//!
//! Figures are written as SVG; PNG is the same drawing rasterised with an embedded font, so that it looks the
//! same on every machine. A page of HTML holds figures and tables in one file. Nothing here knows torch.

pub mod colour;
pub mod escape;
pub mod figures;
pub mod html;
pub mod picture;
pub mod raster;
pub mod svg;
pub mod table;

pub use raster::{RasterError, png_from_svg};
