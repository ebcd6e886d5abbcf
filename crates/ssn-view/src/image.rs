//! Images in few bytes: whole numbers of 8 or 16 bits on the range of each channel.

use rayon::prelude::*;

/// Values per unit of parallel work.
const BLOCK: usize = 1 << 16;

/// A channel: the values of its smallest and its largest level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Range {
    pub(crate) low: f32,
    pub(crate) high: f32,
}

/// Channels as levels.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Levels {
    pub(crate) ranges: Vec<Range>,
    /// All channels, one after the other.
    pub(crate) data: Data,
}

/// The levels themselves.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Data {
    /// 0 to 255.
    Bytes(Vec<u8>),
    /// 0 to 65535.
    Words(Vec<u16>),
}

/// Turns channels of `voxels` values each into levels.
///
/// Images whose channels all hold whole numbers within 256 of each other keep them exactly, in bytes. Others take 65536
/// levels from the smallest to the largest value, so that a narrow window of a wide range has no steps; the error is
/// at most 1/131070 of the range. What is no number becomes the lowest level.
pub(crate) fn levels(values: &[f32], voxels: usize) -> Levels {
    let channels = || values.chunks(voxels.max(1));
    let ranges: Vec<Range> = channels().map(range).collect();
    let whole = |range: &Range, channel: &[f32]| {
        range.low.fract() == 0.0
            && range.high - range.low <= 255.0
            && channel.iter().all(|x| !x.is_finite() || x.fract() == 0.0)
    };
    if ranges.iter().zip(channels()).all(|(range, channel)| whole(range, channel)) {
        let ranges: Vec<Range> = ranges.iter().map(|r| Range { low: r.low, high: r.low + 255.0 }).collect();
        let level = |x: f32, range: &Range| (x - range.low) as u8;
        let data = channels().zip(&ranges).flat_map(|(channel, r)| channel.iter().map(move |x| level(*x, r)));
        return Levels { data: Data::Bytes(data.collect()), ranges };
    }
    let level = |x: f32, range: &Range| {
        let span = f64::from(range.high) - f64::from(range.low);
        let place = (f64::from(x) - f64::from(range.low)) / span;
        // Rounds, and takes what is no number to 0.
        (place * f64::from(u16::MAX) + 0.5) as u16
    };
    let mut words = vec![0; values.len()];
    words.par_chunks_mut(BLOCK).zip(values.par_chunks(BLOCK)).enumerate().for_each(
        |(block, (words, values))| {
            for (i, (word, x)) in words.iter_mut().zip(values).enumerate() {
                *word = level(*x, &ranges[(block * BLOCK + i) / voxels.max(1)]);
            }
        },
    );
    Levels { data: Data::Words(words), ranges }
}

/// The smallest and the largest finite value; a channel of one value, or of none, still has a range.
fn range(channel: &[f32]) -> Range {
    let finite = channel.iter().copied().filter(|x| x.is_finite());
    let (low, high) =
        finite.fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    if low > high {
        return Range { low: 0.0, high: 1.0 };
    }
    match high > low {
        true => Range { low, high },
        false => Range { low: low.min(0.0), high: if low == 0.0 { 1.0 } else { low.max(0.0) } },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_stay_what_they_are() {
        let image = [3.0, 250.0, 7.0, -5.0, 0.0, f32::NAN];
        let levels = levels(&image, 3);
        assert_eq!(levels.data, Data::Bytes(vec![0, 247, 4, 0, 5, 0]));
        assert_eq!(levels.ranges[1], Range { low: -5.0, high: 250.0 });
    }

    #[test]
    fn other_values_are_close() {
        let image: Vec<f32> = (0..1000).map(|i| (i as f32 * 0.37).sin() * 1500.0 - 200.0).collect();
        let Levels { ranges, data: Data::Words(words) } = levels(&image, 1000) else { panic!("bytes") };
        let Range { low, high } = ranges[0];
        for (x, word) in image.iter().zip(words) {
            let shown = low + f32::from(word) * (high - low) / 65535.0;
            assert!((x - shown).abs() <= (high - low) / 131070.0 + 1e-4, "{x} {shown}");
        }
    }

    #[test]
    fn any_channel_has_a_range() {
        for channel in [&[][..], &[f32::NAN], &[2.5, 2.5], &[f32::MAX, f32::MIN], &[f32::MAX], &[-1.0]] {
            let Range { low, high } = range(channel);
            assert!(low < high && low.is_finite() && high.is_finite(), "{channel:?}");
            levels(channel, channel.len());
        }
    }
}
