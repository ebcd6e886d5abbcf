//! How runs learned: their `metrics.csv`, with the phases of the loss and the best checkpoint.

use std::path::Path;

use ssn_io::{Error, Limits, Result, read_bytes};

use crate::curves::{Curve, Quantity, StepMark, curve_panels, curves_figure};
use crate::figures::png_from_svg;
use crate::output::Drawn;
use ssn_eval::metrics_file::{
    ColumnFigure, LEARNING_RATE, METRICS_FILE, MetricsTable, RUN_COLUMNS, RunColumn, VALIDATION_DIVERSITY,
    VALIDATION_GED, VALIDATION_RATER_DIVERSITY,
};

/// The frozen config in the folder of a run.
pub(crate) const CONFIG_FILE: &str = "config.toml";

/// A run.
#[derive(Debug)]
pub(crate) struct RunCurves {
    pub(crate) name: String,
    metrics: MetricsTable,
    /// The frozen config; empty where it cannot be read. What is missing in it is not marked.
    config: toml::Table,
}

impl RunCurves {
    pub(crate) fn read(folder: &Path, name: String) -> Result<Self> {
        let path = folder.join(METRICS_FILE);
        let bytes = read_bytes(&path, &Limits::default())?;
        let metrics = MetricsTable::parse(&String::from_utf8_lossy(&bytes))
            .map_err(|error| Error::mismatch(format!("{} {error}", path.display())))?;
        let config = read_bytes(&folder.join(CONFIG_FILE), &Limits::default()).ok();
        let config = config.and_then(|bytes| toml::from_str(&String::from_utf8(bytes).ok()?).ok());
        Ok(Self { name, metrics, config: config.unwrap_or_default() })
    }

    fn setting(&self, section: &str, key: &str) -> Option<&toml::Value> {
        self.config.get(section)?.get(key)
    }

    /// A setting that is a number of steps; 0 where there is none.
    fn step_count(&self, section: &str, key: &str) -> u64 {
        self.setting(section, key).and_then(toml::Value::as_integer).map_or(0, |n| n.max(0) as u64)
    }

    /// The steps at which a phase of the loss ends. Only distributions over logits go through phases.
    fn phases(&self) -> Vec<(u64, &'static str)> {
        if self.setting("model", "head").and_then(|head| head.get("stochastic")).is_none() {
            return vec![];
        }
        let [pretrain, likelihood] =
            ["pretrain_steps", "likelihood_steps"].map(|key| self.step_count("loss", key));
        let mut phases = vec![];
        if pretrain > 0 {
            phases.push((pretrain, "pre-training ends"));
        }
        if likelihood > 0 && self.setting("loss", "kind").and_then(toml::Value::as_str) == Some("energy") {
            phases.push((pretrain.saturating_add(likelihood), "likelihood ends"));
        }
        phases
    }

    pub(crate) fn steps(&self) -> Option<f64> {
        self.metrics.rows.last().and_then(|row| row[0])
    }

    /// The points `(step, value)` of a column.
    fn points(&self, column: &str) -> Vec<(f64, f64)> {
        let Some(place) = self.metrics.columns.iter().position(|name| name == column) else { return vec![] };
        self.metrics.rows.iter().filter_map(|row| Some((row[0]?, row[place]?))).collect()
    }

    /// The step and the GED² of the best checkpoint: the first validation with the smallest value, after the mean alone was
    /// trained.
    fn best(&self) -> Option<(f64, f64)> {
        let pretrained = self.step_count("loss", "pretrain_steps") as f64;
        let whole = self.points(VALIDATION_GED).into_iter().filter(|(step, _)| *step > pretrained);
        whole
            .filter(|(_, ged)| ged.is_finite())
            .reduce(|best, next| if next.1 < best.1 { next } else { best })
    }

    fn marks(&self) -> Vec<StepMark> {
        let phases = self.phases().into_iter().map(|(step, label)| StepMark {
            step: step as f64,
            label: label.to_owned(),
            curve: None,
            dark: false,
        });
        let best = self.best().map(|(step, _)| StepMark {
            step,
            label: "best checkpoint".to_owned(),
            curve: None,
            dark: true,
        });
        phases.chain(best).collect()
    }
}

/// Returns the quantities that have figures, in their order.
fn quantities() -> Vec<Quantity> {
    let mut figures: Vec<_> =
        RUN_COLUMNS.iter().filter_map(|column| Some((column, column.figure.as_ref()?))).collect();
    figures.sort_by_key(|(_, figure)| figure.place);
    let quantity = |(column, figure): (&RunColumn, &ColumnFigure)| {
        let ColumnFigure { title, y, logarithmic, .. } = *figure;
        Quantity { column: column.name, title, y, logarithmic, caption: column.caption }
    };
    figures.into_iter().map(quantity).collect()
}

/// The curves of a quantity of those runs that have values.
fn curves(quantity: &Quantity, runs: &[RunCurves]) -> Vec<Curve> {
    let curve = |run: &RunCurves| Curve { name: run.name.clone(), points: run.points(quantity.column) };
    let mut curves: Vec<Curve> = runs.iter().map(curve).collect();
    if quantity.column == VALIDATION_DIVERSITY {
        let raters = runs.iter().map(|run| run.points(VALIDATION_RATER_DIVERSITY));
        // Raters of one dataset are the same for all runs: the longest curve shows them.
        let points = raters.max_by_key(Vec::len).unwrap_or_default();
        curves.push(Curve { name: "raters".to_owned(), points });
    }
    curves.retain(|curve| !curve.points.is_empty());
    curves
}

/// The last step of all runs.
fn last_step(runs: &[RunCurves]) -> f64 {
    runs.iter().filter_map(RunCurves::steps).fold(0.0, f64::max)
}

/// The marks of all runs. Those that several have in common are marked once; others have the color of their run.
fn common_marks(runs: &[RunCurves]) -> Vec<StepMark> {
    let mut marks: Vec<StepMark> = vec![];
    for run in runs {
        for mark in run.marks() {
            match marks.iter_mut().find(|known| (known.step, &known.label) == (mark.step, &mark.label)) {
                Some(known) => known.curve = None,
                None if runs.len() > 1 => marks.push(StepMark { curve: Some(run.name.clone()), ..mark }),
                None => marks.push(mark),
            }
        }
    }
    marks
}

/// The curves of all runs; figures without a point are left out.
pub(crate) fn figures(runs: &[RunCurves]) -> Vec<Drawn> {
    let marks = common_marks(runs);
    let marked = match runs {
        [run] => run
            .best()
            .map(|(step, ged)| format!(" The best checkpoint is that of step {step}, GED² {ged:.3}.")),
        _ => None,
    };
    let mut drawn = vec![];
    for quantity in &quantities() {
        let curves = curves(quantity, runs);
        if curves.is_empty() {
            continue;
        }
        let svg = curves_figure(quantity, last_step(runs), &curves, &marks);
        let marked = marked.as_deref().filter(|_| quantity.column == VALIDATION_GED).unwrap_or_default();
        let caption = format!("{}{marked}", quantity.caption);
        drawn.push(Drawn { name: format!("training-{}", quantity.column.replace('_', "-")), svg, caption });
    }
    drawn
}

/// Pixels of the picture of a run for each of its drawing.
const PICTURE_SCALE: f32 = 1.5;

/// The important curves of a run in one picture, a PNG file: loss, GED², diversity beside that of raters, Dice, norm of the
/// gradient and effective sample size, with the phases of the loss and the best checkpoint marked. It is made of `metrics.csv`
/// and `config.toml` in the folder, however far the run is.
///
/// # Errors
/// A folder whose `metrics.csv` cannot be read or is not a run's.
pub fn training_picture(run_folder: &Path) -> Result<Vec<u8>> {
    let path = run_folder.canonicalize().ok();
    let name = path.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    // The only curve that stands beside another one is that of the diversity of samples, beside that of raters.
    let run = RunCurves::read(run_folder, "samples".to_owned())?;
    let mut title = format!("{}: step {}", name.as_deref().unwrap_or("run"), run.steps().unwrap_or(0.0));
    match run.step_count("training", "steps") {
        0 => {}
        all => title += &format!(" of {all}"),
    }
    if let Some((step, ged)) = run.best() {
        title += &format!("; best GED² {ged:.3} at step {step}");
    }
    let (marks, runs) = (run.marks(), [run]);
    let quantities = quantities();
    let shown = quantities.iter().filter(|quantity| quantity.column != LEARNING_RATE);
    let panels: Vec<_> = shown.map(|quantity| (quantity, curves(quantity, &runs))).collect();
    let svg = curve_panels(&title, last_step(&runs), &panels, &marks);
    png_from_svg(&svg, PICTURE_SCALE).map_err(|error| Error::internal(format!("{METRICS_FILE}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, metrics: &[u8], config: &str) {
        std::fs::write(folder.join(METRICS_FILE), metrics).unwrap();
        std::fs::write(folder.join(CONFIG_FILE), config).unwrap();
    }

    fn run(metrics: &str, config: &str) -> RunCurves {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), metrics.as_bytes(), config);
        RunCurves::read(folder.path(), "a".to_owned()).unwrap()
    }

    const ENERGY: &str = "[model.head.stochastic]\nrank = 10\n\n[loss]\nkind = \"energy\"\npretrain_steps = 100\n\
                          likelihood_steps = 150\n";

    #[test]
    fn the_best_checkpoint_is_the_first_smallest_after_pre_training() {
        let metrics = "step,validation_ged\n100,0.1\n200,0.5\n300,0.3\n400,0.3\n500,0.4\n";
        let steps = |run: &RunCurves| {
            run.marks().iter().map(|mark| (mark.step, mark.label.clone())).collect::<Vec<_>>()
        };
        let marked = |step: f64, label: &str| (step, label.to_owned());
        let phased = [
            marked(100.0, "pre-training ends"),
            marked(250.0, "likelihood ends"),
            marked(300.0, "best checkpoint"),
        ];
        assert_eq!(steps(&run(metrics, ENERGY)), phased);
        // A likelihood loss has no second phase, and a deterministic head none at all.
        let likelihood = ENERGY.replace("energy", "likelihood");
        assert_eq!(steps(&run(metrics, &likelihood)), [phased[0].clone(), phased[2].clone()]);
        let deterministic =
            ENERGY.replace("[model.head.stochastic]\nrank = 10", "[model]\nhead = \"deterministic\"");
        assert_eq!(steps(&run(metrics, &deterministic)), [phased[2].clone()]);
        // Without a config, the first row is the best.
        assert_eq!(steps(&run(metrics, "no config")), [marked(100.0, "best checkpoint")]);
        let drawn = figures(&[run(metrics, ENERGY), run(metrics, ENERGY)]);
        assert_eq!(drawn.len(), 1);
        assert_eq!(drawn[0].svg.matches(">pre-training ends, 100</text>").count(), 1);
        assert_eq!(drawn[0].svg.matches(">best checkpoint, 300</text>").count(), 1);
    }

    #[test]
    fn any_file_of_metrics_gives_a_picture_or_a_sentence() {
        let header = "step,loss,ess,gradient_norm,learning_rate,validation_ged,validation_diversity,\
                      validation_rater_diversity,validation_dice";
        let hostile = [
            String::new(),
            header.to_owned(),
            format!("{header}\n"),
            format!("{header}\n1,NaN,inf,-inf,0,-0,1e308,-1e308,1e-320\n"),
            format!("{header}\n1e300,1e300,1,1,1,1,1,1,1\n-1e300,-1e300,1,1,1,1,1,1,1\n"),
            format!("{header}\n5,1e20,1,1,1,1,1,1,1\n5,1e20,1,1,1,1,1,1,1\n"),
            format!("{header}\n,,,,,,,,\n1,2\n\"3,1"),
            format!("{header}\n9,1,1,1,1,1,1,1,1\n3,2,2,2,2,2,2,2,2\n"),
            "step,step,loss\n1,2,3\n".to_owned(),
        ];
        let folder = tempfile::tempdir().unwrap();
        for text in hostile {
            write(folder.path(), text.as_bytes(), ENERGY);
            match training_picture(folder.path()) {
                Ok(png) => assert!(png.starts_with(b"\x89PNG"), "{text}"),
                Err(error) => assert!(error.to_string().contains(METRICS_FILE), "{text}: {error}"),
            }
        }
        write(folder.path(), &[0xff, 0, b'\n', 0xfe], "\u{0}");
        assert!(training_picture(folder.path()).is_err());
    }
}
