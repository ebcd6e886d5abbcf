//! Eigenvectors of a small symmetric matrix, by Jacobi's rotations.

/// Sweeps over all pairs; convergence is quadratic, and ten suffice for any matrix of moderate size.
const MAX_SWEEPS: usize = 60;

/// Eigenvalues in descending order, each with its eigenvector of length 1.
///
/// # Shapes
/// `matrix` `[n, n]`, symmetric, row-major. The vectors are rows of `n` numbers.
pub(super) fn symmetric_eigen(matrix: &[f64], n: usize) -> Vec<(f64, Vec<f64>)> {
    let mut a = matrix.to_vec();
    let mut vectors: Vec<f64> = (0..n * n).map(|i| f64::from(u8::from(i / n == i % n))).collect();
    for _ in 0..MAX_SWEEPS {
        let off_diagonal: f64 = (0..n * n).filter(|i| i / n != i % n).map(|i| a[i] * a[i]).sum();
        let diagonal: f64 = (0..n).map(|i| a[i * n + i] * a[i * n + i]).sum();
        if off_diagonal <= diagonal * f64::EPSILON * f64::EPSILON {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                rotate(&mut a, &mut vectors, n, p, q);
            }
        }
    }
    let mut pairs: Vec<(f64, Vec<f64>)> =
        (0..n).map(|k| (a[k * n + k], (0..n).map(|i| vectors[i * n + k]).collect())).collect();
    pairs.sort_by(|x, y| y.0.total_cmp(&x.0));
    pairs
}

/// One rotation in the plane of `p` and `q` that brings the entry (p, q) to zero.
fn rotate(a: &mut [f64], vectors: &mut [f64], n: usize, p: usize, q: usize) {
    let entry = a[p * n + q];
    if entry == 0.0 {
        return;
    }
    // The smaller of the two angles: t = tan of it, from the usual stable root of t² + 2θt − 1 = 0.
    let theta = (a[q * n + q] - a[p * n + p]) / (2.0 * entry);
    let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let c = 1.0 / (t * t + 1.0).sqrt();
    let s = t * c;
    for k in 0..n {
        let (x, y) = (a[k * n + p], a[k * n + q]);
        a[k * n + p] = c * x - s * y;
        a[k * n + q] = s * x + c * y;
    }
    for k in 0..n {
        let (x, y) = (a[p * n + k], a[q * n + k]);
        a[p * n + k] = c * x - s * y;
        a[q * n + k] = s * x + c * y;
    }
    for k in 0..n {
        let (x, y) = (vectors[k * n + p], vectors[k * n + q]);
        vectors[k * n + p] = c * x - s * y;
        vectors[k * n + q] = s * x + c * y;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pairs_rebuild_the_matrix() {
        for n in [1usize, 2, 3, 10, 20] {
            let mut random = vec![0f32; n * n];
            crate::random::fill_normals(n as u64, 0, 0, &mut random);
            let b: Vec<f64> = random.iter().map(|&x| f64::from(x)).collect();
            let matrix: Vec<f64> =
                (0..n * n).map(|i| (0..n).map(|k| b[(i / n) * n + k] * b[(i % n) * n + k]).sum()).collect();
            let pairs = symmetric_eigen(&matrix, n);
            assert!(pairs.windows(2).all(|w| w[0].0 >= w[1].0));
            for i in 0..n * n {
                let rebuilt: f64 = pairs.iter().map(|(value, v)| value * v[i / n] * v[i % n]).sum();
                assert!((rebuilt - matrix[i]).abs() < 1e-12 * pairs[0].0.max(1.0), "{n}: {rebuilt}");
            }
        }
    }

    #[test]
    fn a_zero_matrix_and_equal_values_are_fine() {
        assert!(symmetric_eigen(&[0.0; 9], 3).iter().all(|(value, _)| *value == 0.0));
        let identity = symmetric_eigen(&[1.0, 0.0, 0.0, 1.0], 2);
        assert_eq!(identity.iter().map(|p| p.0).collect::<Vec<_>>(), [1.0, 1.0]);
    }
}
