//! `ssn report`: one page that holds everything, its figures, and what is refused.

use std::path::{Path, PathBuf};
use std::process::Output;

use ssn_eval::metrics_file::{GRADIENT_NORM, LOSS, resumed, row};
use ssn_eval::{About, PredictionKind, Predictions, file_stem};
use ssn_io::{Geometry, Image, Limits, Voxels, write};
use tempfile::TempDir;

use crate::common::{self, Prediction, model, picture, ssn, told};

/// A name that must not become an element of the page.
const HOSTILE: &str = "<script>alert(1)</script>";

/// A dataset `set/` of pictures of 8 × 8 with two raters, and predictions of them.
fn folder(cases: &[&'static str], kind: PredictionKind) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut index = "id,image,seg_0,seg_1\n".to_owned();
    for (number, id) in cases.iter().enumerate() {
        let name = file_stem(id);
        picture(&folder.path().join(format!("set/{name}.png")), |i| (i * 11 % 200) as u8);
        picture(&folder.path().join(format!("set/{name}_0.png")), |i| u8::from(i < 20 + number));
        // The second rater finds nothing in the last case.
        picture(&folder.path().join(format!("set/{name}_1.png")), |i| {
            u8::from(i < 10 && number + 1 < cases.len())
        });
        index += &format!("{id},{name}.png,{name}_0.png,{name}_1.png\n");
    }
    std::fs::write(folder.path().join("set/index.csv"), index).unwrap();
    predict(&folder, "predictions", cases, kind);
    folder
}

/// What all predictions of these tests are of.
fn about() -> About {
    let dataset = "set/index.csv".to_owned();
    About {
        model: model(),
        seed: 0,
        dataset,
        split: "all".to_owned(),
        images: None,
        labels: None,
        labels_only: false,
    }
}

fn predict(folder: &TempDir, name: &str, cases: &[&'static str], kind: PredictionKind) {
    let predictions = Predictions::create(&folder.path().join(name), about()).unwrap();
    for (number, id) in cases.iter().enumerate() {
        Prediction { kind, ..Prediction::picture(id, number as u64) }
            .write(&predictions.distribution_path(id));
    }
}

fn evaluate(folder: &TempDir, name: &str) {
    let output = ssn(folder, &["evaluate", name, "--samples", "8", "--quiet", "--allow-missing"]);
    assert!(output.status.success(), "{}", told(&output));
}

fn report(folder: &TempDir, arguments: &[&str]) -> Output {
    ssn(folder, &[&["report", "--quiet"], arguments].concat())
}

/// Makes a report that must succeed, and gives its page.
fn page(folder: &TempDir, arguments: &[&str], place: &str) -> String {
    let output = report(folder, arguments);
    assert!(output.status.success(), "{}", told(&output));
    std::fs::read_to_string(folder.path().join(place).join("report.html")).unwrap()
}

/// The names of the figures of a report, without ending, sorted.
fn figures(folder: &TempDir, place: &str) -> Vec<String> {
    let mut names = vec![];
    for entry in std::fs::read_dir(folder.path().join(place).join("figures")).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        match path.extension().unwrap().to_str().unwrap() {
            "svg" => names.push(stem),
            ending => assert_eq!(ending, "png"),
        }
    }
    names.sort();
    let png = |name: &String| folder.path().join(place).join(format!("figures/{name}.png"));
    assert!(names.iter().all(|name| std::fs::read(png(name)).unwrap().starts_with(b"\x89PNG")));
    names
}

fn svg(folder: &TempDir, place: &str, name: &str) -> String {
    std::fs::read_to_string(folder.path().join(place).join(format!("figures/{name}.svg"))).unwrap()
}

/// Everything in a folder with its bytes.
fn bytes(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = vec![];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(bytes(&path))
        } else {
            all.push((path.clone(), std::fs::read(&path).unwrap()))
        }
    }
    all.sort();
    all
}

#[test]
fn help() {
    insta::assert_snapshot!(told(&ssn(&tempfile::tempdir().unwrap(), &["report", "--help"])));
}

#[test]
fn the_page_holds_the_scores_and_fetches_nothing() {
    let folder = folder(&["a", HOSTILE, "case10"], PredictionKind::Stochastic);
    evaluate(&folder, "predictions");
    let html = page(&folder, &["predictions"], "predictions/report");
    assert_eq!(html.matches("<script").count(), 1, "only our own");
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(!html.contains("://") && !html.contains("src="));
    assert!(html.contains("small on all") && html.contains("stochastic, rank 2"));
    assert!(html.contains("GED², 8 samples") && html.contains("not a medical device"));
    let drawn = figures(&folder, "predictions/report");
    assert!(
        ["ged-samples", "reliability"].iter().all(|name| drawn.contains(&(*name).to_owned())),
        "{drawn:?}"
    );
    // The table of cases has a row for each, with the value of its sort.
    let table = html.split("class=\"sortable\"").nth(1).unwrap().split("</table>").next().unwrap();
    assert_eq!(table.matches("<tr>").count(), 1 + 3);
    let csv = std::fs::read_to_string(folder.path().join("predictions/evaluation/cases.csv")).unwrap();
    let place = csv.lines().next().unwrap().split(',').position(|key| key == "ged2_8").unwrap();
    for row in csv.lines().skip(1) {
        let value = row.split(',').nth(place).unwrap();
        assert!(table.contains(&format!("data-value=\"{value}\"")), "{value}");
    }
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let folder = folder(&["a", "b", "c"], PredictionKind::Stochastic);
    evaluate(&folder, "predictions");
    let place = folder.path().join("predictions/report");
    page(&folder, &["predictions"], "predictions/report");
    let first = bytes(&place);
    let refused = report(&folder, &["predictions"]);
    assert_eq!(refused.status.code(), Some(2));
    page(&folder, &["predictions", "--overwrite"], "predictions/report");
    assert!(bytes(&place) == first);
}

#[test]
fn only_figures_of_an_earlier_report_are_removed() {
    let folder = folder(&["a", "b", "c"], PredictionKind::Stochastic);
    evaluate(&folder, "predictions");
    let place = folder.path().join("predictions/report");
    page(&folder, &["predictions"], "predictions/report");
    let all = figures(&folder, "predictions/report");
    std::fs::write(place.join("figures/plot.svg"), "of the user").unwrap();
    page(&folder, &["predictions", "--cases", "1", "--overwrite"], "predictions/report");
    assert_eq!(std::fs::read(place.join("figures/plot.svg")).unwrap(), b"of the user");
    std::fs::remove_file(place.join("figures/plot.svg")).unwrap();
    let left = figures(&folder, "predictions/report");
    assert!(left.len() < all.len() && left.iter().all(|name| all.contains(name)), "{left:?}");
}

#[test]
fn files_of_others_are_not_replaced() {
    let folder = folder(&["a"], PredictionKind::Stochastic);
    evaluate(&folder, "predictions");
    let place = folder.path().join("mine");
    let refused = |name: &str, flags: &[&str]| {
        let path = place.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "of the user").unwrap();
        let output = report(&folder, &[&["predictions", "--out", "mine"], flags].concat());
        assert_eq!(output.status.code(), Some(2), "{}", told(&output));
        assert!(told(&output).contains("does not list it"), "{}", told(&output));
        assert_eq!(std::fs::read(&path).unwrap(), b"of the user");
        std::fs::remove_file(&path).unwrap();
    };
    refused("report.html", &[]);
    refused("report.html", &["--overwrite"]);
    refused("figures/reliability.png", &["--overwrite"]);
    page(&folder, &["predictions", "--out", "mine"], "mine");
}

#[test]
fn what_is_neither_is_said() {
    let folder = folder(&["a"], PredictionKind::Stochastic);
    let told_of = [
        told(&report(&folder, &["set"])),
        told(&report(&folder, &["absent"])),
        told(&report(&folder, &["predictions", "--samples", "1"])),
    ];
    std::fs::create_dir(folder.path().join("predictions/evaluation")).unwrap();
    std::fs::write(folder.path().join("predictions/evaluation/summary.json"), "{}").unwrap();
    let damaged = told(&report(&folder, &["predictions"]));
    insta::assert_snapshot!("refusals", [told_of.join("\n"), damaged].join("\n"));
    assert!(!folder.path().join("predictions/report").exists(), "nothing was written");
}

#[test]
fn a_run_shows_how_it_learned() {
    let folder = tempfile::tempdir().unwrap();
    for (name, loss) in [("first", 3.0), ("second", 2.0)] {
        let run = folder.path().join("runs").join(name);
        std::fs::create_dir_all(&run).unwrap();
        std::fs::write(run.join("config.toml"), "").unwrap();
        let header = "step,loss,ess,gradient_norm,learning_rate,validation_ged,\
                      validation_diversity,validation_rater_diversity,validation_dice";
        let rows = format!("10,{loss},1,1,0.001,,,,\n10,,,,,0.5,0.2,0.3,0.7\n20,1,1,1,0.0005,,,,\n");
        std::fs::write(run.join("metrics.csv"), format!("{header}\n{rows}")).unwrap();
    }
    let html = page(&folder, &["runs/first"], "runs/first/report");
    assert!(html.contains("<h1>Run first</h1>") && html.contains("first, 20 steps"));
    let names = ["dice", "diversity", "ged"].map(|name| format!("training-validation-{name}"));
    let all = ["ess", "gradient-norm", "learning-rate", "loss"].map(|name| format!("training-{name}"));
    let all = [&all[..], &names].concat();
    assert_eq!(figures(&folder, "runs/first/report"), all);
    assert!(svg(&folder, "runs/first/report", "training-validation-diversity").contains(">raters</text>"));
    page(&folder, &["runs/first", "runs/second"], "runs/report");
    let loss = svg(&folder, "runs/report", "training-loss");
    assert!(loss.contains(">first</text>") && loss.contains(">second</text>"));
}

#[test]
fn a_damaged_line_of_metrics_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    std::fs::create_dir_all(&run).unwrap();
    std::fs::write(run.join("config.toml"), "").unwrap();
    let row = row(10, &[(LOSS, Some(1.5)), (GRADIENT_NORM, Some(1.0))]);
    let text = [&resumed("", 0), &row, &row.replace("1.5", "1.x")].map(String::as_str).concat();
    std::fs::write(run.join("metrics.csv"), text).unwrap();
    let message = told(&report(&folder, &["run"]));
    assert!(message.contains("run/metrics.csv has a damaged line 3"), "{message}");
}

#[test]
fn every_verb_takes_the_largest_seed() {
    let folder = folder(&["a", "b"], PredictionKind::Stochastic);
    let seed = u64::MAX.to_string();
    for arguments in [
        &["sample", "predictions", "--out", "samples", "--samples", "2", "--json"][..],
        &["evaluate", "predictions"],
        &["report", "predictions"],
        &["view", "predictions", "--export", "page.html"],
    ] {
        let output = ssn(&folder, &[arguments, &["--seed", &seed]].concat());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", told(&output));
        if arguments.contains(&"--json") {
            let stdout = String::from_utf8(output.stdout).unwrap();
            assert!(stdout.contains(&format!("\"seed\": {seed}")), "{stdout}");
        }
    }
    let summary = std::fs::read_to_string(folder.path().join("predictions/evaluation/summary.json")).unwrap();
    assert!(summary.contains(&seed), "{summary}");
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("<html"), "the page was written");
}

/// Counts of a text in a drawing.
fn count(svg: &str, text: &str) -> usize {
    svg.matches(text).count()
}

/// The shares of groups of samples that stand below pictures, in per cent.
fn shares(svg: &str) -> Vec<f64> {
    let number = |text: &str| text.split(" %").next().and_then(|number| number.parse().ok());
    let texts = svg.split('>').filter(|text| text.contains(" %<") || text.contains(" %, rare<"));
    texts.filter_map(number).collect()
}

#[test]
fn cases_have_pictures_volumes_and_distances() {
    let folder = folder(&["a", HOSTILE, "case10"], PredictionKind::Stochastic);
    let html = page(&folder, &["predictions", "--samples", "12"], "predictions/report");
    let all = figures(&folder, "predictions/report");
    for id in ["a", HOSTILE, "case10"] {
        for what in ["pictures", "volumes", "distances"] {
            assert!(all.contains(&file_stem(&format!("{id}-{what}"))), "{id} {what}: {all:?}");
        }
    }
    let pictures = svg(&folder, "predictions/report", &file_stem("case10-pictures"));
    // The image, two raters, the prediction, its entropy, and a sample of each group.
    let groups = shares(&pictures);
    assert!((1..=8).contains(&groups.len()), "{groups:?}");
    assert_eq!(count(&pictures, "<image"), 1 + 2 + 2 + groups.len());
    assert_eq!(count(&pictures, ">sample "), groups.len());
    let sum: f64 = groups.iter().sum();
    assert!((sum - 100.0).abs() <= groups.len() as f64, "every sample is in a group: {groups:?}");
    assert!(pictures.contains(">rater 1, empty<") && pictures.contains(">lesion<"));
    let dice = svg(&folder, "predictions/report", "sample-dice");
    // A dot per sample, but in the last case only one rater marked something; and one in the legend.
    assert_eq!(count(&dice, "<circle"), 3 * 12 + 1);
    assert_eq!(count(&html, "<figure "), all.len());
    // The strip of a typical case is the first of all.
    assert!(html.find("data-name=\"typical-case\"").unwrap() < html.find("<h2").unwrap());
    let name = file_stem(&format!("{HOSTILE}-pictures"));
    assert_eq!(count(&html, &format!("data-name=\"{name}\"")), 1);
    // A line for each case with pictures, as a shell takes it.
    assert!(html.contains("<code>ssn view predictions --case case10</code>"));
    assert!(html.contains("--case &#39;&lt;script&gt;alert(1)&lt;/script&gt;&#39;</code>"));
    assert!(html.contains("were not scored yet"));
    let few = page(&folder, &["predictions", "--cases", "1", "--overwrite"], "predictions/report");
    assert_eq!(few.matches("most ambiguous</h3>").count(), 1);
    assert_eq!(
        figures(&folder, "predictions/report").iter().filter(|name| name.ends_with("-volumes")).count(),
        1
    );
}

#[test]
fn without_the_dataset_only_the_files_are_drawn() {
    let folder = folder(&["a", "b"], PredictionKind::Stochastic);
    std::fs::remove_dir_all(folder.path().join("set")).unwrap();
    let output = ssn(&folder, &["report", "predictions", "--data", "set/index.csv"]);
    assert_eq!(output.status.code(), Some(65), "{}", told(&output));
    let html = page(&folder, &["predictions"], "predictions/report");
    assert!(html.contains("Images and raters of predictions are left out"));
    let pictures = svg(&folder, "predictions/report", "a-pictures");
    assert_eq!(count(&pictures, "<image"), 2 + shares(&pictures).len());
    assert!(!figures(&folder, "predictions/report").contains(&"sample-dice".to_owned()));
    assert!(!svg(&folder, "predictions/report", "a-distances").contains(">raters<"));
}

#[test]
fn a_volume_shows_the_slice_with_most_and_a_montage() {
    let folder = tempfile::tempdir().unwrap();
    let size = [5, 8, 8];
    let volume = |path: &str, value: &dyn Fn(usize) -> u8| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let voxels = Voxels::U8((0..320).map(value).collect());
        let image = Image::new(voxels, [1, 5, 8, 8], Geometry::default(), &Limits::default()).unwrap();
        write(&path, &image).unwrap();
    };
    volume("set/a.nii.gz", &|i| (i % 100) as u8);
    // Most is marked in slice 3.
    volume("set/a_0.nii.gz", &|i| u8::from(i / 64 == 3 && i % 64 < 30 || i / 64 == 1 && i % 64 < 9));
    std::fs::write(folder.path().join("set/index.csv"), "id,image,seg\na,a.nii.gz,a_0.nii.gz\n").unwrap();
    let predictions = Predictions::create(&folder.path().join("predictions"), about()).unwrap();
    let region = ssn_eval::Region::whole(size);
    Prediction { size, region, ..Prediction::picture("a", 3) }.write(&predictions.distribution_path("a"));
    let html = page(&folder, &["predictions", "--samples", "6"], "predictions/report");
    assert!(html.contains("Slice 3, which has most marked voxels"));
    assert!(!html.contains("of raters 0.000"), "one rater cannot disagree");
    let pictures = svg(&folder, "predictions/report", "a-pictures");
    // Image, rater, prediction, entropy, samples, and the three slices from 1 to 3 twice.
    assert_eq!(count(&pictures, "<image"), 4 + shares(&pictures).len() + 2 * 3);
    assert!(pictures.contains(">slice 2<") && !pictures.contains(">slice 0<"));
    assert!(svg(&folder, "predictions/report", "a-volumes").contains(">ml<"));
}

#[test]
fn samples_are_steered_where_there_is_noise() {
    let folder = folder(&["a", "b", "c", "d"], PredictionKind::Stochastic);
    let html = page(&folder, &["predictions"], "predictions/report");
    let all = figures(&folder, "predictions/report");
    for what in ["classes", "temperature", "modes"] {
        let of = all.iter().filter(|name| name.ends_with(&format!("-{what}"))).count();
        assert_eq!(of, 3, "{what} of three cases: {all:?}");
    }
    let name = |what: &str| all.iter().find(|name| name.ends_with(what)).unwrap().clone();
    let classes = svg(&folder, "predictions/report", &name("-classes"));
    // The image, the raters in one picture, and seven scales.
    assert_eq!((count(&classes, "<image"), count(&classes, ">−3<"), count(&classes, ">+3<")), (9, 1, 1));
    assert!(classes.contains(">2 raters<"));
    let temperature = svg(&folder, "predictions/report", &name("-temperature"));
    assert_eq!((count(&temperature, "<image"), count(&temperature, ">T = 0.25<")), (14, 2));
    let modes = svg(&folder, "predictions/report", &name("-modes"));
    assert_eq!((count(&modes, "<image"), count(&modes, ">mode 2<")), (14, 1));
    assert!(html.contains("the modes explain ") && !html.contains("cannot be steered"));

    predict(&folder, "plain", &["a", "b"], PredictionKind::Deterministic);
    let html = page(&folder, &["plain"], "plain/report");
    assert!(html.contains("no noise that could be steered"));
    assert!(svg(&folder, "plain/report", "a-pictures").contains(">one by one<"));
    predict(&folder, "drawn", &["a", "b"], PredictionKind::Sampled);
    let html = page(&folder, &["drawn"], "drawn/report");
    assert!(html.contains("they cannot be steered"));
    let strips = |name: &String| ["-classes", "-temperature", "-modes"].iter().any(|end| name.ends_with(end));
    for place in ["plain/report", "drawn/report"] {
        assert!(!figures(&folder, place).iter().any(strips));
    }
    let drawn = svg(&folder, "drawn/report", "a-pictures");
    assert!((1..=common::STORED).contains(&count(&drawn, ">sample ")));
}

#[test]
fn several_folders_stand_side_by_side() {
    let folder = folder(&["a", "b", "c"], PredictionKind::Stochastic);
    predict(&folder, "plain", &["b", "c"], PredictionKind::Deterministic);
    predict(&folder, "drawn", &["b", "c", "a"], PredictionKind::Sampled);
    evaluate(&folder, "predictions");
    evaluate(&folder, "plain");
    let html = page(&folder, &["predictions", "plain", "drawn", "--out", "side"], "side");
    assert!(html.contains("<h1>3 sets of predictions</h1>"));
    // A column per folder, also of the one that was not scored.
    let table = html.split("Scores of all predictions").nth(1).unwrap().split("</table>").next().unwrap();
    let columns =
        ["score", "predictions", "plain", "drawn"].map(|name| format!("<th scope=\"col\">{name}</th>"));
    assert!(table.contains(&columns.concat()), "{table}");
    assert!(table.contains("GED², 8 samples") && table.contains(" ± "));
    // Only the cases that all have.
    let all = figures(&folder, "side");
    let compared: Vec<&String> = all.iter().filter(|name| name.ends_with("-comparison")).collect();
    assert_eq!(compared, ["b-comparison", "c-comparison"]);
    let pictures = svg(&folder, "side", "b-comparison");
    // Image and two raters; of each folder, its prediction and a sample of each group, seven at most.
    let groups = shares(&pictures).len();
    assert!((3..=21).contains(&groups));
    assert_eq!(count(&pictures, "<image"), 3 + 3 + groups);
    // The best GED² of the two that were scored is in bold.
    let headline = html.split("The most important scores").nth(1).unwrap().split("</table>").next().unwrap();
    assert!(headline.contains("GED² ↓") && headline.contains("<strong>"), "{headline}");
    assert!(html.contains("Not scored yet") && html.contains("Run <code>ssn evaluate</code>"));
    assert!(pictures.contains(">plain<") && pictures.contains(">one by one)<"));
    assert_eq!(all.iter().filter(|name| name.ends_with("-sample-dice")).count(), 3);
    // A row per case: image, raters, and prediction, entropy and a sample of each folder.
    assert_eq!(count(&svg(&folder, "side", "networks"), "<image"), 2 * (2 + 3 * 3));
    // Of the folders that were scored.
    let ged = svg(&folder, "side", "ged-samples");
    assert!(ged.contains(">predictions</text>") && ged.contains(">plain</text>") && !ged.contains(">drawn<"));
    let reliable: Vec<&String> = all.iter().filter(|name| name.ends_with("-reliability")).collect();
    assert_eq!(reliable, ["plain-reliability", "predictions-reliability"]);
}

/// Sixty pictures of noise, which nothing can compress, in the size of most datasets of slices.
#[test]
fn a_report_of_sixty_cases_is_small() {
    let folder = tempfile::tempdir().unwrap();
    let (size, shape) = ([1, 128, 128], [1, 1, 128, 128]);
    let ids: Vec<&'static str> = (0..60).map(|i| &*format!("case{i}").leak()).collect();
    let predictions = Predictions::create(&folder.path().join("predictions"), about()).unwrap();
    std::fs::create_dir(folder.path().join("set")).unwrap();
    let mut index = "id,image,seg_0,seg_1\n".to_owned();
    for (number, id) in ids.iter().enumerate() {
        let noise = |i: usize| (i * i * (number + 7) % 251) as u8;
        let disc =
            |i: usize, radius: usize| u8::from((i / 128).abs_diff(64) + (i % 128).abs_diff(60) < radius);
        let maps: [Vec<u8>; 3] = [
            (0..16384).map(noise).collect(),
            (0..16384).map(|i| disc(i, 20 + number % 9)).collect(),
            (0..16384).map(|i| disc(i, 30)).collect(),
        ];
        for (name, voxels) in ["", "_0", "_1"].iter().zip(maps) {
            let path = folder.path().join(format!("set/{id}{name}.png"));
            let image = Image::new(Voxels::U8(voxels), shape, Geometry::default(), &Limits::default());
            write(&path, &image.unwrap()).unwrap();
        }
        index += &format!("{id},{id}.png,{id}_0.png,{id}_1.png\n");
        let region = ssn_eval::Region::whole(size);
        Prediction { size, region, ..Prediction::picture(id, number as u64) }
            .write(&predictions.distribution_path(id));
    }
    std::fs::write(folder.path().join("set/index.csv"), index).unwrap();
    let html = page(&folder, &["predictions", "--cases", "60"], "predictions/report");
    assert!(html.len() < 15_000_000, "{} bytes", html.len());
    println!("a report of 60 cases with pictures takes {} bytes", html.len());
    let dice = svg(&folder, "predictions/report", "sample-dice");
    assert_eq!(count(&dice, "<circle"), 60 * 20 + 1);
    assert_eq!(html.matches("</h3>").count(), 60);
}

#[test]
fn json_names_what_was_written() {
    let folder = folder(&["a"], PredictionKind::Stochastic);
    let output = report(&folder, &["predictions", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let file = std::fs::metadata(folder.path().join(json["report"].as_str().unwrap())).unwrap();
    assert_eq!(json["bytes"], file.len());
    let named = json["figures"].as_array().unwrap();
    assert_eq!(named.len(), 2 * figures(&folder, "predictions/report").len());
    assert!(named.iter().all(|path| folder.path().join(path.as_str().unwrap()).is_file()));
}
