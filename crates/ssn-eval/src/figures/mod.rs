//! Figures as SVG and PNG, and pages of HTML that hold figures and tables in one file.

mod ablation;
mod case_rows;
mod curves;
mod ged_samples;
pub(crate) mod histogram;
pub(crate) mod html;
pub(crate) mod matrix;
mod picture;
mod plot;
mod reliability;
pub(crate) mod sample_dice;
mod strips;
pub(crate) mod svg;
mod toy;

pub use ablation::{AblationAxes, AblationPoint, ablation_figure};
pub use case_rows::{CaseRow, RowPicture, case_rows_figure};
pub use curves::{Axes, Curve, StepMark, curve_panels, curves_figure};
pub use ged_samples::{GedMean, GedSeries, ged_samples_figure};
pub use picture::Picture;
pub use reliability::reliability_figure;
pub use strips::{Block, Strip, Tile, strips_figure, strips_with_legend};
pub use svg::{Color, RasterError, png_from_svg};
pub use toy::{Panel, toy_figure};
