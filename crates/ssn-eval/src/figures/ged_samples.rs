//! GED² against the number of samples, of several networks.

use ssn_data::text::counted;

use super::plot::{ABOVE, COLUMN, HEIGHT, LEFT, LegendEntry, LineStyle, PlotArea, Scale, with_head};
use super::svg::{Color, Drawing, FAINT, distinct};

/// GED² of so many samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GedMean {
    /// The samples.
    pub samples: usize,
    /// The mean over cases.
    pub mean: f64,
    /// Its standard error; none for a single case.
    pub standard_error: Option<f64>,
}

/// The GED² of one network.
#[derive(Debug, Clone, PartialEq)]
pub struct GedSeries {
    /// The network.
    pub name: String,
    /// By the number of samples, ascending. A single one of one sample is that of a prediction without samples.
    pub means: Vec<GedMean>,
    /// What it comes to with more and more samples.
    pub limit: Option<f64>,
}

const BOTTOM: f64 = 46.0;
/// Right of the axes, for the limits.
const RIGHT: f64 = 58.0;
/// Where the limits stand, from the end of the axes.
const LIMIT: f64 = 30.0;
/// The name of the expectation of a perfect distribution in the legend.
const PERFECT: &str = "perfect, expected";

/// Draws a curve with a band of one standard error for each network, a flat line for one without samples, the limit of each at the
/// right, and `perfect`, `(samples, GED²)`, what a distribution is expected to have whose samples are as raters are.
pub fn ged_samples_figure(title: &str, series: &[GedSeries], perfect: &[(usize, f64)]) -> String {
    let mut legend = LegendEntry::distinct(series.iter().map(|one| one.name.as_str()));
    if !perfect.is_empty() {
        legend.push(LegendEntry { name: PERFECT.to_owned(), color: FAINT, style: LineStyle::Dotted });
    }
    let (mut drawing, head) = with_head(title, &legend, COLUMN, HEIGHT);

    let counts = || series.iter().flat_map(|one| &one.means).map(|mean| mean.samples);
    let ends = |mean: &GedMean| {
        let error = mean.standard_error.unwrap_or(0.0);
        [mean.mean - error, mean.mean + error]
    };
    let heights = series.iter().flat_map(|one| one.means.iter().flat_map(ends).chain(one.limit));
    let heights = heights.chain(perfect.iter().map(|point| point.1)).chain([0.0]);
    let area = PlotArea {
        left: LEFT,
        top: head + ABOVE,
        width: COLUMN - LEFT - RIGHT,
        height: HEIGHT - ABOVE - BOTTOM,
        x: Scale::of(counts().map(|count| count as f64), true).padded(0.02),
        y: Scale::of(heights, false),
    };
    let mut ticks: Vec<usize> = counts().collect();
    ticks.sort_unstable();
    ticks.dedup();
    let tick = |count: &usize| Some((area.across(*count as f64)?, count.to_string()));
    let mut ticks: Vec<(f64, String)> = ticks.iter().filter_map(tick).collect();
    let limit_x = area.right() + LIMIT;
    if series.iter().any(|one| one.limit.is_some()) {
        ticks.push((limit_x, "limit".to_owned()));
    }
    let x = "samples of each case (logarithmic)";
    area.axes_with(&mut drawing, x, "GED² (lower is better)", &ticks);

    let points: Vec<(f64, f64)> = perfect.iter().map(|&(count, ged)| (count as f64, ged)).collect();
    let pixels: Vec<(f64, f64)> = points.iter().filter_map(|&point| area.pixel(point)).collect();
    drawing.dotted(&pixels, FAINT);
    for (place, one) in series.iter().enumerate() {
        draw_series(&mut drawing, &area, one, distinct(place), limit_x);
    }
    let networks: Vec<&str> = series.iter().map(|one| one.name.as_str()).collect();
    drawing.finish(title, &format!("GED² against the number of samples, of {}.", networks.join(", ")))
}

fn draw_series(drawing: &mut Drawing, area: &PlotArea, series: &GedSeries, color: Color, limit_x: f64) {
    let point = |mean: &GedMean| (mean.samples as f64, mean.mean);
    let told = |mean: &GedMean| {
        let error = mean.standard_error.map_or(String::new(), |error| format!(" ± {error:.4}"));
        format!("{}, {}: {:.4}{error}", series.name, counted(mean.samples, "sample"), mean.mean)
    };
    if let [only] = series.means.as_slice()
        && only.samples == 1
        && let Some(y) = area.up(only.mean)
    {
        // A prediction without samples is the same however many others have.
        drawing.stroke((area.left, y), (area.right(), y), 1.4, color);
        let x = area.across(1.0).unwrap_or(area.left);
        drawing.told_dot((x, y), 3.0, color, &told(only));
        return;
    }
    let band: Vec<(f64, f64, f64)> = series
        .means
        .iter()
        .filter_map(|mean| mean.standard_error.map(|error| (mean, error)))
        .map(|(mean, error)| (mean.samples as f64, mean.mean - error, mean.mean + error))
        .collect();
    if band.len() > 1 {
        area.band(drawing, &band, color);
    }
    let points: Vec<(f64, f64)> = series.means.iter().map(point).collect();
    area.curve(drawing, &points, color);
    for mean in &series.means {
        if let Some(pixel) = area.pixel(point(mean)) {
            drawing.told_dot(pixel, 3.0, color, &told(mean));
        }
    }
    let last = series.means.last().and_then(|mean| area.pixel(point(mean)));
    if let Some((limit, last)) = series.limit.zip(last)
        && let Some(y) = area.up(limit)
    {
        drawing.dotted(&[last, (limit_x, y)], color);
        let tooltip = format!("{}, limit of infinitely many samples: {limit:.4}", series.name);
        drawing.told_dot((limit_x, y), 4.0, color, &tooltip);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::png_from_svg;

    fn mean(samples: usize, mean: f64) -> GedMean {
        GedMean { samples, mean, standard_error: Some(0.02) }
    }

    #[test]
    fn every_network_has_its_curve_its_band_and_its_limit() {
        let means = vec![mean(1, 0.6), mean(10, 0.3), mean(100, 0.25)];
        let series = [
            GedSeries { name: "low-rank".to_owned(), means, limit: Some(0.24) },
            GedSeries { name: "deterministic".to_owned(), means: vec![mean(1, 0.5)], limit: None },
        ];
        let svg = ged_samples_figure("GED²", &series, &[(1, 0.4), (100, 0.1)]);
        assert_eq!((svg.matches("<polygon").count(), svg.matches("<polyline").count()), (1, 1 + 1 + 1 + 1));
        assert_eq!(svg.matches("<circle").count(), 3 + 1 + 1);
        assert!(svg.contains(">limit<") && svg.contains(">100<") && svg.contains(&format!(">{PERFECT}<")));
        assert!(svg.contains("<title>low-rank, 10 samples: 0.3000 ± 0.0200</title>"));
        insta::assert_snapshot!(svg);
        png_from_svg(&svg, 1.0).unwrap();
        let svg = ged_samples_figure("GED²", &[], &[]);
        assert!(!svg.contains("NaN") && !svg.contains(">limit<"));
    }
}
