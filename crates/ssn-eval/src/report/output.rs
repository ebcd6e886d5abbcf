//! The files of a report: the page, and its figures as SVG and PNG.

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;
use ssn_core::{OnProgress, Progress};

use crate::error::{EvalError, Result};
use crate::figures::html::{Figure, Page};
use crate::figures::png_from_svg;
use crate::predictions::{check_free, create_folder, file_stem, write_text};

const PAGE: &str = "report.html";
const FIGURES: &str = "figures";
/// Pixels of a PNG per pixel of its SVG.
const PNG_SCALE: f32 = 2.0;
const UNITS: [(&str, u64); 2] = [("MiB", 1 << 20), ("KiB", 1 << 10)];

/// A report under construction.
pub(super) struct Report {
    folder: PathBuf,
    pub(super) page: Page,
    /// Names without ending, and drawings.
    figures: Vec<(String, String)>,
}

/// A drawing: the name of its file without ending, the SVG, and the sentence below it.
pub(super) struct Drawn {
    pub(super) name: String,
    pub(super) svg: String,
    pub(super) caption: String,
}

/// What was written.
#[derive(Debug, Serialize)]
pub struct ReportFiles {
    /// The page.
    pub report: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// The figures, each as SVG and as PNG.
    pub figures: Vec<PathBuf>,
    /// The size of all of them.
    pub figure_bytes: u64,
}

impl Report {
    /// Starts a report that may be written to a folder.
    pub(super) fn new(folder: PathBuf, title: &str, overwrite: bool) -> Result<Self> {
        check_free(&folder.join(PAGE), overwrite)?;
        Ok(Self { folder, page: Page::new(title), figures: vec![] })
    }

    pub(super) fn show(&mut self, drawn: Vec<Drawn>) {
        if drawn.is_empty() {
            return;
        }
        let names: Vec<String> = drawn.iter().map(|one| file_stem(&one.name)).collect();
        let figures: Vec<Figure<'_>> = drawn
            .iter()
            .zip(&names)
            .map(|(one, name)| Figure { name, svg: &one.svg, caption: &one.caption })
            .collect();
        self.page.figures(&figures);
        self.figures.extend(names.into_iter().zip(drawn).map(|(name, one)| (name, one.svg)));
    }

    /// Writes everything; the page comes last, so that a page that is there is whole.
    pub(super) fn write(self, progress: OnProgress<'_>) -> Result<ReportFiles> {
        let figures = self.folder.join(FIGURES);
        self.remove_old(&figures)?;
        create_folder(&figures)?;
        progress(Progress::Message(&format!("drawing {} figures", self.figures.len())));
        let written: Result<Vec<_>> = self
            .figures
            .par_iter()
            .map(|(name, svg)| {
                let png = png_from_svg(svg, PNG_SCALE)
                    .map_err(|error| EvalError::internal(format!("figure {name}: {error}")))?;
                let paths = ["svg", "png"].map(|ending| figures.join(format!("{name}.{ending}")));
                for (path, bytes) in paths.iter().zip([svg.as_bytes(), &png]) {
                    std::fs::write(path, bytes).map_err(|error| EvalError::system("write", path, error))?;
                }
                Ok((paths, (svg.len() + png.len()) as u64))
            })
            .collect();
        let written = written?;
        let (report, html) = (self.folder.join(PAGE), self.page.finish());
        write_text(&report, &html)?;
        Ok(ReportFiles {
            report,
            bytes: html.len() as u64,
            figure_bytes: written.iter().map(|(_, bytes)| bytes).sum(),
            figures: written.into_iter().flat_map(|(paths, _)| paths).collect(),
        })
    }

    /// Removes the figures of an earlier report, which may be of other cases.
    fn remove_old(&self, figures: &Path) -> Result<()> {
        let page = self.folder.join(PAGE);
        if !page.exists() {
            return Ok(());
        }
        std::fs::remove_file(&page).map_err(|error| EvalError::system("remove", &page, error))?;
        for entry in std::fs::read_dir(figures).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|ending| ending == "svg" || ending == "png") {
                std::fs::remove_file(&path).map_err(|error| EvalError::system("remove", &path, error))?;
            }
        }
        Ok(())
    }
}

impl std::fmt::Display for ReportFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} ({}), and {} figures as SVG and PNG beside it ({})",
            self.report.display(),
            size(self.bytes),
            self.figures.len() / 2,
            size(self.figure_bytes)
        )
    }
}

fn size(bytes: u64) -> String {
    match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_readable() {
        assert_eq!([900, 1536, 3 << 20].map(size), ["900 bytes", "1.5 KiB", "3.0 MiB"]);
    }
}
