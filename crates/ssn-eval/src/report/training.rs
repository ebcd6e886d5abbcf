//! How runs learned: their `metrics.csv`, with the phases of the loss and the best checkpoint.

use std::path::Path;

use serde::Deserialize;
use ssn_io::{Limits, read_bytes};

use super::output::Drawn;
use crate::error::{EvalError, Result};
use crate::figures::{Axes, Curve, CurvePanel, StepMark, curve_panels, curves_figure, png_from_svg};
use crate::metrics_file::{METRICS_FILE, MetricsTable};

/// The frozen config in the folder of a run.
pub(super) const CONFIG_FILE: &str = "config.toml";

/// A run.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) name: String,
    metrics: MetricsTable,
    config: FrozenConfig,
}

/// What the figures need of the frozen config of a run. What is missing or cannot be read is not marked.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FrozenConfig {
    loss: LossSteps,
    model: ModelHead,
    training: TrainingSteps,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LossSteps {
    kind: String,
    pretrain_steps: u64,
    likelihood_steps: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ModelHead {
    head: Option<toml::Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TrainingSteps {
    steps: u64,
}

impl FrozenConfig {
    fn read(folder: &Path) -> Self {
        let bytes = read_bytes(&folder.join(CONFIG_FILE), &Limits::default()).ok();
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        text.and_then(|text| toml::from_str(&text).ok()).unwrap_or_default()
    }

    /// The steps at which a phase of the loss ends. Only distributions over logits go through phases.
    fn phases(&self) -> Vec<(u64, &'static str)> {
        let head = self.model.head.as_ref();
        if head.and_then(|head| head.get("stochastic")).is_none() {
            return vec![];
        }
        let LossSteps { kind, pretrain_steps, likelihood_steps } = &self.loss;
        let mut phases = vec![];
        if *pretrain_steps > 0 {
            phases.push((*pretrain_steps, "pre-training ends"));
        }
        if *likelihood_steps > 0 && kind == "energy" {
            phases.push((pretrain_steps.saturating_add(*likelihood_steps), "likelihood ends"));
        }
        phases
    }
}

impl Run {
    pub(super) fn read(folder: &Path, name: String) -> Result<Self> {
        let path = folder.join(METRICS_FILE);
        let bytes = read_bytes(&path, &Limits::default())?;
        let metrics = MetricsTable::parse(&String::from_utf8_lossy(&bytes))
            .map_err(|error| EvalError::mismatch(format!("{} {error}", path.display())))?;
        Ok(Self { name, metrics, config: FrozenConfig::read(folder) })
    }

    /// A sentence about damaged lines; nothing if there are none.
    pub(super) fn damage(&self) -> Option<String> {
        self.metrics.damage()
    }

    pub(super) fn steps(&self) -> Option<f64> {
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
        let pretrained = self.config.loss.pretrain_steps as f64;
        let whole = self.points(VALIDATION_GED).into_iter().filter(|(step, _)| *step > pretrained);
        whole
            .filter(|(_, ged)| ged.is_finite())
            .reduce(|best, next| if next.1 < best.1 { next } else { best })
    }

    fn marks(&self) -> Vec<StepMark> {
        let phases = self.config.phases().into_iter().map(|(step, label)| StepMark {
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

const VALIDATION_GED: &str = "validation_ged";
const VALIDATION_DIVERSITY: &str = "validation_diversity";
const RATER_DIVERSITY: &str = "validation_rater_diversity";

/// A quantity of `metrics.csv`.
struct Quantity {
    /// The name of its figure's file.
    file: &'static str,
    column: &'static str,
    title: &'static str,
    /// Its vertical axis.
    y: &'static str,
    /// Whether its axis is logarithmic where all values are positive.
    logarithmic: bool,
    /// The sentence below the figure.
    caption: &'static str,
    /// Whether `progress.png` shows it.
    in_picture: bool,
}

const QUANTITIES: [Quantity; 7] = [
    Quantity {
        file: "loss",
        column: "loss",
        title: "Loss",
        y: "loss (lower is better)",
        logarithmic: true,
        caption: "The loss of training, the mean over the steps since the row before. Phases of the loss have scales of their own.",
        in_picture: true,
    },
    Quantity {
        file: "validation-ged",
        column: VALIDATION_GED,
        title: "GED² on validation",
        y: "GED² (lower is better)",
        logarithmic: false,
        caption: "How far samples are from raters as distributions, the mean over the validation cases; the checkpoint with the \
                  smallest value is the best.",
        in_picture: true,
    },
    Quantity {
        file: "validation-diversity",
        column: VALIDATION_DIVERSITY,
        title: "Diversity on validation",
        y: "diversity (that of raters is best)",
        logarithmic: false,
        caption: "The mean distance of two samples. It should come to that of two raters, the curve `raters`.",
        in_picture: true,
    },
    Quantity {
        file: "validation-dice",
        column: "validation_dice",
        title: "Dice on validation",
        y: "Dice (higher is better)",
        logarithmic: false,
        caption: "How well the mean prediction overlaps with raters, over all foreground classes.",
        in_picture: true,
    },
    Quantity {
        file: "gradient-norm",
        column: "gradient_norm",
        title: "Gradient norm",
        y: "norm before clipping",
        logarithmic: true,
        caption: "The norm of the gradient of all parameters before it is clipped, the mean over the steps since the row before. \
                  Peaks are steps that changed much; a rise without end is a learning rate that is too large.",
        in_picture: true,
    },
    Quantity {
        file: "ess",
        column: "ess",
        title: "Effective sample size",
        y: "samples (higher is better)",
        logarithmic: false,
        caption: "How many of the Monte-Carlo samples carry the likelihood of a rater. Near 1, a single sample does, and the gradient is \
                  that of the best sample alone. Phases without a likelihood have none.",
        in_picture: true,
    },
    Quantity {
        file: "learning-rate",
        column: "learning_rate",
        title: "Learning rate",
        y: "rate",
        logarithmic: true,
        caption: "The learning rate, by which every step is scaled.",
        in_picture: false,
    },
];

impl Quantity {
    /// The curves of runs that have values.
    fn curves(&self, runs: &[Run]) -> Vec<Curve> {
        let curve = |run: &Run| Curve { name: run.name.clone(), points: run.points(self.column) };
        let mut curves: Vec<Curve> = runs.iter().map(curve).collect();
        if self.column == VALIDATION_DIVERSITY {
            let raters = runs.iter().map(|run| run.points(RATER_DIVERSITY));
            // Raters of one dataset are the same for all runs: the longest curve shows them.
            let points = raters.max_by_key(Vec::len).unwrap_or_default();
            curves.push(Curve { name: "raters".to_owned(), points });
        }
        curves.retain(|curve| !curve.points.is_empty());
        curves
    }

    fn axes(&self, curves: &[Curve], runs: &[Run]) -> Axes<'static> {
        let positive = curves.iter().flat_map(|curve| &curve.points).all(|(_, y)| *y > 0.0);
        let x_end = runs.iter().filter_map(Run::steps).fold(0.0, f64::max);
        Axes { title: self.title, x: "step", x_end, y: self.y, logarithmic: self.logarithmic && positive }
    }
}

/// The marks of all runs. Those that several have in common are marked once; others have the color of their run.
fn common_marks(runs: &[Run]) -> Vec<StepMark> {
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
pub(super) fn figures(runs: &[Run]) -> Vec<Drawn> {
    let marks = common_marks(runs);
    let marked = match runs {
        [run] => run
            .best()
            .map(|(step, ged)| format!(" The best checkpoint is that of step {step}, GED² {ged:.3}.")),
        _ => None,
    };
    let mut drawn = vec![];
    for quantity in &QUANTITIES {
        let curves = quantity.curves(runs);
        if curves.is_empty() {
            continue;
        }
        let svg = curves_figure(quantity.axes(&curves, runs), &curves, &marks);
        let marked = marked.as_deref().filter(|_| quantity.column == VALIDATION_GED).unwrap_or_default();
        let caption = format!("{}{marked}", quantity.caption);
        drawn.push(Drawn { name: format!("training-{}", quantity.file), svg, caption });
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
    let run = Run::read(run_folder, "samples".to_owned())?;
    let mut title = format!("{}: step {}", name.as_deref().unwrap_or("run"), run.steps().unwrap_or(0.0));
    if run.config.training.steps > 0 {
        title += &format!(" of {}", run.config.training.steps);
    }
    if let Some((step, ged)) = run.best() {
        title += &format!("; best GED² {ged:.3} at step {step}");
    }
    if let Some(damage) = run.damage() {
        title += &format!("; {damage}");
    }
    let (marks, runs) = (run.marks(), [run]);
    let panel = |quantity: &Quantity| {
        let curves = quantity.curves(&runs);
        CurvePanel { axes: quantity.axes(&curves, &runs), curves }
    };
    let shown = QUANTITIES.iter().filter(|quantity| quantity.in_picture);
    let svg = curve_panels(&title, &shown.map(panel).collect::<Vec<_>>(), &marks);
    png_from_svg(&svg, PICTURE_SCALE).map_err(|error| EvalError::internal(format!("{METRICS_FILE}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, metrics: &[u8], config: &str) {
        std::fs::write(folder.join(METRICS_FILE), metrics).unwrap();
        std::fs::write(folder.join(CONFIG_FILE), config).unwrap();
    }

    fn run(metrics: &str, config: &str) -> Run {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), metrics.as_bytes(), config);
        Run::read(folder.path(), "a".to_owned()).unwrap()
    }

    #[test]
    fn half_a_row_and_empty_cells_are_no_points() {
        let header = "step,loss,learning_rate,validation_diversity,validation_rater_diversity";
        let run = run(&format!("{header}\n1,2.5,0.1,,\n1,,,0.25,0.5\n2,1.5,0.1,,\n3,1."), "");
        assert_eq!(run.points("loss"), [(1.0, 2.5), (2.0, 1.5)]);
        assert_eq!(run.steps(), Some(2.0));
        let drawn = figures(&[run]);
        let names: Vec<&str> = drawn.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["training-loss", "training-validation-diversity", "training-learning-rate"]);
        assert!(drawn[1].svg.contains(">raters</text>"));
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), b"a,b\n", "");
        assert!(Run::read(folder.path(), "a".to_owned()).unwrap_err().to_string().contains("`step`"));
    }

    const ENERGY: &str = "[model.head.stochastic]\nrank = 10\n\n[loss]\nkind = \"energy\"\npretrain_steps = 100\n\
                          likelihood_steps = 150\n";

    #[test]
    fn the_best_checkpoint_is_the_first_smallest_after_pre_training() {
        let metrics = "step,validation_ged\n100,0.1\n200,0.5\n300,0.3\n400,0.3\n500,0.4\n";
        let steps =
            |run: &Run| run.marks().iter().map(|mark| (mark.step, mark.label.clone())).collect::<Vec<_>>();
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

    #[test]
    fn a_long_run_is_drawn_with_few_points() {
        let header = "step,loss,validation_ged";
        let rows: String = (1..=5000).map(|i| format!("{},{},\n", 10 * i, 1.0 / f64::from(i))).collect();
        let run = run(&format!("{header}\n{rows}50000,,0.25\n"), ENERGY);
        let svg = &figures(&[run])[0].svg;
        assert!(svg.len() < 40_000, "{}", svg.len());
        assert!((100..200).contains(&svg.matches("<title>a, step").count()));
    }
}
