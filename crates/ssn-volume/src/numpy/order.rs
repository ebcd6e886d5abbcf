//! From arrays whose first axis runs fastest to arrays whose last axis does.

/// Values of `size` bytes each, reordered from Fortran to C order.
///
/// # Shapes
/// `bytes` holds the product of `shape` values; what is missing stays out.
pub(super) fn fortran_to_c(bytes: &[u8], shape: &[usize], size: usize) -> Vec<u8> {
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = size;
    for &n in shape {
        strides.push(stride);
        stride = stride.saturating_mul(n);
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = vec![0; shape.len()];
    let mut from = 0;
    while let Some(value) = bytes.get(from..from + size).filter(|_| out.len() < bytes.len()) {
        out.extend_from_slice(value);
        // The odometer of the target's order: the last axis first.
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            from += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            from -= strides[axis] * index[axis];
            index[axis] = 0;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_reversed() {
        assert_eq!(fortran_to_c(&[1, 4, 2, 5, 3, 6], &[2, 3], 1), [1, 2, 3, 4, 5, 6]);
        assert_eq!(fortran_to_c(&[1, 1, 3, 3, 2, 2, 4, 4], &[2, 2], 2), [1, 1, 2, 2, 3, 3, 4, 4]);
        assert_eq!(fortran_to_c(&[7, 8, 9], &[3], 1), [7, 8, 9]);
        assert_eq!(fortran_to_c(&[5], &[], 1), [5]);
        assert!(fortran_to_c(&[], &[0, 3], 4).is_empty());
    }

    #[test]
    fn three_axes_follow_the_formula() {
        let shape = [2, 3, 4];
        let fortran: Vec<u8> = (0..24).collect();
        let c = fortran_to_c(&fortran, &shape, 1);
        for i in 0..2 {
            for j in 0..3 {
                for k in 0..4 {
                    assert_eq!(c[(i * 3 + j) * 4 + k], fortran[i + 2 * (j + 3 * k)]);
                }
            }
        }
    }
}
