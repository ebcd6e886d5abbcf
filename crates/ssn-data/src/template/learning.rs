//! The part of a config that is about learning: what suits a dataset, and what people change first.

use std::fmt::{Result, Write};

use super::raters;
use crate::case::Case;
use crate::dataset::Dataset;

/// Cases that are looked at to see whether all images have one size.
const LOOKED_AT: usize = 20;
/// The longest side of 2D patches.
const LONGEST_2D: usize = 512;
/// The longest side of 3D patches: three levels of a U-Net on a processor in seconds per step.
const LONGEST_3D: usize = 64;

/// The head of the file: what to do with it, and the preset.
pub fn write_preset(text: &mut String, first: &Case, preset: &str) -> Result {
    writeln!(
        text,
        "# Check the dataset with `ssn check`, train with `ssn train`, each with this file's name.\n"
    )?;
    writeln!(
        text,
        "# The settings that this file does not name: general, or the paper's experiment, {}.",
        { if first.shape[0] == 1 { "lidc or lidc-as-coded" } else { "brats or brats-60mm" } }
    )?;
    writeln!(text, "preset = \"{preset}\"\n")
}

/// Batches and augmentation for the general preset, and what people change first in the rest.
pub fn general(dataset: &Dataset, first: &Case) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut text, dataset, first);
    text
}

fn write(text: &mut String, dataset: &Dataset, first: &Case) -> Result {
    let flat = first.shape[0] == 1;
    writeln!(text, "\n# What follows suits the preset above; with another one, remove it.")?;
    writeln!(text, "[batches]")?;
    writeln!(text, "batch_size = {}", if flat { 8 } else { 2 })?;
    write_place(text, dataset, first)?;
    writeln!(text, "# Which rater is the target of a step ({}): random, fixed or all.", raters(first))?;
    writeln!(text, "patch.rater = {{ kind = \"random\" }}")?;
    writeln!(text, "\n[augmentation]")?;
    writeln!(
        text,
        "# Random changes of patches: none, lidc (flips, rotation, scaling), lidc-as-coded or brats."
    )?;
    writeln!(text, "preset = \"{}\"", if flat { "lidc" } else { "brats" })?;
    writeln!(
        text,
        "\n# The network is planned for the patches; `width` is the number of channels of its finest level."
    )?;
    writeln!(text, "[model]\n# plan = {{ width = 32 }}")?;
    writeln!(text, "# stochastic with a rank (0: independent voxels), or \"deterministic\".")?;
    writeln!(text, "head = {{ stochastic = {{ rank = 10, initial_scale = 0.1 }} }}")?;
    writeln!(text, "\n[training]\nsteps = {}\nseed = 0", if flat { 20_000 } else { 40_000 })?;
    writeln!(text, "# Steps between validations, each with GED² and Dice; the best checkpoint is kept.")?;
    writeln!(text, "validate_every = {}", if flat { 1_000 } else { 2_000 })
}

/// Where patches are cut: everywhere at once if images are small and of one size.
fn write_place(text: &mut String, dataset: &Dataset, first: &Case) -> Result {
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
            "patch.place = {{ kind = \"random\", size = {size:?}, lesion_probability = 0.5 }}"
        );
    }
    let sizes = sizes(dataset, first);
    let largest = sizes.iter().fold([h, w], |[a, b], [_, h, w]| [a.max(*h), b.max(*w)]);
    if sizes.iter().all(|size| *size == first.shape) && largest.iter().all(|n| *n <= LONGEST_2D) {
        writeln!(text, "# Whole images.")?;
        return writeln!(text, "patch.place = {{ kind = \"whole\" }}");
    }
    let [h, w] = largest.map(|n| n.min(LONGEST_2D));
    writeln!(text, "# Patches around lesions and background, in turn; sizes are depth, height, width.")?;
    writeln!(text, "patch.place = {{ kind = \"random\", size = [1, {h}, {w}], lesion_probability = 0.5 }}")
}

/// The sizes of some cases, spread over the dataset. What cannot be read is for `ssn check` to tell.
fn sizes(dataset: &Dataset, first: &Case) -> Vec<[usize; 3]> {
    let count = dataset.entries.len();
    let step = count.div_ceil(LOOKED_AT).max(1);
    let others = (0..count).step_by(step).filter_map(|index| Some(dataset.load_raw(index).ok()?.shape));
    others.chain([first.shape]).collect()
}
