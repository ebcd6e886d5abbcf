//! What moves with a voxel: the correlation of every logit with a chosen one.

use crate::distribution::LowRankNormal;
use crate::error::{CoreError, Result};

/// corr(η_a, η_b) for the chosen logit a and every logit b, from the parameters alone.
///
/// A logit without variance has correlation 0 with all others. The chosen logit has 1 with itself.
///
/// # Shapes
/// Gives `[c, v]`.
pub fn correlation_with(distribution: &LowRankNormal, class: usize, voxel: usize) -> Result<Vec<f32>> {
    let (c, v, r) = (distribution.classes(), distribution.voxels(), distribution.rank());
    if class >= c {
        let value = class as f64;
        return Err(CoreError::OutOfRange { field: "class", index: 0, value, expected: "a class" });
    }
    if voxel >= v {
        let value = voxel as f64;
        return Err(CoreError::OutOfRange { field: "voxel", index: 0, value, expected: "a voxel" });
    }
    let (n, chosen) = (c * v, class * v + voxel);
    let mut covariance = vec![0f64; n];
    let mut variance: Vec<f64> = (0..n).map(|i| f64::from(distribution.diagonal().get(i))).collect();
    let mut column = vec![0f32; n];
    for q in 0..r {
        distribution.factor().read(q * n, &mut column);
        let weight = f64::from(column[chosen]);
        for ((sum, square), &x) in covariance.iter_mut().zip(&mut variance).zip(&column) {
            *sum += weight * f64::from(x);
            *square += f64::from(x) * f64::from(x);
        }
    }
    covariance[chosen] = variance[chosen];
    let own = variance[chosen];
    Ok(covariance
        .iter()
        .zip(&variance)
        .map(|(&c, &v)| if own > 0.0 && v > 0.0 { (c / (own * v).sqrt()) as f32 } else { 0.0 })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_covariance_over_the_deviations() {
        let factor = vec![1.0f32, 2.0, 0.0, -1.0, 0.5, 0.5, 0.0, 3.0];
        let d = LowRankNormal::new(2, 2, 2, vec![0f32; 4], vec![0.5f32, 0.25, 0.0, 1.0], factor).unwrap();
        let correlation = correlation_with(&d, 1, 1).unwrap();
        for (i, &found) in correlation.iter().enumerate() {
            let (variance, own) = (d.covariance(i, i), d.covariance(3, 3));
            let expected = if variance > 0.0 { d.covariance(i, 3) / (variance * own).sqrt() } else { 0.0 };
            assert!((f64::from(found) - expected).abs() < 1e-6);
        }
        assert_eq!(correlation[3], 1.0);
        assert_eq!(correlation[2], 0.0, "no variance, no correlation");
        assert!(correlation_with(&d, 2, 0).is_err() && correlation_with(&d, 0, 2).is_err());
    }
}
