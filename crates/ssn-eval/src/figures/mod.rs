//! Figures as SVG and PNG, and pages of HTML that hold figures and tables in one file.

mod curves;
pub(crate) mod histogram;
pub(crate) mod html;
pub(crate) mod matrix;
mod picture;
pub(crate) mod sample_dice;
mod strips;
pub(crate) mod svg;
mod toy;

pub use curves::{Axes, Curve, curves_figure};
pub use picture::Picture;
pub use strips::{Block, Strip, Tile, strips_figure, strips_with_legend};
pub use svg::{Color, RasterError, png_from_svg};
pub use toy::{Panel, toy_figure};
