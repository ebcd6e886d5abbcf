//! The modes of variation of a distribution: its factor turned so that the columns are orthogonal and ordered by the
//! variance they explain.

use rayon::prelude::*;

use crate::distribution::LowRankNormal;
use crate::error::Result;
use crate::simd::vectorized;

/// Logits per unit of parallel work; fixed, so that sums do not depend on the thread count.
const CHUNK: usize = 1 << 14;

/// A distribution whose factor's columns are orthogonal and ordered.
#[derive(Debug, Clone, PartialEq)]
pub struct Modes {
    /// The same distribution with the turned factor. Its samples differ in number, not in law: sample `i` is
    /// another draw than sample `i` of the original.
    pub distribution: LowRankNormal,
    /// The variance of each mode, Σ over all logits, in descending order.
    pub variances: Vec<f64>,
    /// The variance of the diagonal noise, Σ over all logits.
    pub diagonal_variance: f64,
}

impl Modes {
    /// The share of each mode in the variance of the low-rank part; zeros where there is none.
    pub fn shares(&self) -> Vec<f64> {
        self.shares_of(self.variances.iter().sum())
    }

    /// The share of each mode in the whole variance, diagonal noise included; zeros where there is none.
    pub fn shares_of_total(&self) -> Vec<f64> {
        self.shares_of(self.variances.iter().sum::<f64>() + self.diagonal_variance)
    }

    fn shares_of(&self, total: f64) -> Vec<f64> {
        self.variances.iter().map(|x| if total > 0.0 { x / total } else { 0.0 }).collect()
    }
}

/// Turns the factor by the eigenvectors of its Gram matrix: P becomes P·V with PᵀP = V Λ Vᵀ.
///
/// P Pᵀ stays what it was, so the distribution does too. The new columns are orthogonal, and the squared
/// length of column k, λ_k, is the variance it explains. Of the two directions of a mode the one is taken
/// whose logits have a sum of at least 0, so that the result does not depend on the solver.
///
/// The new factor is in single precision, whatever the old one was in.
///
/// # Shapes
/// As the distribution's: `[r, c, v]`.
pub fn canonicalize(distribution: &LowRankNormal) -> Result<Modes> {
    let (factor, variances) = turned(distribution);
    let diagonal = distribution.diagonal();
    Ok(Modes {
        diagonal_variance: (0..diagonal.len()).map(|i| f64::from(diagonal.get(i))).sum(),
        distribution: LowRankNormal::new(
            distribution.classes(),
            distribution.voxels(),
            distribution.rank(),
            distribution.mean().clone(),
            diagonal.clone(),
            factor,
        )?,
        variances,
    })
}

/// The distribution of [`canonicalize`] alone, in the memory of the old one.
pub fn canonical(distribution: LowRankNormal) -> Result<LowRankNormal> {
    let (factor, _) = turned(&distribution);
    distribution.with_factor(factor)
}

/// The new factor `[r, c, v]`, and the variance of each of its columns.
fn turned(distribution: &LowRankNormal) -> (Vec<f32>, Vec<f64>) {
    let (c, v, r) = (distribution.classes(), distribution.voxels(), distribution.rank());
    let n = c * v;
    let chunks = n.div_ceil(CHUNK);
    let read = |chunk: usize| {
        let (start, length) = (chunk * CHUNK, CHUNK.min(n - chunk * CHUNK));
        let mut rows = vec![vec![0f32; length]; r];
        for (q, row) in rows.iter_mut().enumerate() {
            distribution.factor().read(q * n + start, row);
        }
        rows
    };

    // Inner products and sums of the columns, in one pass.
    let products = |chunk: usize| {
        let rows = read(chunk);
        let sums = rows.iter().map(|row| row.iter().map(|&x| f64::from(x)).sum());
        vectorized(
            #[inline(always)]
            || gram(&rows),
        )
        .into_iter()
        .chain(sums)
        .collect()
    };
    let partial: Vec<Vec<f64>> = (0..chunks).into_par_iter().map(products).collect();
    let mut total = vec![0.0; r * r + r];
    for part in &partial {
        total.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
    }
    let (gram, column_sums) = total.split_at(r * r);
    let mut pairs = symmetric_eigen(gram, r);
    orient(&mut pairs, column_sums);

    let mut factor = vec![0f32; r * n];
    let mut split: Vec<Vec<&mut [f32]>> = (0..chunks).map(|_| vec![]).collect();
    for row in factor.chunks_mut(n) {
        split.iter_mut().zip(row.chunks_mut(CHUNK)).for_each(|(pieces, piece)| pieces.push(piece));
    }
    split.into_par_iter().enumerate().for_each(|(chunk, mut out)| {
        let rows = read(chunk);
        vectorized(
            #[inline(always)]
            || turn(&rows, &pairs, &mut out),
        );
    });

    (factor, pairs.iter().map(|(value, _)| value.max(0.0)).collect())
}

/// Numbers whose sums stay in registers and the nearest cache.
const BLOCK: usize = 256;

/// Row k becomes Σ_q w_kq · row q, with the weights of eigenvector k, in double precision.
#[inline(always)]
fn turn(rows: &[Vec<f32>], pairs: &[(f64, Vec<f64>)], out: &mut [&mut [f32]]) {
    let length = out.first().map_or(0, |row| row.len());
    for start in (0..length).step_by(BLOCK) {
        let range = start..length.min(start + BLOCK);
        for (target, (_, weights)) in out.iter_mut().zip(pairs) {
            let mut sums = [0f64; BLOCK];
            for (row, w) in rows.iter().zip(weights) {
                sums.iter_mut().zip(&row[range.clone()]).for_each(|(sum, x)| *sum += f64::from(*x) * w);
            }
            target[range.clone()].iter_mut().zip(&sums).for_each(|(value, sum)| *value = *sum as f32);
        }
    }
}

/// `[r, r]` inner products of rows.
#[inline(always)]
fn gram(rows: &[Vec<f32>]) -> Vec<f64> {
    let r = rows.len();
    let mut gram = vec![0.0; r * r];
    for p in 0..r {
        for q in p..r {
            let product = inner_product(&rows[p], &rows[q]);
            gram[p * r + q] = product;
            gram[q * r + p] = product;
        }
    }
    gram
}

/// Σ a·b, in lanes of which none waits for another.
#[inline(always)]
fn inner_product(a: &[f32], b: &[f32]) -> f64 {
    const LANES: usize = 16;
    let (a, rest_of_a) = a.as_chunks::<LANES>();
    let (b, rest_of_b) = b.as_chunks::<LANES>();
    let mut lanes = [0f64; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            lanes[lane] += f64::from(a[lane]) * f64::from(b[lane]);
        }
    }
    let rest = rest_of_a.iter().zip(rest_of_b).map(|(&a, &b)| f64::from(a) * f64::from(b));
    lanes.into_iter().chain(rest).sum()
}

/// Turns each eigenvector so that its mode has a sum of at least 0.
fn orient(pairs: &mut [(f64, Vec<f64>)], column_sums: &[f64]) {
    for (_, vector) in pairs {
        let sum: f64 = vector.iter().zip(column_sums).map(|(w, s)| w * s).sum();
        if sum < 0.0 {
            vector.iter_mut().for_each(|w| *w = -*w);
        }
    }
}

/// Sweeps over all pairs; convergence is quadratic, and ten suffice for any matrix of moderate size.
const MAX_SWEEPS: usize = 60;

/// Eigenvalues of a small symmetric matrix by Jacobi's rotations, in descending order, each with its eigenvector of length 1.
///
/// # Shapes
/// `matrix` `[n, n]`, symmetric, row-major. The vectors are rows of `n` numbers.
fn symmetric_eigen(matrix: &[f64], n: usize) -> Vec<(f64, Vec<f64>)> {
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
    fn a_zero_matrix_and_equal_values_are_fine() {
        assert!(symmetric_eigen(&[0.0; 9], 3).iter().all(|(value, _)| *value == 0.0));
        let identity = symmetric_eigen(&[1.0, 0.0, 0.0, 1.0], 2);
        assert_eq!(identity.iter().map(|p| p.0).collect::<Vec<_>>(), [1.0, 1.0]);
    }
}
