//! From components to channels: colours of fewer samples are interpolated, and YCbCr becomes RGB.

use super::frame::{Component, Frame};

/// What the components mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// One component.
    Grey,
    /// Brightness and two differences of colours (JFIF, section 7).
    YCbCr,
    /// Red, green and blue.
    Rgb,
}

/// The channels of a picture, `[c, h, w]`.
pub fn convert(frame: Frame, scheme: Scheme) -> Vec<u8> {
    let Frame { width, height, components, sampling, .. } = frame;
    let pixels = width * height;
    let mut out = vec![0; components.len() * pixels];
    let mut rows = vec![vec![0; width]; components.len()];
    let mut sums = vec![];
    for y in 0..height {
        for (component, row) in components.iter().zip(&mut rows) {
            upsampled_row(component, sampling, y, &mut sums, row);
        }
        if scheme == Scheme::YCbCr {
            let [luma, blue, red] = &mut rows[..] else { return out };
            for x in 0..width {
                [luma[x], blue[x], red[x]] = rgb([luma[x], blue[x], red[x]]);
            }
        }
        for (c, row) in rows.iter().enumerate() {
            out[c * pixels + y * width..][..width].copy_from_slice(row);
        }
    }
    out
}

/// The conversion of JFIF in 16 fractional bits.
fn rgb([luma, blue, red]: [u8; 3]) -> [u8; 3] {
    const HALF: i32 = 1 << 15;
    let (y, cb, cr) = (i32::from(luma), i32::from(blue) - 128, i32::from(red) - 128);
    let r = y + ((91881 * cr + HALF) >> 16);
    let g = y + ((-22554 * cb - 46802 * cr + HALF) >> 16);
    let b = y + ((116_130 * cb + HALF) >> 16);
    [r, g, b].map(|x| x.clamp(0, 255) as u8)
}

/// Row `y` of the picture of a component. Halved axes are interpolated, with three quarters from the nearer
/// sample and one from the farther; other ratios repeat samples. `sums` is memory to work in.
fn upsampled_row(component: &Component, sampling: [usize; 2], y: usize, sums: &mut Vec<u16>, out: &mut [u8]) {
    let stride = 8 * component.blocks[0];
    let [width, height] = component.size;
    let row = |y: usize| &component.plane[y * stride..][..width];
    let [across, down] = [0, 1].map(|axis| sampling[axis] / component.sampling[axis]);
    let near = row((y / down).min(height - 1));
    let smooth = (across == 2 && width > 2 && down <= 2) || (across == 1 && down == 2);
    if !smooth {
        out.iter_mut().enumerate().for_each(|(x, sample)| *sample = near[x / across]);
        return;
    }
    // Quarters of samples when rows are interpolated, otherwise whole ones.
    let far = match (down, y % 2) {
        (1, _) => None,
        (_, 0) => Some(row((y / 2).saturating_sub(1))),
        _ => Some(row((y / 2 + 1).min(height - 1))),
    };
    sums.clear();
    match far {
        None => sums.extend(near.iter().map(|&x| u16::from(x))),
        Some(far) => sums.extend(near.iter().zip(far).map(|(&n, &f)| 3 * u16::from(n) + u16::from(f))),
    }
    if across == 1 {
        // Halves are rounded up and down in turn, so that errors do not add up.
        let round = if y.is_multiple_of(2) { 1 } else { 2 };
        out.iter_mut().zip(&*sums).for_each(|(sample, &sum)| *sample = ((sum + round) >> 2) as u8);
        return;
    }
    let (shift, rounds) = if down == 1 { (2, [1, 2]) } else { (4, [8, 7]) };
    for (x, sample) in out.iter_mut().enumerate() {
        let near = sums[x / 2];
        let far = match x % 2 {
            0 => sums[(x / 2).saturating_sub(1)],
            _ => sums[(x / 2 + 1).min(width - 1)],
        };
        *sample = ((3 * near + far + rounds[x % 2]) >> shift) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primary_colours_come_out() {
        assert_eq!(rgb([128, 128, 128]), [128; 3]);
        assert_eq!(rgb([76, 85, 255]), [254, 0, 0]);
        assert_eq!(rgb([29, 255, 107]), [0, 0, 254]);
    }
}
