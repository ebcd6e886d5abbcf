//! The header of a package.

use std::collections::BTreeMap;

use serde::Serialize;
use ssn_eval::{Kind, ModelId, Region};

use super::sections::{Place, Section, places};
use crate::case::{Packing, ViewCase};
use crate::image::Range;
use crate::keep::{CLASS_SCALE, KeptVoxels, MODE_WEIGHT, RULE, TEMPERATURE};

/// The version of the format.
const VERSION: u32 = 1;

/// What a package says about itself.
#[derive(Debug, Serialize)]
pub(super) struct Header<'a> {
    version: u32,
    name: &'a str,
    kind: Kind,
    model: &'a ModelId,
    /// The names of the labels.
    classes: &'a [String],
    /// Rows of logits; 1 where a single class is off or on.
    logits: usize,
    rank: usize,
    size: [usize; 3],
    /// Along d, h, w.
    spacing: [f64; 3],
    /// (i, j, k, 1) to RAS+.
    affine: [[f64; 4]; 3],
    region: Region,
    shown: Region,
    frozen: Frozen,
    /// As text: JavaScript has no whole numbers of 64 bits.
    seed: String,
    channels: Vec<Channel<'a>>,
    /// Whether the channels are red, green and blue.
    color: bool,
    raters: Vec<&'a str>,
    modes: Vec<Mode>,
    sections: BTreeMap<&'static str, Place>,
}

#[derive(Debug, Serialize)]
struct Frozen {
    voxels: usize,
    rule: &'static str,
    limit: Limit,
}

#[derive(Debug, Serialize)]
struct Limit {
    temperature: f64,
    class: f64,
    mode: f64,
}

#[derive(Debug, Serialize)]
struct Channel<'a> {
    name: &'a str,
    low: f32,
    high: f32,
}

#[derive(Debug, Serialize)]
struct Mode {
    share: f64,
}

impl<'a> Header<'a> {
    pub(super) fn new(
        case: &'a ViewCase,
        packing: &Packing,
        kept: &KeptVoxels,
        shown: Region,
        ranges: &[Range],
        shares: Vec<f64>,
        sections: &[Section<'_>],
    ) -> Self {
        let (about, distribution) = (case.file.description(), case.file.distribution());
        let [x, y, z] = about.geometry.spacing;
        let names = case.picture.as_ref().map_or(&[][..], |picture| &picture.channels);
        let channels: Vec<Channel<'a>> = names
            .iter()
            .zip(ranges)
            .map(|(name, &Range { low, high })| Channel { name, low, high })
            .collect();
        let limit = Limit { temperature: TEMPERATURE, class: CLASS_SCALE, mode: MODE_WEIGHT };
        Self {
            version: VERSION,
            name: &about.case,
            kind: about.kind,
            model: &about.model,
            classes: &about.classes,
            logits: distribution.classes(),
            rank: distribution.rank(),
            size: about.size,
            spacing: [z, y, x],
            affine: about.geometry.affine(),
            region: about.region,
            shown,
            frozen: Frozen { voxels: kept.frozen, rule: RULE, limit },
            seed: packing.seed.to_string(),
            color: case.picture.as_ref().is_some_and(|picture| picture.color && channels.len() == 3),
            channels,
            raters: case.raters.iter().map(|rater| rater.name.as_str()).collect(),
            modes: shares.into_iter().map(|share| Mode { share }).collect(),
            sections: places(sections),
        }
    }
}
