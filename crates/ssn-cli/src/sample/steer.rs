//! What the flags ask of a case's noise, in the terms of its distribution.

use ssn_core::Steering;
use ssn_eval::{Found, Kind};

use crate::args::SampleArgs;
use crate::exit::{Exit, Failure};
use crate::predictions::unknown_name;

/// The steering of one case.
///
/// # Errors
/// A sentence for a class or a column that the distribution does not have, and where there is no noise that could be steered.
pub(super) fn steering(args: &SampleArgs, case: &Found) -> Result<Steering, Failure> {
    let path = case.path.display();
    let unsteerable = match case.header.description.kind {
        Kind::Stochastic => None,
        Kind::Deterministic => Some("a deterministic network, which has no noise that could be steered"),
        Kind::Sampled => Some("a network that draws samples itself, which cannot be steered"),
    };
    if let Some(network) = unsteerable.filter(|_| args.steers()) {
        let message = format!(
            "{path} is of {network}; leave out --temperature, --class-scale, --mode-weight and --no-diagonal-noise"
        );
        return Err(Failure::new(Exit::Usage, message));
    }
    let (classes, rank) = (case.header.classes, case.header.rank);
    // A single class that is off or on has one row of logits, that of `on`.
    let names = &case.header.description.classes;
    let names = &names[names.len() - classes..];
    let mut class_scales = vec![1.0; classes];
    for (name, scale) in &args.class_scale {
        let Some(class) = names.iter().position(|known| known == name) else {
            let message = format!("--class-scale: {}", unknown_name(name, names, &case.path));
            return Err(Failure::new(Exit::Usage, message));
        };
        class_scales[class] = *scale;
    }
    let mut mode_weights = vec![1.0; rank];
    for &(column, weight) in &args.mode_weight {
        let Some(place) = mode_weights.get_mut(column) else {
            let known = match rank {
                0 => "has none".to_owned(),
                _ => format!("has 0 to {}", rank - 1),
            };
            let message = format!("--mode-weight: there is no column {column}: the factor in {path} {known}");
            return Err(Failure::new(Exit::Usage, message));
        };
        *place = weight;
    }
    let temperature = args.temperature.unwrap_or(1.0);
    Ok(Steering { temperature, class_scales, mode_weights, diagonal_noise: !args.no_diagonal_noise })
}
