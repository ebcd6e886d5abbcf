//! Scores that compare segmentations with raters.
//!
//! Every score states its formula and what it does where a mask is empty; one that has no value is `None`, never 0 or
//! NaN. Nothing here knows files, networks or how samples were drawn.
//!
//! Functions over several maps fail with [`CoreError::Empty`](crate::CoreError::Empty) without any, with
//! [`CoreError::OutOfRange`](crate::CoreError::OutOfRange) where they differ in voxels or classes, and with
//! [`CoreError::Label`](crate::CoreError::Label) where they lack a class of the group.
//!
//! | score | formula | where a mask is empty |
//! |---|---|---|
//! | Dice ([`Overlap`]) | 2\|A∩B\| / (\|A\|+\|B\|) | both: `None`; one: 0 |
//! | DSC ([`Overlap::dice`]) | Dice per rater × slice, pooled | both: skipped; one: 0 |
//! | DSC_nod ([`Overlap::dice_where_marked`]) | as DSC, where the rater marked something | rater empty: skipped |
//! | distance d ([`foreground_distance`]) | 1 − mean foreground IoU | class absent in both: IoU 1 |
//! | GED² ([`ged()`]) | 2E d(s,y) − E d(s,s′) − E d(y,y′) | by d |
//! | diversity ([`Ged`]) | E d(s,s′) of samples, E d(y,y′) of raters | by d; self-pairs count 0 |
//! | HM-IoU ([`PairwiseDistances::hm_iou`]) | mean 1 − d of the best matching, counts repeated to their lcm | by d |
//! | Dice_max, Dice_match ([`PairwiseDice`]) | best Dice of each rater or sample; of a one-to-one matching | both: 1 |
//! | consensus Dice, confidence ([`RaterVotes`]) | against the voxels that all raters mark, or none | nothing in common: `None` |
//! | soft Dice ([`RaterVotes::soft_dice`]) | mean over thresholds t of Dice(p > t, ȳ > t) | both: 1 |
//! | volume CRPS ([`crps_of_raters`], [`crps_of_samples`]) | of the raters' normal, or of samples | not affected |
//! | variance NCC ([`variance_ncc`]) | correlation of two variance maps | constant map: `None` |
//! | S_NCC ([`LabelFrequencies::s_ncc`]) | correlation of cross-entropy maps, mean over raters | constant map: skipped |
//! | ECE ([`ece`]) | Σ n_b/n · \|frequency − confidence\| over equal bins | empty bin: no weight |
//! | Brier ([`brier`]) | mean over voxels and raters of Σ_c (p_c − [y = c])² | not affected |
//! | HD95, ASSD, NSD ([`SurfaceDistances`]) | between surface voxels, with spacing | both: `None`; one: NSD 0, the others `None` |
//! | samples above the prediction ([`better_than`]) | share with a strictly larger Dice | both: skipped |
//! | mean ± standard error ([`Summary`]) | over the values that are defined, clustered by case | skipped and counted |

mod aggregate;
mod agreement;
mod calibration;
mod check;
mod clusters;
mod consensus;
mod ged;
mod matching;
mod overlap;
mod surface;
mod volumes;

pub use aggregate::{Summary, bootstrap_interval, quantile, quantile_of_sorted};
pub use agreement::{LabelFrequencies, most_frequent, variance_ncc};
pub use calibration::{Calibrated, CalibrationBin, MAX_BINS, brier, ece, ece_of_bins, reliability};
pub use clusters::SampleClusters;
pub use consensus::{RaterVotes, mask_dice, staple};
pub use ged::{Distance, Ged, PairwiseDistances, foreground_distance, ged};
pub use matching::{MAX_MATCHED, PairwiseDice, matched_pairs};
pub use overlap::{ClassGroup, Overlap, better_than};
pub use surface::{SurfaceDistances, squared_distance_transform};
pub use volumes::{crps_of_raters, crps_of_samples};
