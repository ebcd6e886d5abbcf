//! What figures are made of, as SVG and PNG, pages of HTML that hold figures and tables in one file, and the figures that others
//! than reports have as well.

mod ablation;
pub(crate) mod html;
mod picture;
pub(crate) mod plot;
mod strips;
pub(crate) mod svg;
mod toy;

pub use ablation::{AblationAxes, AblationPoint, ablation_figure};
pub use picture::Picture;
pub(crate) use strips::strips_with_legend;
pub use strips::{Block, Strip, Tile, strips_figure};
pub use svg::{Color, RasterError, png_from_svg};
pub use toy::{Panel, toy_figure};
