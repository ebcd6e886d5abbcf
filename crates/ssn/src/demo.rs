//! The demo: the whole way from images to samples and scores, with nothing but the program.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};
use ssn_args::{DemoConfig, EvaluateConfig, PredictConfig, TrainConfig};
use ssn_core::Steering;
use ssn_data::{Case, DataConfig, SyntheticConfig};
use ssn_eval::registry::{DSC, DSC_NOD, GED2, HM_IOU, RATER_DIVERSITY, SAMPLE_DIVERSITY, definition};
use ssn_eval::{DistributionFile, Evaluated, Evaluation, Predictions, SampleSource, evaluate};
use ssn_report::figures::{Picture, PictureTile, Sheet, SheetRow, png_from_svg};
use ssn_report::{ReportConfig, report};

use crate::error::{Error, Result};
use crate::predict::predict;
use crate::text;
use crate::text::command_line;
use crate::train::{self, train};
use crate::work_folder::{data_section, is_begun, stopped, write_file, write_images};
use ssn_core::Control;

/// The config of the demo, which marks its folder.
const CONFIG: &str = "demo.toml";

/// Half the steps of the preset: enough to tell the networks apart.
const SCHEDULE: &str = "\n[training]\nsteps = 250\n";

/// The networks that are compared: name, and how their head differs from the preset.
const MODELS: [(&str, Option<&str>); 3] = [
    ("deterministic", Some("model.head=deterministic")),
    ("diagonal", Some("model.head={stochastic={rank=0}}")),
    ("low-rank", None),
];

/// What the demo made.
#[derive(Debug)]
pub struct Demo {
    /// The scores as Markdown.
    pub table: String,
    /// The scores as JSON.
    pub json: String,
    /// The report on the three networks.
    pub comparison: PathBuf,
    /// The report on the low-rank network.
    pub detail: PathBuf,
    /// The predictions of the low-rank network.
    pub predictions: PathBuf,
    /// How long it took.
    pub seconds: f64,
}

/// Makes a synthetic dataset, and trains, predicts and scores three networks. A demo that was stopped goes on.
pub fn demo(config: &DemoConfig, control: Control<'_>) -> Result<Demo> {
    let start = Instant::now();
    let file = prepare(config, control)?;
    let mut evaluated = vec![];
    for (name, head) in MODELS {
        evaluated.push((name, compare(config, control, &file, name, head)?));
    }
    let table = scores_table(&evaluated);
    let svg = samples_figure(config, &evaluated)?;
    let png = png(&svg)?;
    let json = scores_json(config, &evaluated, start.elapsed().as_secs_f64());
    for (name, bytes) in [
        ("scores.md", table.as_bytes()),
        ("samples.svg", svg.as_bytes()),
        ("samples.png", &png),
        ("demo.json", json.as_bytes()),
    ] {
        write_file(&config.out.join(name), bytes)?;
    }
    let comparison = show(config, control, &["low-rank", "diagonal", "deterministic"], "report")?;
    let detail = show(config, control, &["low-rank"], "report-low-rank")?;
    let predictions = config.out.join("predictions").join("low-rank");
    Ok(Demo { table, json, comparison, detail, predictions, seconds: start.elapsed().as_secs_f64() })
}

/// Shows some of the networks, with their training, on a page in a folder of the demo's.
fn show(config: &DemoConfig, control: Control<'_>, models: &[&str], folder: &str) -> Result<PathBuf> {
    let folders =
        |kind: &str| models.iter().map(|model| config.out.join(kind).join(model)).collect::<Vec<_>>();
    let paths = [folders("predictions"), folders("runs")].concat();
    let out = config.out.join(folder);
    let text = |path: &PathBuf| path.display().to_string();
    let words: Vec<String> = std::iter::once("report".to_owned())
        .chain(paths.iter().map(text))
        .chain(["--out".to_owned(), text(&out), "--overwrite".to_owned()])
        .collect();
    control.message(&command_line(&words));
    let report_config = ReportConfig { out: Some(out), overwrite: true, ..ReportConfig::new(paths) };
    Ok(report(&report_config, control)?.report)
}

/// Writes the dataset and the config; both stay as they are in a demo that goes on.
fn prepare(config: &DemoConfig, control: Control<'_>) -> Result<PathBuf> {
    let path = config.out.join(CONFIG);
    let set = SyntheticConfig { cases: config.cases, seed: config.seed, ..SyntheticConfig::default() };
    let settings: String = config.settings.iter().map(|setting| format!(" --set {setting}")).collect();
    let text = format!(
        "# The config of `ssn demo --seed {} --cases {}{settings}`.\npreset = \"small\"\n\n{}{SCHEDULE}",
        config.seed,
        config.cases,
        data_section(&set)
    );
    if !is_begun(&config.out, CONFIG, &text, "a demo with other settings is in it")? {
        write_images(set, &config.out, control)?;
        write_file(&path, text.as_bytes())?;
    }
    Ok(path)
}

/// Trains, predicts and scores one network.
fn compare(
    config: &DemoConfig,
    control: Control<'_>,
    file: &Path,
    name: &str,
    head: Option<&str>,
) -> Result<Evaluated> {
    let run = config.out.join("runs").join(name);
    let predictions = config.out.join("predictions").join(name);
    let mut train_config = match run.join(ssn_train::run::CONFIG).exists() {
        true => TrainConfig::resume(&run),
        false => {
            let settings =
                head.map(str::to_owned).into_iter().chain(config.settings.iter().cloned()).collect();
            TrainConfig { seed: Some(config.seed), settings, ..TrainConfig::from_file(file, &run) }
        }
    };
    (train_config.device, train_config.workers) = (config.device, Some(1));
    control.message(&train::command(&train_config));
    train(&train_config, control)?.outcome().map_err(stopped)?;
    let [run_text, predictions_text] = [&run, &predictions].map(|path| path.display().to_string());
    let device = config.device.to_string();
    let words = ["predict", &run_text, "--out", &predictions_text, "--device", &device].map(str::to_owned);
    control.message(&command_line(&words));
    predict(&PredictConfig { device: config.device, ..PredictConfig::new(&run, &predictions) }, control)?;
    control.message(&command_line(&["evaluate".to_owned(), predictions_text]));
    evaluate(&EvaluateConfig::new(&predictions), control)
}

/// The scores of the table.
const COLUMNS: [&str; 5] = [GED2, SAMPLE_DIVERSITY, DSC, DSC_NOD, HM_IOU];

fn cell(evaluation: &Evaluation, key: &str) -> String {
    let figure = evaluation.last(key);
    let (mean, error) = figure.map_or((None, None), |figure| (figure.mean, figure.standard_error));
    let (factor, decimals) = definition(key).quantity.in_tables();
    text::mean(mean, error, factor, decimals)
}

/// The table, as Markdown.
fn scores_table(evaluated: &[(&str, Evaluated)]) -> String {
    let mut rows = vec![
        std::iter::once("network")
            .chain(COLUMNS.map(|key| definition(key).heading))
            .map(str::to_owned)
            .collect(),
    ];
    for (name, Evaluated { evaluation, .. }) in evaluated {
        let cells = COLUMNS.map(|key| cell(evaluation, key));
        rows.push(std::iter::once((*name).to_owned()).chain(cells).collect::<Vec<_>>());
    }
    if let Some((_, Evaluated { evaluation, .. })) = evaluated.last() {
        let raters = cell(evaluation, RATER_DIVERSITY);
        rows.push(vec!["raters".into(), String::new(), raters]);
    }
    let mut text = text::table(&rows, 1);
    let cases = evaluated.first().map_or(0, |(_, evaluated)| evaluated.evaluation.cases);
    let samples = evaluated.last().map_or(0, |(_, e)| e.cases.first().map_or(0, |case| case.scores.samples));
    let _ = writeln!(
        text,
        "\n{cases} test images; {samples} samples of each distribution, the prediction alone of the deterministic \
         network; mean ± standard error."
    );
    text
}

/// The same for programs.
fn scores_json(config: &DemoConfig, evaluated: &[(&str, Evaluated)], seconds: f64) -> String {
    let models: serde_json::Map<String, Value> = evaluated
        .iter()
        .map(|(name, Evaluated { evaluation, .. })| {
            let figures: serde_json::Map<String, Value> = evaluation
                .figures
                .iter()
                .map(|figure| {
                    let value = json!({ "mean": figure.mean, "standard_error": figure.standard_error });
                    (figure.key.clone(), value)
                })
                .collect();
            ((*name).to_owned(), Value::Object(figures))
        })
        .collect();
    format!(
        "{:#}\n",
        json!({ "seed": config.seed, "cases": config.cases, "seconds": seconds, "networks": models })
    )
}

/// Images that are shown: those on which raters disagree most.
const SHOWN: usize = 4;
/// Samples of each network.
const SAMPLES: u64 = 6;
/// Pixels of the pictures per pixel of an image.
const ZOOM: usize = 4;
/// Pixels of the PNG per pixel of the SVG.
const PNG_SCALE: f32 = 1.5;

/// The figure as SVG.
fn samples_figure(config: &DemoConfig, evaluated: &[(&str, Evaluated)]) -> Result<String> {
    let data = DataConfig::read(&config.out.join("demo.toml"))?;
    let dataset = data.open()?;
    let mut rows = vec![];
    for id in most_disputed(evaluated) {
        let place = dataset.entries.iter().position(|entry| entry.id == id);
        let place = place.ok_or_else(|| Error::internal(format!("the case {id} is gone")))?;
        let case = dataset.load_raw(place)?;
        rows.push(SheetRow { title: id.clone(), ..raters(&case) });
        for (name, _) in evaluated {
            let folder = Predictions::open(&config.out.join("predictions").join(name))?;
            let file = folder.read(&id)?;
            rows.push(network(name, &case, &file)?);
        }
    }
    let sheet = Sheet {
        title: "What four raters marked, and what each network draws".to_owned(),
        description:
            "For each image: the image, the raters' contours, and for each network its prediction and samples."
                .to_owned(),
        rows,
        ..Sheet::default()
    };
    Ok(sheet.svg())
}

/// The figure as PNG.
fn png(svg: &str) -> Result<Vec<u8>> {
    png_from_svg(svg, PNG_SCALE).map_err(Error::internal)
}

/// The cases on which raters differ most, by the distance of their label maps.
fn most_disputed(evaluated: &[(&str, Evaluated)]) -> Vec<String> {
    let Some((_, first)) = evaluated.first() else { return vec![] };
    let mut cases: Vec<_> = first.cases.iter().collect();
    let disagreement = |case: &ssn_eval::Scored| case.scores.value(RATER_DIVERSITY).unwrap_or_default();
    cases.sort_by(|a, b| disagreement(b).total_cmp(&disagreement(a)));
    cases.iter().take(SHOWN).map(|case| case.id.clone()).collect()
}

fn picture(case: &Case) -> Picture {
    let (low, high) =
        case.image.iter().fold((f32::MAX, f32::MIN), |(low, high), &x| (low.min(x), high.max(x)));
    Picture::gray(&case.image, case.shape[2], [low, high], ZOOM)
}

fn tile(case: &Case, labels: &[u8], caption: String) -> PictureTile {
    PictureTile { picture: picture(case).with_labels(labels, case.shape[2]), caption }
}

fn raters(case: &Case) -> SheetRow {
    let mut tiles = vec![PictureTile { picture: picture(case), caption: "image".to_owned() }];
    let each = case.raters.iter().enumerate();
    tiles.extend(each.map(|(number, labels)| tile(case, labels, format!("rater {number}"))));
    SheetRow::labeled("raters", tiles)
}

fn network(name: &str, case: &Case, file: &DistributionFile) -> Result<SheetRow> {
    let on_image = |map| file.labels_on_image(&map);
    let mean = on_image(file.prediction()?)?;
    let mut tiles = vec![tile(case, &mean, "prediction".to_owned())];
    let draw = SampleSource::new(file, 0, &Steering::default())?;
    let samples = draw.labels(0..SAMPLES)?;
    for (number, map) in samples.into_iter().enumerate() {
        tiles.push(tile(case, &on_image(map)?, format!("sample {number}")));
    }
    Ok(SheetRow::labeled(name, tiles))
}
