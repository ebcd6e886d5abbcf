//! The arguments of `ssn report`.

use std::path::PathBuf;

use clap::Args;

/// Shows predictions or runs in one HTML file that needs no network, and its figures as SVG and PNG.
///
/// Of predictions: scores with standard errors, the scores of every case, samples beside raters, how good the samples of each
/// case are, what steering and the modes of variation do. Of a run: how it learned. Of several folders: all side by side.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Writes OUT/report.html and OUT/figures. Scores are those of `ssn evaluate`, where it was run before. The \
                  same input gives the same bytes. docs/reference/report.md tells what every figure shows. Examples:\n  \
                  ssn report predictions\n  \
                  ssn report runs/first\n  \
                  ssn report predictions/rank-2 predictions/rank-10 runs/rank-10 --out comparison"
)]
pub struct ReportArgs {
    /// Folders of predictions, and of runs.
    #[arg(required = true, value_name = "RUN|PREDICTIONS")]
    pub paths: Vec<PathBuf>,

    /// The folder to write to [default: report in the folder; for several, report beside the first].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// How many cases get pictures: the best, the worst, the most ambiguous, and others evenly between them.
    #[arg(long, default_value_t = 6, value_name = "N", value_parser = case_count)]
    pub cases: usize,

    /// How many samples of each case the figures are made of.
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = sample_count)]
    pub samples: usize,

    /// The seed of the samples.
    #[arg(long, default_value_t = 0, value_name = "S")]
    pub seed: u64,

    /// The folder or file of the dataset, or a config (.toml) that names it; without it, what was predicted.
    #[arg(long, value_name = "DATASET|CONFIG")]
    pub data: Option<PathBuf>,

    /// Replace a report that is there already.
    #[arg(long)]
    pub overwrite: bool,
}

fn case_count(text: &str) -> Result<usize, String> {
    let count = text.trim().parse().ok().filter(|n| *n <= 1000);
    count.ok_or_else(|| "expected a whole number from 0 to 1000, such as 6".to_owned())
}

fn sample_count(text: &str) -> Result<usize, String> {
    let count = text.trim().parse().ok().filter(|n| (2..=1000).contains(n));
    count.ok_or_else(|| "expected a whole number from 2 to 1000, such as 20".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_a_range() {
        assert_eq!((case_count("0"), sample_count(" 2")), (Ok(0), Ok(2)));
        assert!(case_count("1001").is_err() && sample_count("1").is_err() && sample_count("x").is_err());
    }
}
