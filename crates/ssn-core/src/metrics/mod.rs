//! Scores that compare segmentations with raters.
//!
//! Every score states its formula and what it does where a mask is empty; where the field has more than one
//! convention the caller chooses by an enum, and a score that has no value is `None`, never 0 or NaN. Inputs
//! are checked label maps of equal size; nothing here knows files, networks or how samples were drawn.
//!
//! | score | formula | where a mask is empty |
//! |---|---|---|
//! | Dice, IoU ([`Overlap`]) | 2\|A∩B\| / (\|A\|+\|B\|), \|A∩B\| / \|A∪B\| | both: [`BothEmpty`]; one: 0 |
//! | DSC ([`PooledDice`]) | Dice per rater × slice, pooled | both: skipped; one: 0 |
//! | DSC_nod ([`PooledDice`]) | as DSC, where the rater marked something | rater empty: skipped |
//! | distance d ([`foreground_distance`]) | 1 − mean foreground IoU | class absent in both: IoU 1 |
//! | GED² ([`ged()`]) | 2E d(s,y) − E d(s,s′) − E d(y,y′) | by d |
//! | diversity ([`Ged`]) | E d(s,s′) of samples, E d(y,y′) of raters | by d; self-pairs: [`PairStatistic`] |
//! | HM-IoU ([`hm_iou`]) | mean 1 − d of the best matching, counts repeated to their lcm | by d |
//! | max-Dice ([`max_dice`]) | mean over raters of the best Dice of a sample | both: [`BothEmpty`] |
//! | variance NCC ([`variance_ncc`]) | correlation of two variance maps | constant map: `None` |
//! | S_NCC ([`agreement`]) | correlation of cross-entropy maps, mean over raters | constant map: skipped |
//! | ECE ([`reliability`]) | Σ n_b/n · \|frequency − confidence\| over equal bins | empty bin: no weight |
//! | Brier ([`brier`]) | mean over voxels and raters of Σ_c (p_c − [y = c])² | not affected |
//! | HD, HD95, ASSD, NSD ([`SurfaceDistances`]) | between surface voxels, with spacing | [`EmptyPolicy`] |
//! | samples above the prediction ([`SampleDice`]) | share with a strictly larger Dice | [`BothEmpty`] |
//! | mean ± standard error ([`Summary`]) | over the values that are defined | skipped and counted |

mod check;

pub mod aggregate;
pub mod agreement;
pub mod calibration;
pub mod distance;
pub mod ged;
pub mod group;
pub mod matching;
pub mod overlap;
pub mod pairwise;
pub mod samples;
pub mod surface;

pub use aggregate::{Bootstrap, Interval, Summary, quantile};
pub use agreement::{LabelFrequencies, ProbabilityMaps, normalized_cross_correlation, variance_ncc};
pub use calibration::{Calibrated, Reliability, ReliabilityBin, brier, foreground_ece, reliability};
pub use distance::{Grid, squared_distance_transform};
pub use ged::{Ged, PairStatistic, ged};
pub use group::ClassGroup;
pub use matching::{Assignment, hm_iou, hungarian, max_dice};
pub use overlap::{BothEmpty, Overlap, PooledDice, overlaps};
pub use pairwise::{PairwiseDistances, foreground_distance};
pub use samples::{SampleDice, volumes};
pub use surface::{BothSurfacesEmpty, EmptyPolicy, Hd95, OneSurfaceEmpty, SurfaceDistances, surface_voxels};
