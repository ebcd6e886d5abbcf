//! The continuous ranked probability score of volumes.

use crate::{CoreError, Result};

/// The CRPS of the normal distribution of raters' volumes at a predicted volume v (CURVAS): with the raters' mean μ and
/// population deviation σ, ∫ (Φ((x − μ)/σ) − 1[x ≥ v])² dx = σ (z (2Φ(z) − 1) + 2φ(z) − 1/√π), z = (v − μ)/σ; |v − μ| where
/// σ = 0.
///
/// # Errors
/// Without a rater, and for a volume that is not finite.
pub fn crps_of_raters(raters: &[f64], predicted: f64) -> Result<f64> {
    check("raters", raters)?;
    check("predicted", &[predicted])?;
    let n = raters.len() as f64;
    let mean = raters.iter().sum::<f64>() / n;
    let deviation = (raters.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
    if deviation == 0.0 {
        return Ok((predicted - mean).abs());
    }
    let z = (predicted - mean) / deviation;
    let normal = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
    // 2Φ(z) − 1.
    let centered = libm::erf(z * std::f64::consts::FRAC_1_SQRT_2);
    Ok(deviation * (z * centered + 2.0 * normal - 1.0 / std::f64::consts::PI.sqrt()))
}

/// The CRPS of the volumes of samples at those of the raters: the mean over raters y of E|x − y| − ½ E|x − x′| over samples
/// x, x′, all pairs included.
///
/// # Errors
/// Without a sample or a rater, and for volumes that are not finite.
pub fn crps_of_samples(samples: &[f64], raters: &[f64]) -> Result<f64> {
    check("samples", samples)?;
    check("raters", raters)?;
    let (m, n) = (samples.len() as f64, raters.len() as f64);
    let apart = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().map(|x| b.iter().map(|y| (x - y).abs()).sum::<f64>()).sum::<f64>()
    };
    Ok(apart(samples, raters) / (m * n) - 0.5 * apart(samples, samples) / (m * m))
}

fn check(field: &'static str, values: &[f64]) -> Result<()> {
    if values.is_empty() {
        return Err(CoreError::Empty { field });
    }
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(index) => Err(CoreError::NonFinite { field, index, value: values[index] }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_like_the_raters_are_best() {
        assert_eq!(crps_of_raters(&[2.0, 2.0], 5.0).unwrap(), 3.0);
        assert_eq!(crps_of_samples(&[2.0], &[5.0]).unwrap(), 3.0);
        assert_eq!(crps_of_samples(&[1.0, 3.0], &[1.0, 3.0]).unwrap(), 0.5);
        assert!(crps_of_samples(&[9.0, 11.0], &[1.0, 3.0]).unwrap() > 5.0);
        assert!(crps_of_samples(&[], &[1.0]).is_err() && crps_of_raters(&[1.0], f64::NAN).is_err());
    }
}
