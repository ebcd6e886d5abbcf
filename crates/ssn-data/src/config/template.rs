//! A commented config for a dataset, with values that fit it.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::dataset::case::Case;
use crate::dataset::labels::LabelCoding;
use crate::dataset::normalize::{Normalization, looks_standardized};
use crate::dataset::source::{CaseSource, RaterMaps};
use crate::dataset::split::{Ratios, Split, quoted};
use crate::dataset::{CaseEntry, Dataset, Layout};
use crate::text::counted;

/// The window that shows soft tissue in CT, in Hounsfield units.
const SOFT_TISSUE: Normalization = Normalization::CtWindow { center: 40.0, width: 400.0 };

/// Cases that are looked at to see whether all images have one size.
const LOOKED_AT: usize = 20;
/// The longest side of 2D patches.
const LONGEST_2D: usize = 512;
/// The longest side of 3D patches: three levels of a U-Net on a processor in seconds per step.
const LONGEST_3D: usize = 64;

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

/// The sections `[data]` and `[data.split]` for a dataset, with a comment for every key.
pub fn data_sections(dataset: &Dataset, path: &Path, first: &Case, scale: Normalization) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_data(&mut text, dataset, path, first, scale);
    text
}

/// The sections `[batches]` and `[augmentation]` that suit a dataset.
pub fn batch_sections(dataset: &Dataset, first: &Case) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_batches(&mut text, dataset, first);
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

fn write_batches(text: &mut String, dataset: &Dataset, first: &Case) -> std::fmt::Result {
    let flat = first.shape[0] == 1;
    writeln!(text, "[batches]")?;
    writeln!(text, "batch_size = {}", if flat { 8 } else { 2 })?;
    write_patch(text, dataset, first)?;
    writeln!(
        text,
        "# Which rater is the target of a step ({}): random, fixed or all.",
        counted(first.raters.len(), "rater")
    )?;
    writeln!(text, "patch.rater = {{ kind = \"random\" }}")?;
    writeln!(text, "\n[augmentation]")?;
    writeln!(
        text,
        "# Random changes of patches: none, lidc (flips, rotation, scaling), lidc-as-coded or brats."
    )?;
    writeln!(text, "preset = \"{}\"", if flat { "lidc" } else { "brats" })
}

/// Where patches are cut: everywhere at once if images are small and of one size.
fn write_patch(text: &mut String, dataset: &Dataset, first: &Case) -> std::fmt::Result {
    let [d, h, w] = first.shape;
    if d > 1 {
        let side = |n: usize| if n >= LONGEST_3D { LONGEST_3D } else { n.next_multiple_of(8) };
        let size = [side(d), side(h), side(w)];
        writeln!(
            text,
            "# Patches around lesions and background, in turn; sizes are depth, height, width. Larger ones see"
        )?;
        writeln!(text, "# more and cost more: on a GPU, 96 or 128.")?;
        return writeln!(
            text,
            "patch.sampler = {{ kind = \"random\", size = {size:?}, foreground_probability = 0.5 }}"
        );
    }
    let sizes = sizes(dataset, first);
    let largest = sizes.iter().fold([h, w], |[a, b], [_, h, w]| [a.max(*h), b.max(*w)]);
    if sizes.iter().all(|size| *size == first.shape) && largest.iter().all(|n| *n <= LONGEST_2D) {
        writeln!(text, "# Whole images.")?;
        return writeln!(text, "patch.sampler = {{ kind = \"whole\" }}");
    }
    let [h, w] = largest.map(|n| n.min(LONGEST_2D));
    writeln!(text, "# Patches around lesions and background, in turn; sizes are depth, height, width.")?;
    writeln!(
        text,
        "patch.sampler = {{ kind = \"random\", size = [1, {h}, {w}], foreground_probability = 0.5 }}"
    )
}

/// The sizes of some cases, spread over the dataset. What cannot be read is reported by `ssn check`.
fn sizes(dataset: &Dataset, first: &Case) -> Vec<[usize; 3]> {
    let count = dataset.entries.len();
    let step = count.div_ceil(LOOKED_AT).max(1);
    let others = (0..count).step_by(step).filter_map(|index| Some(dataset.load_raw(index).ok()?.shape));
    others.chain([first.shape]).collect()
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
        counted(first.raters.len(), "rater"),
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
    let Some(CaseEntry { source: CaseSource::Files(files), .. }) = entry else { return String::new() };
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
            RaterMaps::Labels(path) => rows.push((format!("rater {}", rater.number), path)),
            RaterMaps::Masks(masks) => rows.extend(masks.iter().map(|(class, path)| {
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
