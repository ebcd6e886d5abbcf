//! SVG to PNG, with the font inside the program.

use std::sync::{Arc, LazyLock};

use resvg::{tiny_skia, usvg};
use thiserror::Error;

use crate::figures::svg::FONT_FAMILY;

static FONT: &[u8] = include_bytes!("../../assets/NotoSans-subset.ttf");

static FONTS: LazyLock<Arc<usvg::fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = usvg::fontdb::Database::new();
    fonts.load_font_data(FONT.to_vec());
    fonts.set_sans_serif_family(FONT_FAMILY);
    Arc::new(fonts)
});

/// A drawing that could not be rasterized.
#[derive(Debug, Error)]
#[error("cannot rasterize the figure: {0}")]
pub struct RasterError(String);

/// The drawing as a PNG file, `scale` pixels for each of its own.
pub fn png_from_svg(svg: &str, scale: f32) -> Result<Vec<u8>, RasterError> {
    let error = |message: String| RasterError(message);
    let options = usvg::Options { fontdb: FONTS.clone(), ..usvg::Options::default() };
    let tree = usvg::Tree::from_str(svg, &options).map_err(|e| error(e.to_string()))?;
    let size = tree.size().to_int_size().scale_by(scale).ok_or_else(|| error("it has no size".into()))?;
    let mut pixels = tiny_skia::Pixmap::new(size.width(), size.height())
        .ok_or_else(|| error(format!("{} × {} pixels are too many", size.width(), size.height())))?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|e| error(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::color::INK;
    use crate::figures::svg::{Anchor, Drawing};

    /// Every sign beyond ASCII that figures use has a glyph of its own in the embedded font.
    #[test]
    fn every_sign_leaves_ink_on_the_paper() {
        let picture = |text: &str| {
            let mut drawing = Drawing::new(20.0, 20.0);
            drawing.text(2.0, 15.0, 12.0, Anchor::Start, INK, text);
            png_from_svg(&drawing.finish("t", "d"), 1.0).unwrap()
        };
        let blank = picture("");
        assert!(blank.starts_with(b"\x89PNG"));
        for sign in ["0", "-", "−", "±", "×", "·", "–", "σ", "η", "μ", "²", "⁵", "…"] {
            assert!(picture(sign) != blank, "{sign} is missing");
        }
    }

    #[test]
    fn a_broken_drawing_is_an_error() {
        assert!(png_from_svg("<svg", 1.0).is_err());
    }
}
