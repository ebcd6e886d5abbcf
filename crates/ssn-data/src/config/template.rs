//! A commented config for a dataset, with values that fit it.

use std::path::{Path, PathBuf};

use crate::dataset::{
    AnnotationSource, Case, CaseEntry, Dataset, LabelCoding, Layout, Normalization, RaterMaps, Ratios, Split,
    extremes, inline, looks_standardized,
};
use crate::text::counted;

/// The window that shows soft tissue in CT, in Hounsfield units.
const SOFT_TISSUE: Normalization = Normalization::CtWindow { center: 40.0, width: 400.0 };

/// Cases that are looked at to see whether all images have one size.
const LOOKED_AT: usize = 20;
/// The longest side of 2D patches.
const LONGEST_2D: usize = 512;
/// The longest side of 3D patches: three levels of a U-Net on a CPU in seconds per step.
const LONGEST_3D: usize = 64;

/// The scale of intensities that suits a dataset, judged by its first case.
pub fn suggest_normalization(dataset: &Dataset, first: &Case) -> Normalization {
    let [low, high] = extremes(first.image.iter().copied());
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

/// The sections `[data]` and `[data.split]` for a dataset, with a comment for every key.
pub fn data_sections(dataset: &Dataset, path: &Path, first: &Case, scale: Normalization) -> String {
    let mut text = format!(
        "[data]\n\
         # The folder or file of the dataset; relative paths start at this file.\n\
         path = {}\n\
         # How its files lie: {}.\n\
         layout = \"{}\"\n\
         # The channels to use, in this order.\n\
         channels = {}\n\
         # The classes, the background first. Rename them as you like.\n\
         classes = {}\n",
        inline(&path.to_string_lossy()),
        dataset.layout.describe(),
        dataset.layout,
        inline(&dataset.channels),
        inline(&dataset.classes)
    );
    text += &match &dataset.reading.coding {
        LabelCoding::Plain => String::new(),
        LabelCoding::Values(values) => {
            format!("# The stored values of the classes, in their order.\nlabel_values = {values:?}\n")
        }
        LabelCoding::Threshold(threshold) => {
            format!("# Stored values above this are class 1.\nlabel_threshold = {threshold}\n")
        }
    };
    if let [chosen, others @ ..] = &dataset.sources[..] {
        let describe = |source: &AnnotationSource| {
            format!("{}, {}", counted(source.raters.len(), "rater"), counted(source.files.len(), "file"))
        };
        text += "# The folder whose raters are used; remove a # to take another one.\n";
        text += &format!("annotations = {} # {}\n", inline(&chosen.name), describe(chosen));
        for source in others {
            text += &format!("# annotations = {} # {}\n", inline(&source.name), describe(source));
        }
    }
    text += "# The scale of intensities: none, scale, z-score, brats, percentile or ct-window.\n";
    text += &format!("normalization = {}\n", inline(&scale));
    if first.shape[0] > 1 {
        let [x, y, z] = first.geometry.spacing;
        text += "# Resample all cases to this spacing along width, height, depth, in millimeters.\n";
        text += &format!("# spacing = [{x:?}, {y:?}, {z:?}]\n");
    }
    if first.mask.is_some() {
        text += "# Cut cases to the box of their region of interest.\ncrop_to_mask = false\n";
    }
    text + &split_section(dataset, first)
}

fn split_section(dataset: &Dataset, first: &Case) -> String {
    let count = |split| dataset.entries.iter().filter(|entry| entry.split == Some(split)).count();
    let (mut given, mut hash) = (String::new(), "");
    if dataset.entries.iter().all(|entry| entry.split.is_some()) {
        let [train, validation, test] = Split::ALL.map(count);
        given = format!(
            "# Use the parts of the dataset itself: {train} for training, {validation} for validation, {test} for test.\n\
             given = true\n"
        );
        hash = "# ";
    }
    // The ratios of the paper's experiments in 2D and 3D.
    let Ratios([train, validation, test]) = if first.shape[0] == 1 { Ratios::LIDC } else { Ratios::BRATS };
    format!(
        "\n[data.split]\n\
         # The file that keeps the split: read if it is there, written if not.\n\
         file = \"split.toml\"\n\
         {given}\
         # Shares of training, validation and test; patients or series stay together.\n\
         {hash}ratios = [{train}, {validation}, {test}]\n\
         # The same seed always gives the same split.\n\
         {hash}seed = 0\n\
         # For cross-validation: a number of folds, and which of them is for validation.\n\
         # folds = 5\n\
         # fold = 0\n"
    )
}

/// The sections `[batches]` and `[augmentation]` that suit a dataset.
pub fn batch_sections(dataset: &Dataset, first: &Case) -> String {
    let (batch_size, preset) = if first.shape[0] == 1 { (8, "lidc") } else { (2, "brats") };
    format!(
        "[batches]\n\
         batch_size = {batch_size}\n\
         {}\
         # Which rater is the target of a step ({}): all, random or fixed.\n\
         patch.rater = {{ kind = \"all\" }}\n\
         \n[augmentation]\n\
         # Random changes of patches: none, lidc (flips, rotation, scaling), lidc-as-coded or brats.\n\
         preset = \"{preset}\"\n",
        patch_sampler(dataset, first),
        counted(first.raters.len(), "rater")
    )
}

/// The patch sampler: whole images if they are small and of one size, else random patches.
fn patch_sampler(dataset: &Dataset, first: &Case) -> String {
    let [d, h, w] = first.shape;
    let comment = "# Patches around lesions and background, in turn; sizes are depth, height, width.";
    if d > 1 {
        let size = first.shape.map(|n| if n >= LONGEST_3D { LONGEST_3D } else { n.next_multiple_of(8) });
        return format!(
            "{comment} Larger ones see\n# more and cost more: on a GPU, 96 or 128.\n\
             patch.sampler = {{ kind = \"random\", size = {size:?}, foreground_probability = 0.5 }}\n"
        );
    }
    let sizes = sizes(dataset, first);
    let largest = sizes.iter().fold([h, w], |[a, b], [_, h, w]| [a.max(*h), b.max(*w)]);
    if sizes.iter().all(|size| *size == first.shape) && largest.iter().all(|n| *n <= LONGEST_2D) {
        return "# Whole images.\npatch.sampler = { kind = \"whole\" }\n".to_owned();
    }
    let [h, w] = largest.map(|n| n.min(LONGEST_2D));
    format!(
        "{comment}\npatch.sampler = {{ kind = \"random\", size = [1, {h}, {w}], foreground_probability = 0.5 }}\n"
    )
}

/// The sizes of some cases, spread over the dataset. What cannot be read is reported by `ssn check`.
fn sizes(dataset: &Dataset, first: &Case) -> Vec<[usize; 3]> {
    let count = dataset.entries.len();
    let step = count.div_ceil(LOOKED_AT).max(1);
    let others = (0..count).step_by(step).filter_map(|index| Some(dataset.load_raw(index).ok()?.shape));
    others.chain([first.shape]).collect()
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

/// Which file of a case is which channel, rater and mask; empty if all cases are in one file.
fn files_of(dataset: &Dataset, case: &Case) -> String {
    let entry = dataset.entries.iter().find(|entry| entry.id == case.id);
    let Some(CaseEntry { files, packed: None, .. }) = entry else { return String::new() };
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
            RaterMaps::Labels(path) => rows.push((dataset.rater_name(rater.number), path)),
            RaterMaps::Masks(masks) => rows.extend(masks.iter().map(|(class, path)| {
                let class = dataset.classes.get(usize::from(*class)).map_or("", String::as_str);
                (format!("{}, {class}", dataset.rater_name(rater.number)), path)
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
