//! Some test images with their raters, and what each network draws for them.

use ssn_cli::args::DemoArgs;
use ssn_cli::evaluate::Evaluated;
use ssn_cli::{Exit, Failure, datasets, predictions};
use ssn_core::Steering;
use ssn_data::{Case, DataConfig};
use ssn_eval::figures::picture::Picture;
use ssn_eval::figures::png_from_svg;
use ssn_eval::figures::strips::{Block, Strip, Tile, strips_figure};
use ssn_eval::predictions::draw::Draw;
use ssn_eval::{DistributionFile, Predictions};

/// Images that are shown: those on which raters disagree most.
const SHOWN: usize = 4;
/// Samples of each network.
const SAMPLES: u64 = 6;
/// Pixels of the pictures per pixel of an image.
const ZOOM: usize = 4;
/// Pixels of the PNG per pixel of the SVG.
const PNG_SCALE: f32 = 1.5;

/// The figure as SVG.
pub fn figure(args: &DemoArgs, evaluated: &[(&str, Evaluated)]) -> Result<String, Failure> {
    let data = DataConfig::read(&args.out.join("demo.toml")).map_err(datasets::failure)?;
    let dataset = data.open().map_err(datasets::failure)?;
    let mut blocks = vec![];
    for id in most_disputed(evaluated) {
        let place = dataset.entries.iter().position(|entry| entry.id == id);
        let place = place.ok_or_else(|| Failure::new(Exit::Internal, format!("the case {id} is gone")))?;
        let case = dataset.load_raw(place).map_err(datasets::failure)?;
        let mut strips = vec![raters(&case)];
        for (name, _) in evaluated {
            let folder =
                Predictions::open(&args.out.join("predictions").join(name)).map_err(predictions::failure)?;
            let file = folder.read(&id).map_err(predictions::failure)?;
            strips.push(network(name, &case, &file)?);
        }
        blocks.push(Block { title: id, strips });
    }
    let title = "What four raters marked, and what each network draws";
    let description =
        "For each image: the image, the raters' contours, and for each network its prediction and samples.";
    Ok(strips_figure(title, description, &blocks))
}

/// The figure as PNG.
pub fn png(svg: &str) -> Result<Vec<u8>, Failure> {
    png_from_svg(svg, PNG_SCALE).map_err(|error| Failure::new(Exit::Internal, error))
}

/// The cases on which raters differ most, by the distance of their label maps.
fn most_disputed(evaluated: &[(&str, Evaluated)]) -> Vec<String> {
    let Some((_, first)) = evaluated.first() else { return vec![] };
    let mut cases: Vec<_> = first.cases.iter().collect();
    cases.sort_by(|a, b| b.scores.rater_diversity.total_cmp(&a.scores.rater_diversity));
    cases.iter().take(SHOWN).map(|case| case.id.clone()).collect()
}

fn picture(case: &Case) -> Picture {
    let (low, high) =
        case.image.iter().fold((f32::MAX, f32::MIN), |(low, high), &x| (low.min(x), high.max(x)));
    Picture::gray(&case.image, case.shape[2], [low, high], ZOOM)
}

fn tile(case: &Case, labels: &[u8], caption: String) -> Tile {
    Tile { picture: picture(case).with_labels(labels, case.shape[2]), caption }
}

fn raters(case: &Case) -> Strip {
    let mut tiles = vec![Tile { picture: picture(case), caption: "image".to_owned() }];
    let each = case.raters.iter().enumerate();
    tiles.extend(each.map(|(number, labels)| tile(case, labels, format!("rater {number}"))));
    Strip { label: "raters".to_owned(), tiles }
}

fn network(name: &str, case: &Case, file: &DistributionFile) -> Result<Strip, Failure> {
    let on_image = |map| file.labels_on_image(&map).map_err(predictions::failure);
    let mean = on_image(file.prediction().map_err(predictions::failure)?)?;
    let mut tiles = vec![tile(case, &mean, "prediction".to_owned())];
    let draw = Draw::new(file, 0, &Steering::default()).map_err(predictions::failure)?;
    let samples = draw.labels(0..SAMPLES).map_err(predictions::failure)?;
    for (number, map) in samples.into_iter().enumerate() {
        tiles.push(tile(case, &on_image(map)?, format!("sample {number}")));
    }
    Ok(Strip { label: name.to_owned(), tiles })
}
