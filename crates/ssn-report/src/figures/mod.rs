//! What figures are made of, as SVG and PNG, pages of HTML that hold figures and tables in one file, and the figures that others
//! than reports have as well.

mod ablation;
pub(crate) mod chart;
mod picture;
pub(crate) mod scale;
mod sheet;
pub(crate) mod svg;
mod toy;

pub use ablation::{AblationAxes, AblationPoint, ablation_figure};
pub use chart::{Entry, Key, Style};
pub use picture::Picture;
pub use sheet::{ColumnGroup, PictureTile, Sheet, SheetRow};
pub use svg::{Color, RasterError, png_from_svg};
pub use toy::{ToyRow, toy_figure};
