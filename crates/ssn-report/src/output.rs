//! The files of a report: the page, and its figures as SVG and PNG.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;
use ssn_core::Control;
use ssn_io::{Error, Result, write_atomically};

use askama::Template;

use crate::figures::png_from_svg;
pub(crate) use crate::page::Drawn;
use crate::page::Page;
use ssn_eval::predictions::{check_free, claim, create_folder, file_stem, remove_own_files, write_text};

const PAGE: &str = "report.html";
const FIGURES: &str = "figures";
/// Pixels of a PNG per pixel of its SVG.
const PNG_SCALE: f32 = 2.0;
const UNITS: [(&str, u64); 2] = [("MiB", 1 << 20), ("KiB", 1 << 10)];

/// A report under construction.
pub(crate) struct Report {
    folder: PathBuf,
    pub(crate) page: Page,
    /// Names without ending, and drawings.
    figures: Vec<(String, String)>,
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
    pub(crate) fn new(folder: PathBuf, title: &str, overwrite: bool) -> Result<Self> {
        if folder.join(PAGE).exists() {
            claim(&folder, &[PAGE.to_owned()])?;
        }
        check_free(&folder.join(PAGE), overwrite)?;
        Ok(Self { folder, page: Page::new(title), figures: vec![] })
    }

    pub(crate) fn show(&mut self, mut drawn: Vec<Drawn>) {
        if drawn.is_empty() {
            return;
        }
        drawn.iter_mut().for_each(|one| one.name = file_stem(&one.name));
        self.figures.extend(drawn.iter().map(|one| (one.name.clone(), one.svg.clone())));
        self.page.figures(drawn);
    }

    /// Writes everything. The page comes last, and figures of an earlier report go after it: there is always a whole page.
    pub(crate) fn write(self, control: Control<'_>) -> Result<ReportFiles> {
        let figures = self.folder.join(FIGURES);
        let endings = ["svg", "png"];
        let of_figure =
            |(name, _): &(String, String)| endings.map(|ending| format!("{FIGURES}/{name}.{ending}"));
        let names: BTreeSet<String> =
            self.figures.iter().flat_map(of_figure).chain([PAGE.to_owned()]).collect();
        claim(&self.folder, &names.iter().cloned().collect::<Vec<_>>())?;
        create_folder(&figures)?;
        control.message(&format!("drawing {} figures", self.figures.len()));
        let written: Result<Vec<_>> = self
            .figures
            .par_iter()
            .map(|(name, svg)| {
                let png = png_from_svg(svg, PNG_SCALE)
                    .map_err(|error| Error::internal(format!("figure {name}: {error}")))?;
                let paths = endings.map(|ending| figures.join(format!("{name}.{ending}")));
                for (path, bytes) in paths.iter().zip([svg.as_bytes(), &png]) {
                    write_atomically(path, |out| out.write_all(bytes))?;
                }
                Ok((paths, (svg.len() + png.len()) as u64))
            })
            .collect();
        let written = written?;
        let (report, html) = (self.folder.join(PAGE), self.page.render().map_err(Error::internal)?);
        write_text(&report, &html)?;
        // Those of an earlier report, which may be of other cases.
        let is_left = |name: &str| Path::new(name).starts_with(FIGURES) && !names.contains(name);
        remove_own_files(&self.folder, is_left)?;
        Ok(ReportFiles {
            report,
            bytes: html.len() as u64,
            figure_bytes: written.iter().map(|(_, bytes)| bytes).sum(),
            figures: written.into_iter().flat_map(|(paths, _)| paths).collect(),
        })
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
