//! The arguments of `ssn sample`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ssn_eval::MapFormat;

/// Draws label maps from distribution files, each a function of the seed and its number, and steers them if asked to.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "η = μ + T·w_c·(Σ_q g_q·ε_q·P_q + √D·ε): T is --temperature, w_c a --class-scale, g_q a \
                  --mode-weight. The noise ε of a sample stays what it is, so that only what is steered changes.\n\
                  OUT/samples.csv has the volume of every class in every sample. Of a deterministic network, every \
                  voxel draws its label by itself, which shows the grain that the correlations take away. Of a network \
                  that draws samples itself, those in its file are written, whatever the seed."
)]
pub struct SampleArgs {
    /// Distribution files (.ssn.safetensors), or folders of them.
    #[arg(required = true, value_name = "FILE|FOLDER")]
    pub inputs: Vec<PathBuf>,

    /// The folder to write to.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,

    /// How many samples to draw of each case.
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub samples: u64,

    /// The seed; sample I of a seed is always the same.
    #[arg(long, default_value_t = 0, value_name = "S")]
    pub seed: u64,

    /// The number of the first sample.
    #[arg(long, default_value_t = 0, value_name = "I", value_parser = clap::value_parser!(u64).range(0..=1 << 53))]
    pub first: u64,

    /// The scale of all noise: 0 gives the prediction, more than 1 exaggerates.
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = weight)]
    pub temperature: Option<f32>,

    /// The scale of the noise of one class; -3 to 3 in the paper. May be repeated.
    #[arg(long, value_name = "NAME=X", value_parser = named_weight)]
    pub class_scale: Vec<(String, f32)>,

    /// The weight of one column of the factor, counted from 0: of `ssn predict`, the modes of variation, the strongest first. May
    /// be repeated.
    #[arg(long, value_name = "K=X", value_parser = numbered_weight)]
    pub mode_weight: Vec<(usize, f32)>,

    /// Leave out the independent noise of voxels.
    #[arg(long)]
    pub no_diagonal_noise: bool,

    /// Write the mean of the samples' probabilities, a channel per class.
    #[arg(long)]
    pub probabilities: bool,

    /// Write the entropy of these probabilities, 0 to 1.
    #[arg(long)]
    pub entropy: bool,

    /// The format of the files: nii.gz, nrrd, mha, or png for label maps of pictures.
    #[arg(long, default_value = "nii.gz", value_parser = format(), hide_possible_values = true)]
    pub format: MapFormat,

    /// Replace files that are there already.
    #[arg(long)]
    pub overwrite: bool,
}

fn format() -> impl TypedValueParser<Value = MapFormat> {
    let known = || [MapFormat::NiiGz, MapFormat::Nrrd, MapFormat::Mha, MapFormat::Png].into_iter();
    PossibleValuesParser::new(known().map(|format| &format.ending()[1..]))
        .map(move |name| known().find(|format| format.ending()[1..] == name).unwrap_or(MapFormat::NiiGz))
}

pub(super) fn weight(text: &str) -> Result<f32, String> {
    match text.trim().parse::<f32>() {
        Ok(x) if x.abs() <= ssn_core::steering::MAX_WEIGHT => Ok(x),
        _ => Err("expected a number between -1e6 and 1e6, such as 1.5".to_owned()),
    }
}

fn named_weight(text: &str) -> Result<(String, f32), String> {
    let (name, value) = text.rsplit_once('=').ok_or("expected NAME=X, such as oedema=2")?;
    Ok((name.trim().to_owned(), weight(value)?))
}

fn numbered_weight(text: &str) -> Result<(usize, f32), String> {
    let (number, value) = text.split_once('=').ok_or("expected K=X, such as 0=2")?;
    let number = number.trim().parse().map_err(|_| "expected K=X with a whole number K, such as 0=2")?;
    Ok((number, weight(value)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_have_a_name_and_a_range() {
        assert_eq!(named_weight("a=b=-2"), Ok(("a=b".to_owned(), -2.0)));
        assert_eq!(numbered_weight("3 = 0.5"), Ok((3, 0.5)));
        for wrong in ["x", "1e7", "nan", "inf", ""] {
            assert!(weight(wrong).is_err(), "{wrong}");
        }
        assert!(named_weight("a").is_err() && numbered_weight("a=1").is_err());
    }
}
