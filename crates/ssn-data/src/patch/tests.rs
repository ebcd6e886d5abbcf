//! Promises about where patches lie and what they hold.

use proptest::prelude::*;
use ssn_io::Geometry;

use super::*;
use crate::case::Case;
use crate::gather::{LabelInterpolation, gather_image, gather_labels};
use crate::grid::Grid;
use crate::map::SpatialMap;
use crate::random::Purpose;

fn case(shape: [usize; 3], raters: Vec<Vec<u8>>, mask: Option<Vec<u8>>) -> Case {
    let voxels: usize = shape.iter().product();
    let image = (0..2 * voxels).map(|i| i as f32 * 0.5 - 7.0).collect();
    Case {
        id: "a".to_owned(),
        channels: 2,
        shape,
        image,
        raters,
        rater_numbers: vec![],
        mask,
        geometry: Geometry::default(),
    }
}

fn config(size: [usize; 3], lesion_probability: f64, rater: RaterChoice) -> PatchConfig {
    PatchConfig { place: Place::Random { size, lesion_probability }, target_size: None, rater }
}

/// Pads an array on all sides by `by` and cuts the window out of it.
fn pad_then_crop<T: Copy>(
    values: &[T],
    [d, h, w]: [usize; 3],
    window: Window,
    by: usize,
    outside: Option<T>,
) -> Vec<T> {
    let padded = [d + 2 * by, h + 2 * by, w + 2 * by];
    let mut volume = vec![];
    for z in 0..padded[0] {
        for y in 0..padded[1] {
            for x in 0..padded[2] {
                let at = [z, y, x].map(|i| i as isize - by as isize);
                let inside = [0, 1, 2].map(|k| at[k].clamp(0, [d, h, w][k] as isize - 1));
                let value = values[((inside[0] as usize * h) + inside[1] as usize) * w + inside[2] as usize];
                volume.push(if at == inside { value } else { outside.unwrap_or(value) });
            }
        }
    }
    let start = window.start.map(|x| (x + by as isize) as usize);
    let mut out = vec![];
    for z in 0..window.size[0] {
        for y in 0..window.size[1] {
            let row = ((start[0] + z) * padded[1] + start[1] + y) * padded[2] + start[2];
            out.extend_from_slice(&volume[row..row + window.size[2]]);
        }
    }
    out
}

proptest! {
    #[test]
    fn a_patch_at_a_border_equals_pad_then_crop(
        shape in prop::array::uniform3(1usize..7),
        size in prop::array::uniform3(1usize..9),
        seed in any::<u64>(),
    ) {
        let voxels: usize = shape.iter().product();
        let mut stream = Stream::new(seed, Purpose::Patch, 0);
        let labels: Vec<u8> = (0..voxels).map(|_| stream.below(3) as u8).collect();
        let case = Prepared::new(case(shape, vec![labels.clone()], None), Index::EachRater).unwrap();
        let chosen = config(size, 0.5, RaterChoice::Random).choose(&case, &mut stream).unwrap();
        let map = SpatialMap::new(&[], size, shape[0] == 1);
        let patch: usize = size.iter().product();

        let mut image = vec![0.0; 2 * patch];
        gather_image(&case.image, &map, chosen.window, &Grid::whole(chosen.window.size), &mut image);
        for channel in 0..2 {
            let plane: Vec<f32> = (0..voxels).map(|i| (channel * voxels + i) as f32 * 0.5 - 7.0).collect();
            let expected = pad_then_crop(&plane, shape, chosen.window, 9, None);
            prop_assert_eq!(&image[channel * patch..][..patch], &expected[..]);
        }
        let mut target = vec![9; patch];
        let nearest = LabelInterpolation::Nearest;
        gather_labels(&mut [(&labels, &mut target)], shape, &map, chosen.window, nearest);
        prop_assert_eq!(target, pad_then_crop(&labels, shape, chosen.window, 9, Some(0)));
    }
}

/// How often each voxel is the center of 2,000 patches.
fn centers(case: &Prepared, config: PatchConfig) -> Vec<usize> {
    let [_, h, w] = case.shape();
    let mut counts = vec![0; case.shape().iter().product()];
    for q in 0..2000 {
        let chosen = config.choose(case, &mut Stream::new(1, Purpose::Patch, q)).unwrap();
        let [z, y, x] = chosen.center;
        counts[(z * h + y) * w + x] += 1;
    }
    counts
}

#[test]
fn centers_are_lesion_or_background_inside_the_mask_as_often_as_asked() {
    let raters = vec![vec![1, 0, 0, 0, 0, 2, 0, 0], vec![0, 0, 0, 3, 0, 0, 0, 0]];
    let mask = Some(vec![1, 1, 1, 1, 1, 0, 1, 0]);
    let case = |raters| Prepared::new(case([2, 2, 2], raters, mask.clone()), Index::EachRater).unwrap();
    let size = [3, 3, 3];
    let first = centers(&case(raters.clone()), config(size, 0.5, RaterChoice::Fixed { rater: 0 }));
    // Voxel 5 is marked, but outside of the mask.
    assert!((870..1130).contains(&first[0]) && first[5] == 0 && first[7] == 0, "{first:?}");
    assert!(first[1..5].iter().all(|&n| (120..280).contains(&n)), "{first:?}");
    let always = centers(&case(raters), config(size, 1.0, RaterChoice::Fixed { rater: 1 }));
    assert_eq!(always[3], 2000);
    // Without a lesion, patches are cut around the background, and the other way round.
    let none = centers(&case(vec![vec![0; 8]]), config(size, 1.0, RaterChoice::Random));
    assert!(none[0] > 200 && none[5] == 0);
    let full = centers(&case(vec![vec![1; 8]]), config(size, 0.0, RaterChoice::Random));
    assert!(full[0] > 200 && full[5] == 0);
}

#[test]
fn an_empty_mask_gives_the_middle_and_all_raters_share_an_index() {
    let empty = case([1, 4, 4], vec![vec![1; 16]], Some(vec![0; 16]));
    let empty = Prepared::new(empty, Index::EachRater).unwrap();
    let chosen =
        config([1, 2, 2], 0.5, RaterChoice::Random).choose(&empty, &mut Stream::new(0, Purpose::Patch, 0));
    assert_eq!(chosen.unwrap().center, [0, 2, 2]);

    let mut raters = vec![vec![0; 16]; 3];
    raters[2][9] = 1;
    let all = config([1, 2, 2], 1.0, RaterChoice::All);
    let shared = Prepared::new(case([1, 4, 4], raters, None), all.index()).unwrap();
    assert_eq!(centers(&shared, all)[9], 2000);
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let target =
        |target| PatchConfig { target_size: Some(target), ..config([9, 9, 9], 0.5, RaterChoice::All) };
    assert!(target([3, 3, 3]).check().is_ok());
    assert!(target([4, 3, 3]).check().is_err() && target([11, 9, 9]).check().is_err());
    assert!(config([0, 3, 3], 0.5, RaterChoice::All).check().is_err());
    assert!(config([3, 3, 3], 1.5, RaterChoice::All).check().is_err());
    let one = Prepared::new(case([1, 2, 2], vec![vec![0; 4]], None), Index::None).unwrap();
    let fixed = PatchConfig { rater: RaterChoice::Fixed { rater: 1 }, ..PatchConfig::default() };
    let error = fixed.choose(&one, &mut Stream::new(0, Purpose::Patch, 0)).unwrap_err().to_string();
    assert!(error.starts_with("case a: rater 1 is asked for, but those of this case are 0"), "{error}");
    assert!(Prepared::new(case([1, 2, 2], vec![vec![0; 3]], None), Index::None).is_err());
    assert!(Prepared::new(case([1, 2, 2], vec![], None), Index::None).is_err());
}

#[test]
fn a_fixed_rater_is_known_by_number() {
    let mut two = case([1, 1, 2], vec![vec![0, 0], vec![1, 1]], None);
    two.rater_numbers = vec![0, 2];
    let case = Prepared::new(two, Index::None).unwrap();
    let choose = |rater| {
        let config = PatchConfig { rater: RaterChoice::Fixed { rater }, ..PatchConfig::default() };
        config.choose(&case, &mut Stream::new(0, Purpose::Patch, 0))
    };
    assert_eq!(choose(2).unwrap().rater, Some(1));
    insta::assert_snapshot!(choose(1).unwrap_err().to_string());
}

#[test]
fn a_whole_image_that_is_too_small_is_named() {
    let case = Prepared::new(case([1, 2, 2], vec![vec![0; 4]], None), Index::None).unwrap();
    let config = PatchConfig { target_size: Some([1, 4, 4]), ..PatchConfig::default() };
    let error = config.choose(&case, &mut Stream::new(0, Purpose::Patch, 0)).unwrap_err();
    insta::assert_snapshot!(error.to_string());
}
