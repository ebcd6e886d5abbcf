//! The rows of [`SCORES`].

use ssn_core::metrics::{
    LabelFrequencies, Overlap, better_than, brier, crps_of_raters, crps_of_samples, mask_dice, quantile,
    variance_ncc,
};
use ssn_io::Result;

use super::Quantity::{Length, Number, Percent, Score, Volume, VolumeError};
use super::{
    Compute, Computed, DSC, DSC_NOD, ECE, EMPTY_SAMPLES, EXCESS_GED2, FOREGROUND_ECE, GED2, HM_IOU, Quantity,
    RATER_DIVERSITY, SAMPLE_DIVERSITY, ScoreDef, Values, case, mask, score,
};
use crate::challenges::{MMIS, PDACVI, QUBIQ, ece_around_marks, image_ece};
use crate::inputs::{CaseInput, MaskInput, SurfaceScores, VoxelInput};
use crate::means::{mean, of_different};
use ssn_args::ScoreSet::{Consensus, Curvas, Mmis, Pdacvi, Qubiq};

fn one(value: Option<f64>) -> Computed {
    each(vec![value])
}

fn each(each: Vec<Option<f64>>) -> Computed {
    Ok(Some(Values { each, one_empty: 0 }))
}

fn known(values: &[f64]) -> Computed {
    each(values.iter().copied().map(Some).collect())
}

/// Computes a value for each rater from the Dice of the samples, `[m]`, where it has a value.
fn of_sample_dice(mask: &MaskInput<'_>, value: impl Fn(&[f64]) -> Result<Option<f64>>) -> Computed {
    let defined = |dice: &Vec<Option<f64>>| value(&dice.iter().copied().flatten().collect::<Vec<_>>());
    each(mask.sample_dice()?.iter().map(defined).collect::<Result<_>>()?)
}

fn surface(scores: Option<&[SurfaceScores]>, value: fn(&SurfaceScores) -> Option<f64>) -> Computed {
    scores.map_or(Ok(None), |scores| each(scores.iter().map(value).collect()))
}

/// Reads a distance between surfaces, with the number of pairs that have none.
fn distance(scores: Option<&[SurfaceScores]>, value: fn(&SurfaceScores) -> Option<f64>) -> Computed {
    let one_empty = scores.unwrap_or_default().iter().map(|scores| scores.one_empty).sum();
    Ok(surface(scores, value)?.map(|values| Values { one_empty, ..values }))
}

fn soft_dice(mask: &MaskInput<'_>, thresholds: &[f64]) -> Computed {
    let Some(p) = mask.probabilities()? else { return one(None) };
    one(Some(mask.votes()?.soft_dice(p, thresholds)?))
}

/// GED² less what a perfect distribution would have: D · (1/m + 1/n) with m samples and n raters, where D is the mean distance of
/// two different raters. A deterministic network, with one sample, is a perfect one of m = ∞.
fn excess_ged2(case: &CaseInput<'_>) -> Computed {
    let (m, n) = (case.samples.len(), case.raters.len());
    let ged = case.ged(m)?;
    let inverse_m = if m > 1 { 1.0 / m as f64 } else { 0.0 };
    let of_raters = of_different(ged.rater_diversity, n);
    one(of_raters.map(|distance| ged.squared - distance * (inverse_m + 1.0 / n as f64)))
}

fn variances(voxels: &VoxelInput<'_>) -> Result<Option<f64>> {
    let Some(frequencies) = &voxels.likelihood.frequencies else { return Ok(None) };
    Ok(variance_ncc(frequencies, &LabelFrequencies::of(voxels.raters)?)?)
}

fn s_ncc(voxels: &VoxelInput<'_>) -> Result<Option<f64>> {
    let frequencies = voxels.likelihood.frequencies.as_ref();
    Ok(frequencies.map(|frequencies| frequencies.s_ncc(voxels.raters)).transpose()?.and_then(|s| s.mean))
}

const fn voxels(
    key: &'static str,
    title: &'static str,
    quantity: Quantity,
    compute: fn(&VoxelInput<'_>) -> Computed,
) -> ScoreDef {
    score(key, title, quantity, Compute::Voxels(compute))
}

/// All scores, in the order of tables.
pub static SCORES: &[ScoreDef] = &[
    score(GED2, "GED²{distance}, {n}", Score, Compute::Counts(|c, samples| Ok(c.ged(samples)?.squared)))
        .lower("GED²")
        .term("GED²")
        .heading("GED²")
        .listed("Squared generalized energy distance of all samples and the raters"),
    case(EXCESS_GED2, "excess GED²", Score, excess_ged2).lower("GED²").term("GED²"),
    case(SAMPLE_DIVERSITY, "diversity of samples", Score, |c| {
        one(Some(c.ged(c.samples.len())?.sample_diversity))
    })
    .like_raters()
    .heading("diversity")
    .listed("Mean distance between two samples"),
    case(RATER_DIVERSITY, "diversity of raters", Score, |c| {
        one(Some(c.ged(c.samples.len())?.rater_diversity))
    }),
    case("cross_distance", "distance of samples to raters", Score, |c| {
        one(Some(c.ged(c.samples.len())?.sample_rater_distance))
    })
    .lower("the distance of samples to raters")
    .not_in_cases(),
    case(HM_IOU, "HM-IoU, {n}", Score, |c| one(c.hm_iou()?)).higher("IoU").term("HM-IoU").heading("HM-IoU"),
    case("max_dice", "max-Dice", Score, |c| one(Some(c.dice()?.max_of_raters()))).higher("DSC"),
    case(EMPTY_SAMPLES, "nearly empty samples %", Percent, |c| one(c.empty_samples())),
    case("max_dice_of_samples", "max-Dice of samples", Score, |c| one(Some(c.dice()?.max_of_samples())))
        .higher("DSC")
        .of(&[Mmis]),
    case("matched_dice", "Dice_match", Score, |c| one(c.dice()?.matched())).higher("DSC").of(&[Mmis]),
    case("curvas_ece", "ECE of raters, 50 bins", Score, |c| one(image_ece(c)?))
        .lower("ECE")
        .term("ECE")
        .of(&[Curvas]),
    case("pdacvi_ece", "ECE around marks, 50 bins", Score, |c| one(ece_around_marks(c)?))
        .lower("ECE")
        .term("ECE")
        .of(&[Pdacvi]),
    voxels("variance_ncc", "NCC of variances", Score, |v| one(variances(v)?))
        .higher("NCC")
        .term("NCC of variances")
        .not_in_cases(),
    voxels("s_ncc", "S-NCC", Score, |v| one(s_ncc(v)?)).higher("NCC").term("S-NCC").not_in_cases(),
    voxels(ECE, "ECE", Score, |v| one(Some(v.reliability()?.ece().unwrap_or_default())))
        .lower("ECE")
        .term("ECE"),
    voxels(FOREGROUND_ECE, "ECE of the foreground", Score, |v| {
        one(Some(v.reliability()?.foreground_ece().unwrap_or_default()))
    })
    .lower("ECE")
    .term("ECE")
    .not_in_cases(),
    voxels("brier", "Brier score", Score, |v| one(Some(brier(&v.likelihood.probabilities, v.raters)?)))
        .lower("Brier score"),
    voxels("log_likelihood", "log-likelihood of raters", Number, |v| known(&v.likelihood.log_likelihoods))
        .for_each_rater()
        .higher("log-likelihood"),
    voxels("effective_samples", "effective sample size (ESS)", Number, |v| {
        known(&v.likelihood.effective_samples)
    })
    .for_each_rater()
    .term("ESS")
    .not_in_cases(),
    mask(DSC, "DSC %", Percent, |m| each(m.overlaps()?.iter().map(Overlap::dice).collect()))
        .higher("DSC")
        .in_masks()
        .heading("DSC %")
        .listed("Dice of the prediction with the raters, their mean, of all classes together"),
    mask(DSC_NOD, "DSC_nod %", Percent, |m| {
        each(m.overlaps()?.iter().map(Overlap::dice_where_marked).collect())
    })
    .higher("DSC")
    .term("DSC_nod")
    .not_in_cases()
    .heading("DSC_nod %"),
    mask("sample_dsc", "DSC of samples %", Percent, |m| {
        of_sample_dice(m, |dice| Ok(mean(dice.iter().copied())))
    })
    .higher("DSC")
    .in_masks(),
    mask("sample_dsc_05", "… 5 % quantile", Percent, |m| {
        of_sample_dice(m, |dice| Ok(quantile(dice, 0.05)?))
    })
    .alone("DSC of samples, 5 % quantile")
    .higher("DSC")
    .not_in_cases(),
    mask("sample_dsc_50", "… median", Percent, |m| of_sample_dice(m, |dice| Ok(quantile(dice, 0.5)?)))
        .alone("DSC of samples, median")
        .higher("DSC")
        .not_in_cases(),
    mask("sample_dsc_95", "… 95 % quantile", Percent, |m| {
        of_sample_dice(m, |dice| Ok(quantile(dice, 0.95)?))
    })
    .alone("DSC of samples, 95 % quantile")
    .higher("DSC")
    .in_masks(),
    mask("better_than_prediction", "samples above the prediction %", Percent, |m| {
        let pairs = m.overlaps()?.iter().zip(m.sample_dice()?);
        each(pairs.map(|(prediction, samples)| better_than(prediction.dice(), samples)).collect())
    })
    .in_masks(),
    mask("hd95", "HD95, {length}", Length, |m| distance(m.surfaces()?, |s| s.hd95)).lower("HD95").in_masks(),
    mask("assd", "ASSD, {length}", Length, |m| distance(m.surfaces()?, |s| s.assd))
        .lower("ASSD")
        .not_in_cases(),
    mask("nsd", "surface Dice %", Percent, |m| surface(m.surfaces()?, |s| s.nsd))
        .higher("surface Dice")
        .in_masks(),
    mask("sample_hd95", "HD95 of samples, {length}", Length, |m| distance(m.sample_surfaces()?, |s| s.hd95))
        .lower("HD95"),
    mask("sample_assd", "ASSD of samples, {length}", Length, |m| distance(m.sample_surfaces()?, |s| s.assd))
        .lower("ASSD"),
    mask("sample_nsd", "surface Dice of samples %", Percent, |m| surface(m.sample_surfaces()?, |s| s.nsd))
        .higher("surface Dice"),
    mask("consensus_dice", "consensus Dice %", Percent, |m| {
        one(m.votes()?.consensus_dice(m.predicted()?)?)
    })
    .once()
    .higher("DSC")
    .term("consensus Dice")
    .of(&[Curvas]),
    mask("confidence", "confidence %", Percent, |m| {
        let Some(p) = m.probabilities()? else { return one(None) };
        one(m.votes()?.confidence(p)?)
    })
    .once()
    .higher("")
    .of(&[Curvas]),
    mask("soft_dice_qubiq", "soft Dice, QUBIQ %", Percent, |m| soft_dice(m, &QUBIQ))
        .once()
        .higher("DSC")
        .term("soft Dice")
        .of(&[Qubiq]),
    mask("soft_dice_pdacvi", "soft Dice, PDACVI %", Percent, |m| soft_dice(m, &PDACVI))
        .once()
        .higher("DSC")
        .term("soft Dice")
        .of(&[Pdacvi]),
    mask("soft_dice_mmis", "soft Dice, MMIS %", Percent, |m| soft_dice(m, &MMIS))
        .once()
        .higher("DSC")
        .term("soft Dice")
        .of(&[Mmis]),
    // The raters' volumes as a normal distribution, at Σ p.
    mask("volume_crps", "volume CRPS, {volume}", VolumeError, |m| {
        let Some(p) = m.probabilities()? else { return one(None) };
        let volume = p.iter().map(|&p| f64::from(p)).sum::<f64>() * m.case.maps.voxel_volume();
        one(Some(crps_of_raters(&m.volumes().raters, volume)?))
    })
    .once()
    .lower("")
    .term("CRPS")
    .of(&[Curvas, Pdacvi]),
    mask("sample_volume_crps", "volume CRPS of samples, {volume}", VolumeError, |m| {
        let volumes = m.volumes();
        one(Some(crps_of_samples(&volumes.samples, &volumes.raters)?))
    })
    .once()
    .lower("")
    .term("CRPS")
    .of(&[Curvas, Pdacvi]),
    mask("majority_dice", "Dice with the majority %", Percent, |m| {
        one(mask_dice(m.predicted()?, &m.votes()?.majority()))
    })
    .once()
    .higher("DSC")
    .of(&[Consensus]),
    mask("staple_dice", "Dice with STAPLE %", Percent, |m| one(mask_dice(m.predicted()?, &m.staple()?)))
        .once()
        .higher("DSC")
        .of(&[Consensus]),
    mask("volume", "volume of the prediction, {volume}", Volume, |m| one(Some(m.volumes().prediction)))
        .once(),
    mask("sample_volume_05", "… of samples, 5 % quantile", Volume, |m| {
        one(quantile(&m.volumes().samples, 0.05)?)
    })
    .alone("volume of samples, 5 % quantile, {volume}")
    .once()
    .not_in_cases(),
    mask("sample_volume_50", "… of samples, median", Volume, |m| one(quantile(&m.volumes().samples, 0.5)?))
        .alone("volume of samples, median, {volume}")
        .once(),
    mask("sample_volume_95", "… of samples, 95 % quantile", Volume, |m| {
        one(quantile(&m.volumes().samples, 0.95)?)
    })
    .alone("volume of samples, 95 % quantile, {volume}")
    .once()
    .not_in_cases(),
    mask("rater_volume", "… of raters", Volume, |m| known(&m.volumes().raters))
        .alone("volume of raters, {volume}"),
    mask("volume_difference", "volume difference, {volume}", VolumeError, |m| {
        let volumes = m.volumes();
        each(volumes.raters.iter().map(|rater| Some((volumes.prediction - rater).abs())).collect())
    })
    .lower("")
    .in_masks(),
];
