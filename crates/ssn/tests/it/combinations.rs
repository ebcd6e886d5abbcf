//! Random combinations of settings: each is refused by a check before anything is trained, or works in every function.
//!
//! `SSN_COMBINATIONS=300 SSN_FIRST=1000` tries 300 from number 1000 on; `SSN_COMBINATION=1017` repeats one and prints its
//! settings: `SSN_COMBINATION=1017 cargo nextest run --profile ci -p ssn random_combinations --no-capture`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use fastrand::Rng;
use ssn::DeviceChoice;
use ssn::training::run::{RunPreset, StopReason};

use crate::lab::{Lab, SHORT, results, through_all_functions, train_on};

/// Combinations of an ordinary test run.
const COUNT: u64 = 20;

/// A TorchScript network with batch norm, for pictures of one channel and even sizes.
const TORCHSCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../ssn-nn/tests/golden/backbone.pt");

/// A setting with its values. Every name of a closed set is in one of them; see `every_name_is_tried`.
const CHOICES: &[(&str, &[&str])] = &[
    (
        "data.normalization",
        &[
            "{kind=\"none\"}",
            "{kind=\"scale\",subtract=0.5,divide=2.0}",
            "{kind=\"z-score\"}",
            "{kind=\"z-score\",in_mask=true}",
            "{kind=\"brats\"}",
            "{kind=\"percentile\",low=1.0,high=99.0}",
            "{kind=\"ct-window\",center=0.5,width=1.0}",
        ],
    ),
    ("data.spacing", &["[1.0,1.0,1.0]", "[1.3,1.3,1.3]"]),
    ("data.crop_to_mask", &["true"]),
    ("data.missing_rater", &["\"absent\"", "\"empty\""]),
    ("batches.batch_size", &["1", "2", "3"]),
    (
        "batches.order",
        &["{kind=\"shuffled\"}", "{kind=\"sequential\"}", "{kind=\"epochs\",images=3,patches=2}"],
    ),
    ("batches.patch.rater", &["{kind=\"random\"}", "{kind=\"fixed\",rater=1}", "{kind=\"all\"}"]),
    ("augmentation.preset", &["\"none\"", "\"lidc\"", "\"lidc-as-coded\"", "\"brats\""]),
    ("augmentation.labels", &["\"nearest\"", "\"linear\""]),
    (
        "augmentation.steps",
        &[
            "[{kind=\"flip\",axis=\"d\",probability=0.5},{kind=\"flip\",axis=\"h\",probability=0.5}]",
            "[{kind=\"flip\",axis=\"w\",probability=0.5},{kind=\"rot90\",probability=0.5}]",
            "[{kind=\"rotate\",degrees=10.0,probability=0.5},{kind=\"scale\",low=0.9,high=1.1,probability=0.5}]",
            "[{kind=\"crop-and-resize\",smallest=10,largest=14,probability=0.5}]",
            "[{kind=\"rotate-then-crop\",degrees=5.0,smallest=10,largest=14,probability=0.5}]",
            "[{kind=\"elastic\",cell=8.0,amplitude=2.0,probability=0.5}]",
            "[{kind=\"scale-and-shift\",deviation=0.1,low=0.0,high=0.1,probability=0.5}]",
            "[{kind=\"noise\",low=0.0,high=0.1,probability=0.5},{kind=\"gamma\",low=0.8,high=1.2,probability=0.5}]",
        ],
    ),
    (
        "model.head",
        &[
            "{stochastic={rank=0}}",
            "{stochastic={rank=1}}",
            "{stochastic={rank=3,initial_scale=0.1}}",
            "{stochastic={rank=2,log_diagonal_limit=5.0}}",
            "\"stochastic\"",
            "\"deterministic\"",
            "\"identity\"",
            "\"prob-unet\"",
            "{phiseg={latent_levels=2}}",
            "\"phiseg\"",
        ],
    ),
    ("loss.kind", &["\"likelihood\"", "\"energy\""]),
    ("loss.samples", &["1", "2", "5"]),
    ("loss.pairing", &["\"independent\"", "\"antithetic\""]),
    ("loss.similarity", &["\"tanimoto\"", "\"dice\""]),
    ("loss.dice", &["0.5"]),
    ("loss.diversity_weight", &["0.5"]),
    ("loss.likelihood_exponent", &["0.01"]),
    ("loss.likelihood_steps", &["0", "1"]),
    ("loss.likelihood_weight", &["0.001"]),
    ("loss.max_gradient_norm", &["1.0", "1000.0"]),
    ("loss.pretrain_steps", &["0", "1"]),
    (
        "optimizer.method",
        &[
            "{adam={}}",
            "{adamw={}}",
            "{sgd={momentum=0.9,nesterov=true}}",
            "{sgd={}}",
            "{rmsprop={centered=true}}",
            "{rmsprop={}}",
        ],
    ),
    ("optimizer.learning_rate", &["1e-4", "1e-3"]),
    ("optimizer.decay", &["\"constant\"", "{multi_step={milestones=[3]}}", "{polynomial={}}", "{cosine={}}"]),
    ("optimizer.warmup.steps", &["0", "2"]),
    ("training.ema", &["0", "1", "10"]),
    ("training.patience", &["1", "5"]),
    ("training.precision", &["\"f32\"", "\"f64\"", "\"bf16\""]),
    ("training.sync_batch_norm", &["\"auto\"", "\"always\"", "\"never\""]),
    ("training.validation_samples", &["1", "3"]),
    ("data.split.folds", &["3"]),
];

/// A combination, all of it a function of its number.
struct Combination {
    size: [usize; 3],
    classes: usize,
    preset: RunPreset,
    ranks: usize,
    settings: Vec<String>,
    with_report: bool,
}

impl Combination {
    fn new(number: u64) -> Self {
        let rng = &mut Rng::with_seed(number);
        let size = if rng.f32() < 0.65 { [1, 16, 16] } else { [16, 16, 16] };
        let classes = rng.usize(2..=3);
        let preset = RunPreset::ALL[rng.usize(..RunPreset::ALL.len())];
        let ranks = rng.usize(1..=2);
        let mut settings: BTreeMap<String, String> = BTreeMap::new();
        let mut set = |key: &str, value: String| settings.insert(key.to_owned(), value);
        for short in SHORT {
            let (key, value) = short.split_once('=').unwrap();
            set(key, value.to_owned());
        }
        set("model.backbone", backbone(rng, size));
        // Presets cut patches for their own images.
        set("batches.patch.sampler", sampler(rng, size));
        for (key, values) in CHOICES {
            if rng.f32() < 0.35 {
                set(key, values[rng.usize(..values.len())].to_owned());
            }
        }
        if let Some((key, value)) = labels(rng, classes) {
            set(key, value.to_owned());
        }
        // Few combinations of independent choices would be left after the checks.
        if rng.f32() < 0.85 {
            reconcile(rng, &mut settings, size, classes, preset, ranks);
        }
        // A plan is another table than the backbone.
        let settings = settings.into_iter().map(|(key, value)| match value.strip_prefix("plan=") {
            Some(plan) => format!("model.plan={plan}"),
            None => format!("{key}={value}"),
        });
        Self { size, classes, preset, ranks, settings: settings.collect(), with_report: rng.f32() < 0.2 }
    }
}

/// Changes settings of which the checks would refuse one beside the other.
fn reconcile(
    rng: &mut Rng,
    settings: &mut BTreeMap<String, String>,
    size: [usize; 3],
    classes: usize,
    preset: RunPreset,
    ranks: usize,
) {
    let get = |settings: &BTreeMap<String, String>, key: &str| settings.get(key).cloned().unwrap_or_default();
    let put = |settings: &mut BTreeMap<String, String>, key: &str, value: &str| {
        settings.insert(key.to_owned(), value.to_owned());
    };
    let is_paper_3d = preset.text().contains("target_size");
    if get(settings, "model.backbone").contains("deepmedic") || is_paper_3d {
        let network =
            deepmedic(size, if rng.bool() { "features=4".to_owned() } else { format!("logits={classes}") });
        put(settings, "model.backbone", &network);
        let [patch, target] = if size[0] == 1 { ["[1,15,15]", "[1,3,3]"] } else { ["[15,15,15]", "[3,3,3]"] };
        put(settings, "batches.patch.sampler", &format!("{{kind=\"random\",size={patch}}}"));
        put(settings, "batches.patch.target_size", target);
    }
    let backbone = get(settings, "model.backbone");
    let head = get(settings, "model.head");
    let is_latent = head.contains("prob-unet") || head.contains("phiseg");
    let is_foreign = backbone.contains("torchscript");
    if is_latent && (is_foreign || backbone.contains("deepmedic")) {
        put(settings, "model.head", "\"deterministic\"");
    } else if head.contains("phiseg") {
        put(settings, "model.head", "{phiseg={latent_levels=2}}");
    }
    if head.contains("identity") || backbone.contains("logits=") {
        let fits = backbone.contains(&format!("logits={classes}"))
            || backbone.contains("unet") && backbone.contains(&format!("pointwise=[{classes}]"));
        put(settings, "model.head", if fits { "\"identity\"" } else { "\"deterministic\"" });
        if !fits && backbone.contains("logits=") {
            put(settings, "model.backbone", &deepmedic(size, "features=4".to_owned()));
        }
    }
    if is_latent {
        put(settings, "batches.patch.rater", "{kind=\"random\"}");
    }
    if is_foreign {
        put(settings, "training.ema", "0");
        if get(settings, "training.sync_batch_norm").contains("always") {
            put(settings, "training.sync_batch_norm", "\"auto\"");
        }
    }
    let kind = get(settings, "loss.kind");
    let is_energy = kind.contains("energy") || kind.is_empty() && rng.bool();
    put(settings, "loss.kind", if is_energy { "\"energy\"" } else { "\"likelihood\"" });
    if !is_energy {
        put(settings, "loss.likelihood_steps", "0");
        settings.remove("loss.likelihood_weight");
    } else if get(settings, "loss.likelihood_steps").is_empty() {
        put(settings, "loss.likelihood_steps", "0");
    }
    let pairing = if rng.bool() { "\"antithetic\"" } else { "\"independent\"" };
    put(settings, "loss.pairing", pairing);
    put(settings, "loss.samples", ["4", "6"][rng.usize(..2)]);
    if ranks == 2 && get(settings, "batches.batch_size") == "1" {
        put(settings, "batches.batch_size", "3");
    }
    if size[0] == 1 {
        for key in ["data.normalization", "augmentation.steps"] {
            if get(settings, key).contains("brats") || get(settings, key).contains("axis=\"d\"") {
                settings.remove(key);
            }
        }
        settings.remove("data.spacing");
    }
    if classes == 3 {
        settings.remove("data.invert_labels");
    }
}

fn deepmedic([depth, ..]: [usize; 3], output: String) -> String {
    let d = if depth == 1 { 1 } else { 3 };
    format!(
        "{{deepmedic={{scales=[[{d},3,3],[1,1,1]],feature_maps=[3,3],kernel=[{d},3,3],fully_connected=[4],\
         dropout=[0.0,0.5],output={{{output}}}}}}}"
    )
}

fn backbone(rng: &mut Rng, size: [usize; 3]) -> String {
    let [d, s] = if size[0] == 1 { [1, 1] } else { [3, 2] };
    match rng.usize(..6) {
        0 | 1 => "plan={width=4,levels=3}".to_owned(),
        2 | 3 => {
            let norm = ["{kind=\"batch\"}", "{kind=\"instance\"}"][rng.usize(..2)];
            let activation = ["relu", "leaky-relu", "prelu"][rng.usize(..3)];
            let levels = rng.usize(2..=3);
            let list = |one: &str, count: usize| vec![one; count].join(",");
            format!(
                "{{unet={{widths=[{}],strides=[{}],kernels=[{}],decoder_widths=[{}],norm={norm},\
                 activation=\"{activation}\",pointwise=[{}],convolutions={}}}}}",
                list("4", levels),
                list(&format!("[{s},2,2]"), levels - 1),
                list(&format!("[{d},3,3]"), levels),
                list("4", levels - 1),
                ["", "3", "2"][rng.usize(..3)],
                rng.usize(1..=2)
            )
        }
        4 => deepmedic(size, ["features=4", "logits=2", "logits=3"][rng.usize(..3)].to_owned()),
        _ => format!("{{torchscript={TORCHSCRIPT:?},features=6}}"),
    }
}

fn sampler(rng: &mut Rng, [depth, ..]: [usize; 3]) -> String {
    let d = if depth == 1 { 1 } else { 6 };
    match rng.usize(..3) {
        0 => "{kind=\"whole\"}".to_owned(),
        1 => format!("{{kind=\"center-crop\",size=[{d},12,12]}}"),
        _ => format!("{{kind=\"random\",size=[{d},12,12],foreground_probability=0.5}}"),
    }
}

fn labels(rng: &mut Rng, classes: usize) -> Option<(&'static str, &'static str)> {
    let settings = match classes {
        2 => [
            ("data.invert_labels", "true"),
            ("data.classes", "[\"none\",\"a\"]"),
            ("data.label_values", "[0,255]"),
        ],
        _ => [
            ("data.label_values", "[0,2,1]"),
            ("data.classes", "[\"none\",\"a\",\"b\"]"),
            ("data.invert_labels", "true"),
        ],
    };
    (rng.f32() < 0.4).then(|| settings[rng.usize(..settings.len())])
}

enum Outcome {
    Works,
    /// The config was refused before anything was written.
    Refused(String),
    /// Four steps left a network whose numbers no file can hold, and the prediction said so.
    Untrained,
}

fn outcome(lab: &Lab, number: u64, combination: &Combination) -> Result<Outcome, String> {
    let Combination { preset, ranks, settings, with_report, .. } = combination;
    let config =
        |name: &str| lab.run(&format!("{number}-{name}"), preset.name(), settings.iter().map(String::as_str));
    let (whole, cut) = (config("whole"), config("cut"));
    let ended = match train_on(*ranks, &whole, None) {
        Ok(ended) => ended,
        Err(error) if !whole.out.join("config.toml").exists() => {
            return match error.kind {
                ssn::ErrorKind::Internal => Err(format!("refused by an internal error: {error}")),
                _ => Ok(Outcome::Refused(error.to_string())),
            };
        }
        Err(error) => return Err(format!("train: {error}")),
    };
    if !matches!(ended, StopReason::Finished | StopReason::Early) {
        return Err(format!("training ended with {ended:?}"));
    }
    let resume =
        ssn::TrainConfig { resume: Some(cut.out.clone()), preset: None, settings: vec![], ..cut.clone() };
    train_on(*ranks, &cut, Some(2)).map_err(|error| format!("stop: {error}"))?;
    train_on(*ranks, &resume, None).map_err(|error| format!("resume: {error}"))?;
    for ((name, expected), (_, found)) in results(&whole.out).iter().zip(results(&cut.out)) {
        if *expected != found {
            return Err(format!("{name} of a resumed run differs{}", first_difference(expected, &found)));
        }
    }
    match through_all_functions(&whole.out, DeviceChoice::Cpu, *with_report) {
        Ok(()) => Ok(Outcome::Works),
        Err(reason) if reason.starts_with("predict: ") && reason.contains("hardly begun to learn") => {
            Ok(Outcome::Untrained)
        }
        Err(reason) => Err(reason),
    }
}

/// Returns the first lines that differ in two texts.
fn first_difference(expected: &[u8], found: &[u8]) -> String {
    let (Ok(expected), Ok(found)) = (str::from_utf8(expected), str::from_utf8(found)) else {
        return String::new();
    };
    let mut lines = expected.lines().zip(found.lines());
    lines.find(|(a, b)| a != b).map_or(String::new(), |(a, b)| format!(": {b}, but uncut {a}"))
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is {text}")))
}

#[test]
fn random_combinations_work_or_are_refused() {
    let (first, count) = match variable("SSN_COMBINATION") {
        Some(number) => (number, 1),
        None => (variable("SSN_FIRST").unwrap_or(0), variable("SSN_COMBINATIONS").unwrap_or(COUNT)),
    };
    let next = AtomicU64::new(first);
    let (failures, refused) = (Mutex::new(vec![]), Mutex::new(BTreeMap::<String, Vec<u64>>::new()));
    let (works, untrained) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= first + count {
                        break;
                    }
                    let combination = Combination::new(number);
                    let lab = Lab::new(combination.size, combination.classes);
                    let description = format!(
                        "{} on {} ranks, images of {:?} with {} classes, {}",
                        combination.preset.name(),
                        combination.ranks,
                        combination.size,
                        combination.classes,
                        combination.settings.join(" ")
                    );
                    match outcome(&lab, number, &combination) {
                        Ok(Outcome::Works) => {
                            works.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok(Outcome::Untrained) => {
                            println!("{number} gives numbers that no file can hold");
                            untrained.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok(Outcome::Refused(reason)) => {
                            // Paths of temporary folders say nothing.
                            let reason = reason
                                .rsplit_once("data: ")
                                .map_or(&*reason, |(_, reason)| reason)
                                .to_owned();
                            refused.lock().unwrap().entry(reason).or_default().push(number);
                        }
                        Err(reason) => {
                            let failure = format!("SSN_COMBINATION={number}: {reason}\n  {description}");
                            eprintln!("{failure}");
                            failures.lock().unwrap().push(failure);
                        }
                    }
                    if count == 1 {
                        println!("{description}");
                    }
                }
            });
        }
    });
    let (failures, refused) = (failures.into_inner().unwrap(), refused.into_inner().unwrap());
    for (reason, numbers) in &refused {
        println!("{} refused, such as {}: {reason}", numbers.len(), numbers[0]);
    }
    let refused: usize = refused.values().map(Vec::len).sum();
    println!(
        "combinations {first} to {}: {} work, {refused} refused, {} untrained, {} failed",
        first + count - 1,
        works.into_inner(),
        untrained.into_inner(),
        failures.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Collects the names of all closed sets in a JSON schema.
fn names(schema: &serde_json::Value, found: &mut Vec<String>) {
    match schema {
        serde_json::Value::Object(object) => {
            for (key, value) in object {
                match (key.as_str(), value) {
                    ("const", serde_json::Value::String(name)) => found.push(name.clone()),
                    ("enum", serde_json::Value::Array(all)) => {
                        found.extend(all.iter().filter_map(|name| Some(name.as_str()?.to_owned())));
                    }
                    _ => names(value, found),
                }
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| names(item, found)),
        _ => {}
    }
}

#[test]
fn every_name_is_tried() {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/config.schema.json");
    let mut schema: serde_json::Value = serde_json::from_slice(&std::fs::read(schema).unwrap()).unwrap();
    // Layouts of datasets are tested where they are recognized.
    schema["$defs"].as_object_mut().unwrap().remove("Layout").unwrap();
    let mut found = vec![];
    names(&schema, &mut found);
    assert!(found.len() > 40, "{found:?}");
    let tried: String = (0..300).flat_map(|number| Combination::new(number).settings).collect();
    let presets = RunPreset::ALL.map(RunPreset::name);
    let missing: Vec<&String> = found
        .iter()
        .filter(|name| !presets.contains(&name.as_str()))
        .filter(|name| !tried.contains(&format!("\"{name}\"")))
        .collect();
    assert!(missing.is_empty(), "no combination has {missing:?}: add them to CHOICES");
}
