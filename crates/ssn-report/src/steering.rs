//! What steering does to the samples of a case, and the modes of variation of its distribution.

use ssn_core::modes::{Modes, canonicalize};
use ssn_core::{LabelMap, LowRankNormal, Sampler, Steering};

use crate::figures::{PictureTile, SheetRow};
use crate::material::{LoadedCase, PredictionSet};
use crate::output::Drawn;
use crate::pictures::{drawing, truth, truth_name};
use crate::view::View;
use ssn_eval::predictions::PredictionKind;
use ssn_io::Result;

/// Scales of the noise of a class, as in the paper, and standard deviations of a mode.
const SCALES: [f32; 7] = [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0];
const TEMPERATURES: [f32; 7] = [0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0];
const MODES: usize = 3;

/// Why the samples of a network cannot be steered, if they cannot.
pub(crate) fn impossible(kind: PredictionKind) -> Option<&'static str> {
    match kind {
        PredictionKind::Stochastic => None,
        PredictionKind::Deterministic => Some(
            "This network is deterministic: it has no noise that could be steered, and no modes of variation. Its samples \
             draw every voxel by itself, which shows the grain that correlations take away.",
        ),
        PredictionKind::Sampled => Some(
            "This network draws samples itself: they cannot be steered, and there is no distribution whose modes could \
             be shown.",
        ),
    }
}

/// What all strips of a case share.
pub(crate) struct Steered<'a> {
    pub(crate) material: &'a PredictionSet,
    pub(crate) subject: &'a LoadedCase,
    pub(crate) view: &'a View,
    /// A sample that is typical, and one that differs much from the prediction.
    pub(crate) samples: [usize; 2],
}

impl Steered<'_> {
    /// The strips of a case whose distribution has noise.
    pub(crate) fn figures(&self) -> Result<Vec<Drawn>> {
        let mut drawn = vec![self.classes()?, self.temperatures()?];
        drawn.extend(self.modes()?);
        Ok(drawn)
    }

    /// The noise of each foreground class, scaled.
    fn classes(&self) -> Result<Drawn> {
        let classes = self.subject.file.distribution().classes();
        // A single class that is off or on has one row of logits, that of `on`.
        let names = self.material.classes();
        let names = &names[names.len() - classes..];
        let first = usize::from(classes > 1);
        let [_, sample] = self.samples;
        let mut strips = vec![];
        for (class, name) in names.iter().enumerate().skip(first) {
            let mut tiles = self.given();
            for scale in SCALES {
                let mut class_scales = vec![1.0; classes];
                class_scales[class] = scale;
                let steering = Steering { class_scales, ..Steering::default() };
                tiles.push(self.tile(&self.draw(&steering, sample)?, signed(scale)));
            }
            strips.push(SheetRow::labeled(name.as_str(), tiles));
        }
        let caption = format!(
            "The noise of one class times −3 to 3, that of the others as it is: sample {sample}, which is the picture at +1. At 0, \
             the class has its mean logits. The image and what raters marked stand on the left, where they are known."
        );
        Ok(self.drawn("classes", "Noise of a class, scaled", caption, strips))
    }

    /// What the strips of classes are compared with: the image, and what raters marked.
    fn given(&self) -> Vec<PictureTile> {
        let image = self.subject.image.as_deref().map(|image| PictureTile {
            picture: self.view.image(Some(image), self.view.slice),
            caption: "image".to_owned(),
        });
        let truth = truth(self.subject, self.view)
            .map(|picture| PictureTile { picture, caption: truth_name(self.subject) });
        image.into_iter().chain(truth).collect()
    }

    fn temperatures(&self) -> Result<Drawn> {
        let mut strips = vec![];
        for sample in self.samples {
            let mut tiles = vec![];
            for temperature in TEMPERATURES {
                let steering = Steering { temperature, ..Steering::default() };
                tiles.push(self.tile(&self.draw(&steering, sample)?, format!("T = {temperature}")));
            }
            strips.push(SheetRow::labeled(format!("sample {sample}"), tiles));
        }
        let caption = "All noise times a temperature T: 0 gives the mean prediction, 1 the sample, and more exaggerates.";
        Ok(self.drawn("temperature", "Temperature", caption.to_owned(), strips))
    }

    /// The modes that explain most; nothing for independent voxels.
    fn modes(&self) -> Result<Option<Drawn>> {
        let distribution = self.subject.file.distribution();
        if distribution.rank() == 0 {
            return Ok(None);
        }
        let modes = canonicalize(distribution)?;
        let (shares, total) = (modes.shares(), modes.shares_of_total());
        let mut strips = vec![];
        for (mode, share) in shares.iter().enumerate().take(MODES) {
            let mut tiles = vec![];
            for deviations in SCALES {
                let map = along(&modes, mode, deviations)?;
                tiles.push(self.tile(&self.subject.file.map_on_image(&map)?, signed(deviations) + " σ"));
            }
            strips.push(SheetRow::labeled(format!("mode {}\n{:.1} %", mode + 1, 100.0 * share), tiles));
        }
        let told: Vec<String> = shares.iter().map(|share| format!("{:.1}", 100.0 * share)).collect();
        let caption = format!(
            "The mean moved along one mode of variation by standard deviations, without any other noise. Of the variance that voxels \
             share, the modes explain {} %; {:.1} % of all variance is shared.",
            told.join(", "),
            100.0 * total.iter().sum::<f64>()
        );
        Ok(Some(self.drawn("modes", "Modes of variation", caption, strips)))
    }

    fn draw(&self, steering: &Steering, sample: usize) -> Result<LabelMap> {
        let numbers = sample as u64..sample as u64 + 1;
        Ok(self.material.draw(&self.subject.file, steering, numbers)?.remove(0))
    }

    fn tile(&self, map: &LabelMap, caption: String) -> PictureTile {
        PictureTile {
            picture: self.view.labels(self.subject.image.as_deref(), map, self.view.slice),
            caption,
        }
    }

    fn drawn(&self, name: &str, title: &str, caption: String, strips: Vec<SheetRow>) -> Drawn {
        let id = &self.subject.file.description().case;
        let title = format!("{title}, {id}");
        let svg = drawing(&title, &caption, self.material.classes(), strips);
        Drawn { name: format!("{id}-{name}"), svg, caption }
    }
}

/// The labels of the mean, moved along a mode.
fn along(modes: &Modes, mode: usize, deviations: f32) -> Result<LabelMap> {
    let distribution = &modes.distribution;
    let (c, v) = (distribution.classes(), distribution.voxels());
    let mut moved = vec![0f32; c * v];
    distribution.factor().read(mode * c * v, &mut moved);
    let mean = distribution.mean().to_f32();
    moved.iter_mut().zip(&mean).for_each(|(x, mean)| *x = mean + deviations * *x);
    let moved = LowRankNormal::new(c, v, 0, moved, vec![0f32; c * v], vec![0f32; 0])?;
    let mut maps = Sampler::new(&moved, 0, &Steering::default()).and_then(|sampler| sampler.labels(0..1))?;
    Ok(maps.remove(0))
}

/// A whole number with its sign.
fn signed(x: f32) -> String {
    match x {
        x if x < 0.0 => format!("−{}", -x),
        x if x > 0.0 => format!("+{x}"),
        _ => "0".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_moves_its_voxels_together() {
        // Two voxels of two classes; the second voxel switches with the mode, the first stays.
        let mean = vec![1.0f32, 0.5, 0.0, 0.0];
        let factor = vec![0.0f32, -1.0, 0.0, 1.0];
        let d = LowRankNormal::new(2, 2, 1, mean, vec![0f32; 4], factor).unwrap();
        let modes = canonicalize(&d).unwrap();
        let labels: Vec<Vec<u8>> =
            [-1.0, 0.0, 1.0].map(|x| along(&modes, 0, x).unwrap().into_labels()).to_vec();
        let switched = labels.iter().filter(|labels| **labels == [0, 1]).count();
        assert_eq!((labels[1].as_slice(), switched), (&[0, 0][..], 1));
        assert_eq!([-2.0, 0.0, 3.0].map(signed), ["−2", "0", "+3"]);
    }
}
