//! The figures of an experiment whose rows differ in one number, such as the rank: scores against it, with their spread over seeds.

use ssn_eval::figures::{AblationAxes, AblationPoint, ablation_figure, png_from_svg};

use super::finished::Finished;
use crate::error::{Error, ErrorKind, Result};

/// Pixels of the PNG per pixel of the SVG.
const PNG_SCALE: f32 = 2.0;

/// The scores that are drawn: the end of the file's name, the beginning of the figure's key, and the axis.
const SCORES: [(&str, &str, &str); 2] =
    [("ged", "ged2_", "GED² (lower is better)"), ("dice", "dsc ", "Dice (higher is better)")];

/// The names and bytes of the files; none where rows are no series of numbers.
pub fn figures(title: &str, rows: &[Finished<'_>]) -> Result<Vec<(String, Vec<u8>)>> {
    let named: Option<Vec<(&str, f64)>> = rows.iter().map(|row| setting(&row.row.name)).collect();
    let Some(named) = named.filter(|named| named.len() > 1 && named.iter().all(|one| one.0 == named[0].0))
    else {
        return Ok(vec![]);
    };
    let mut files = vec![];
    for (name, key, y) in SCORES {
        let point = |(row, (_, x)): (&Finished<'_>, &(&str, f64))| AblationPoint {
            network: row.row.group.clone().unwrap_or_default(),
            x: *x,
            values: row.seeds.iter().filter_map(|&seed| mean(row, seed, key)).collect(),
        };
        let points: Vec<AblationPoint> = rows.iter().zip(&named).map(point).collect();
        if points.iter().all(|point| point.values.is_empty()) {
            continue;
        }
        let svg = ablation_figure(AblationAxes { title, x: named[0].0, y }, &points);
        let png = png_from_svg(&svg, PNG_SCALE).map_err(|error| Error::new(ErrorKind::Internal, error))?;
        files.extend([(format!("{name}.png"), png), (format!("{name}.svg"), svg.into_bytes())]);
    }
    Ok(files)
}

/// The words of a name and the number at its end: `rank` and 10 of `rank 10`.
fn setting(name: &str) -> Option<(&str, f64)> {
    let (words, number) = name.rsplit_once(' ')?;
    Some((words, number.parse().ok().filter(|number: &f64| number.is_finite())?))
}

/// The mean of a figure over the folds of a seed; of GED², that of most samples, the last of its kind.
fn mean(row: &Finished<'_>, seed: u64, key: &str) -> Option<f64> {
    let runs = row.runs.iter().filter(|run| run.job.seed == seed);
    let figure = |evaluation: &ssn_eval::Evaluation| {
        evaluation.figures.iter().rfind(|figure| figure.key.starts_with(key))?.mean
    };
    let means: Vec<f64> = runs.filter_map(|run| figure(&run.evaluated.evaluation)).collect();
    (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::setting;

    #[test]
    fn names_end_with_the_number_of_a_series() {
        assert_eq!(setting("rank 10"), Some(("rank", 10.0)));
        assert_eq!(setting("likelihood exponent 0.5"), Some(("likelihood exponent", 0.5)));
        assert_eq!(setting("rank ten"), None);
        assert_eq!(setting("diagonal"), None);
    }
}
