//! A commented config for a dataset, with values that fit it.

mod learning;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::case::Case;
use crate::dataset::{Dataset, Entry, Layout};
use crate::labels::LabelCoding;
use crate::normalize::{Normalization, looks_standardized};
use crate::source::{Maps, Source};
use crate::split::{Ratios, Split, quoted};

/// The window that shows soft tissue in CT, in Hounsfield units.
const SOFT_TISSUE: Normalization = Normalization::CtWindow { center: 40.0, width: 400.0 };

/// The scale of intensities that suits a dataset, judged by its first case.
pub fn suggest_normalization(dataset: &Dataset, first: &Case) -> Normalization {
    let (low, high) = first
        .image
        .iter()
        .fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), &x| (low.min(x), high.max(x)));
    let within = |a: f32, b: f32| low >= a && high <= b;
    let whole = first.image.iter().all(|x| x.fract() == 0.0);
    let mut channels = first.image.chunks_exact(first.voxels().max(1));
    let standardized =
        low < 0.0 && channels.all(|channel| looks_standardized(channel, first.mask.as_deref()));
    match () {
        () if dataset.channels.iter().any(|name| name.eq_ignore_ascii_case("ct")) => SOFT_TISSUE,
        () if within(0.0, 1.0) => Normalization::Scale { subtract: 0.5, divide: 1.0 },
        () if within(-0.5, 0.5) => Normalization::None,
        () if first.shape[0] == 1 && whole && within(0.0, 255.0) => {
            Normalization::Scale { subtract: 127.5, divide: 255.0 }
        }
        () if standardized => Normalization::None,
        () => Normalization::ZScore { in_mask: first.mask.is_some() },
    }
}

/// The ratios of the paper's experiments, by whether images have depth.
fn suggest_ratios(first: &Case) -> Ratios {
    if first.shape[0] == 1 { Ratios::LIDC } else { Ratios::BRATS }
}

/// The text of a config: what was found, with a comment for every key, and how to learn from it.
pub fn template(dataset: &Dataset, path: &Path, first: &Case) -> String {
    let text = template_with(dataset, path, first, suggest_normalization(dataset, first), "general");
    text + &learning::general(dataset, first)
}

/// The same for a scale of intensities that is known, and a preset that says everything about learning.
pub fn template_with(
    dataset: &Dataset,
    path: &Path,
    first: &Case,
    scale: Normalization,
    preset: &str,
) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = learning::write_preset(&mut text, first, preset);
    let _ = write_data(&mut text, dataset, path, first, scale);
    text
}

fn write_data(
    text: &mut String,
    dataset: &Dataset,
    path: &Path,
    first: &Case,
    scale: Normalization,
) -> std::fmt::Result {
    writeln!(text, "[data]")?;
    writeln!(text, "# The folder or file of the dataset; relative paths start at this file.")?;
    writeln!(text, "path = {}", quoted(&path.to_string_lossy()))?;
    writeln!(text, "# How its files lie: {}.", dataset.layout.describe())?;
    writeln!(text, "layout = \"{}\"", dataset.layout)?;
    writeln!(text, "# The channels to use, in this order.")?;
    writeln!(text, "channels = {}", list(&dataset.channels))?;
    writeln!(text, "# The classes, the background first. Rename them as you like.")?;
    writeln!(text, "classes = {}", list(&dataset.classes))?;
    match &dataset.reading.coding {
        LabelCoding::Plain => {}
        LabelCoding::Values(values) => {
            writeln!(text, "# The stored values of the classes, in their order.")?;
            writeln!(text, "label_values = {values:?}")?;
        }
        LabelCoding::Threshold(threshold) => {
            writeln!(text, "# Stored values above this are class 1.")?;
            writeln!(text, "label_threshold = {threshold}")?;
        }
    }
    writeln!(text, "# The scale of intensities: none, scale, z-score, brats, percentile or ct-window.")?;
    writeln!(text, "normalization = {}", normalization(scale))?;
    if first.shape[0] > 1 {
        let [x, y, z] = first.geometry.spacing;
        writeln!(text, "# Resample all cases to this spacing along width, height, depth, in millimeters.")?;
        writeln!(text, "# spacing = [{x:?}, {y:?}, {z:?}]")?;
    }
    if first.mask.is_some() {
        writeln!(text, "# Cut cases to the box of their region of interest.")?;
        writeln!(text, "crop_to_mask = false")?;
    }
    write_split(text, dataset, first)
}

fn write_split(text: &mut String, dataset: &Dataset, first: &Case) -> std::fmt::Result {
    writeln!(text, "\n[data.split]")?;
    writeln!(text, "# The file that keeps the split: read if it is there, written if not.")?;
    writeln!(text, "file = \"split.toml\"")?;
    let count = |split| dataset.entries.iter().filter(|entry| entry.split == Some(split)).count();
    let given = dataset.entries.iter().all(|entry| entry.split.is_some());
    if given {
        let [train, validation, test] = Split::ALL.map(count);
        writeln!(
            text,
            "# Use the parts of the dataset itself: {train} for training, {validation} for validation, {test} for test."
        )?;
        writeln!(text, "given = true")?;
    }
    let hash = if given { "# " } else { "" };
    let [train, validation, test] = suggest_ratios(first).0;
    writeln!(text, "# Shares of training, validation and test; patients or series stay together.")?;
    writeln!(text, "{hash}ratios = [{train}, {validation}, {test}]")?;
    writeln!(text, "# The same seed always gives the same split.")?;
    writeln!(text, "{hash}seed = 0")?;
    writeln!(text, "# For cross-validation: a number of folds, and which of them is for validation.")?;
    writeln!(text, "# folds = 5\n# fold = 0")
}

/// How many raters a case has, in words.
fn raters(case: &Case) -> String {
    match case.raters.len() {
        1 => "1 rater".to_owned(),
        count => format!("{count} raters"),
    }
}

fn normalization(rule: Normalization) -> String {
    match rule {
        Normalization::None => "{ kind = \"none\" }".to_owned(),
        Normalization::Scale { subtract, divide } => {
            format!("{{ kind = \"scale\", subtract = {subtract:?}, divide = {divide:?} }}")
        }
        Normalization::ZScore { in_mask } => format!("{{ kind = \"z-score\", in_mask = {in_mask} }}"),
        Normalization::Brats => "{ kind = \"brats\" }".to_owned(),
        Normalization::Percentile { low, high } => {
            format!("{{ kind = \"percentile\", low = {low:?}, high = {high:?} }}")
        }
        Normalization::CtWindow { center, width } => {
            format!("{{ kind = \"ct-window\", center = {center:?}, width = {width:?} }}")
        }
    }
}

fn list(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    format!("[{}]", names.join(", "))
}

/// What recognition found, in a few lines for people.
pub fn describe(dataset: &Dataset, first: &Case) -> String {
    let [d, h, w] = first.shape;
    let size = if d == 1 { format!("{h} × {w}") } else { format!("{d} × {h} × {w}") };
    let groups: std::collections::BTreeSet<&str> =
        dataset.entries.iter().map(|entry| entry.group.as_str()).collect();
    let grouped = match groups.len() == dataset.entries.len() {
        true => String::new(),
        false => format!(" of {} patients or series", groups.len()),
    };
    let one_of =
        if dataset.layout == Layout::Cache { "read from a cache" } else { dataset.layout.describe() };
    let mut text = format!(
        "{}: {one_of}\n  {} cases{grouped}; the first is {size}, with {}{}\n  channels: {}\n  classes: {}\n",
        dataset.root.display(),
        dataset.entries.len(),
        raters(first),
        if first.mask.is_some() { " and a region of interest" } else { "" },
        dataset.channels.join(", "),
        dataset.classes.join(", ")
    );
    text += &files_of(dataset, first);
    for finding in &dataset.findings {
        let advice = if finding.advice.is_empty() { String::new() } else { format!("; {}", finding.advice) };
        text += &format!("{}: {}{advice}\n", finding.severity, finding.reason);
    }
    text
}

/// Which file of a case is which channel, rater and mask; nothing where all cases are in one file.
fn files_of(dataset: &Dataset, case: &Case) -> String {
    let entry = dataset.entries.iter().find(|entry| entry.id == case.id);
    let Some(Entry { source: Source::Files(files), .. }) = entry else { return String::new() };
    let mut rows: Vec<(String, &PathBuf)> = vec![];
    match files.images.as_slice() {
        [Some(image)] if dataset.stored_channels.len() > 1 => rows.push(("all channels".to_owned(), image)),
        images => {
            let named = dataset.stored_channels.iter().zip(images);
            let used = named.filter(|(name, _)| dataset.channels.contains(name));
            rows.extend(used.filter_map(|(name, file)| Some((format!("channel {name}"), file.as_ref()?))));
        }
    }
    for rater in &files.raters {
        match &rater.maps {
            Maps::Labels(path) => rows.push((format!("rater {}", rater.number), path)),
            Maps::Masks(masks) => rows.extend(masks.iter().map(|(class, path)| {
                let class = dataset.classes.get(usize::from(*class)).map_or("", String::as_str);
                (format!("rater {}, {class}", rater.number), path)
            })),
        }
    }
    rows.extend(files.mask.iter().map(|path| ("mask".to_owned(), path)));
    let width = rows.iter().map(|(role, _)| role.chars().count()).max().unwrap_or(0);
    let row = |(role, path): &(String, &PathBuf)| {
        let inside = path.strip_prefix(&dataset.root).unwrap_or(path);
        format!("    {role:<width$}  {}\n", inside.display())
    };
    format!("  files of {}:\n{}", case.id, rows.iter().map(row).collect::<String>())
}
