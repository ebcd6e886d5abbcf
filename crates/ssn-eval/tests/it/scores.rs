//! The scores of a case are those of its samples, its prediction and its raters on the whole image.

use ssn_core::metrics::{Calibrated, ClassGroup, LabelFrequencies, Overlap, PairwiseDistances, ece, ged};
use ssn_core::random::philox4x32;
use ssn_core::{BitPlanes, LabelMap, LowRankNormal, SampleSummary, Sampler, Steering};
use ssn_eval::scores::{CaseMaps, CaseValues, Group, memory, observations, score, score_maps};
use ssn_eval::{
    CaseScores, DistributionFile, PredictionKind, PredictionRule, SampleSource, ScoreConfig, ScoreSet,
    case_seed, predict_labels,
};
use ssn_io::Limits;

use crate::common::{description, distribution, file};

/// Label maps of the whole image: noise, inside and outside the region of the files.
fn raters(count: u32) -> Vec<LabelMap> {
    let label = |rater, voxel| (philox4x32([voxel, rater, 0, 0], [4, 2])[0] % 3) as u8;
    (0..count).map(|r| LabelMap::new((0..60).map(|x| label(r, x)).collect(), 3).unwrap()).collect()
}

/// The first samples of a file on the whole image.
fn samples(file: &DistributionFile, seed: u64, count: u64) -> Vec<BitPlanes> {
    let sampler = Sampler::new(file.distribution(), seed, &Steering::default()).unwrap();
    let on_image = |map: &LabelMap| LabelMap::new(file.labels_on_image(map).unwrap(), 3).unwrap();
    sampler.labels(0..count).unwrap().iter().map(|map| BitPlanes::new(&on_image(map))).collect()
}

fn planes(maps: &[LabelMap]) -> Vec<BitPlanes> {
    maps.iter().map(BitPlanes::new).collect()
}

#[test]
fn distances_are_those_of_samples_and_raters_on_the_image() {
    let (file, raters) = (file("a"), raters(3));
    let config = ScoreConfig { samples: 20, seed: 11, ged_counts: vec![1, 8, 50], ..ScoreConfig::default() };
    let found = score(&file, &raters, &config).unwrap();
    let all = samples(&file, case_seed(config.seed, "a"), 20);
    for count in [1, 8, 20] {
        let expected = ged(&all[..count], &planes(&raters)).unwrap();
        assert_eq!(found.value(&format!("ged2_{count}")), Some(expected.squared));
    }
    assert_eq!(found.value("ged2_50"), None);
    let expected = ged(&all, &planes(&raters)).unwrap();
    assert_eq!(
        ["sample_diversity", "rater_diversity", "cross_distance"].map(|key| found.value(key).unwrap()),
        [expected.sample_diversity, expected.rater_diversity, expected.sample_rater_distance]
    );
    assert_eq!(
        found.value("hm_iou"),
        Some(PairwiseDistances::new(&all, &planes(&raters)).unwrap().hm_iou().unwrap())
    );
    assert_eq!((found.samples, found.raters), (20, 3));
}

#[test]
fn the_excess_is_what_a_perfect_distribution_would_not_have() {
    let found = score(&file("a"), &raters(3), &ScoreConfig::fast(20)).unwrap();
    // Three raters with themselves are nine pairs, of which six count for two different ones.
    let distance = found.value("rater_diversity").unwrap() * 9.0 / 6.0;
    let expected = found.ged_squared().unwrap() - distance * (1.0 / 20.0 + 1.0 / 3.0);
    assert!((found.excess_ged_squared().unwrap() - expected).abs() < 1e-12);
    assert_eq!(score(&file("a"), &raters(1), &ScoreConfig::fast(20)).unwrap().excess_ged_squared(), None);
}

/// Every score of a case, bit for bit: a change here must come with a new version of the row.
#[test]
fn a_changed_value_has_a_new_version() {
    let sets = vec![ScoreSet::All];
    let config = ScoreConfig { samples: 8, ged_counts: vec![1], sets, ..ScoreConfig::default() };
    let found = observations(&score(&file("a"), &raters(3), &config).unwrap());
    let line = |row: &CaseValues| {
        let bits =
            row.values.iter().map(|value| value.map_or("-".to_owned(), |x| format!("{:x}", x.to_bits())));
        let version = row.score().map_or(0, |score| score.version);
        format!("{} v{version} {}", row.key, bits.collect::<Vec<_>>().join(" "))
    };
    insta::assert_snapshot!(found.iter().map(line).collect::<Vec<_>>().join("\n"));
}

/// A class of low mean and wide spread is the most probable one, though it is not that of the mean logits.
#[test]
fn the_marginal_prediction_is_the_most_probable_label() {
    let voxels = file("a").distribution().voxels();
    let rows = |values: [f32; 3]| values.iter().flat_map(|&value| vec![value; voxels]).collect::<Vec<f32>>();
    let (mean, diagonal) = (rows([0.0, 0.05, -0.1]), rows([1e-6, 1e-6, 100.0]));
    let wide = LowRankNormal::new(3, voxels, 0, mean, diagonal, Vec::<f32>::new()).unwrap();
    let file = DistributionFile::new(description("a"), wide, None).unwrap();
    for (rule, label) in [(PredictionRule::Mean, 1u8), (PredictionRule::Marginal, 2)] {
        let found = predict_labels(&file, rule).unwrap();
        assert!(found.labels().iter().all(|&found| found == label), "{rule:?}");
    }
}

#[test]
fn maps_in_memory_have_the_scores_of_the_file_that_they_are_from() {
    let (file, raters) = (file("a"), raters(3));
    let config = ScoreConfig { samples: 12, voxelwise: false, ..ScoreConfig::default() };
    let drawn = SampleSource::new(&file, config.seed, &Steering::default()).unwrap().labels(0..12).unwrap();
    let samples: Vec<LabelMap> = drawn.iter().map(|map| file.map_on_image(map).unwrap()).collect();
    let about = file.description();
    let maps = CaseMaps {
        case: "a",
        classes: &about.classes,
        size: about.size,
        spacing: Some(about.spacing()),
        prediction: Some(&file.map_on_image(&file.prediction().unwrap()).unwrap()),
        samples: &samples,
        probabilities: None,
    };
    assert_eq!(score_maps(&maps, &raters, &config).unwrap(), score(&file, &raters, &config).unwrap());

    // Probabilities that are not given are the shares of the samples, and the prediction is the most frequent label.
    let voxelwise = ScoreConfig { voxelwise: true, ..config.clone() };
    let shares = LabelFrequencies::of(&samples).unwrap().probabilities();
    let given = CaseMaps { probabilities: Some(&shares), ..maps };
    let scores = score_maps(&given, &raters, &voxelwise).unwrap();
    assert_eq!(score_maps(&maps, &raters, &voxelwise).unwrap(), scores);
    assert_eq!(scores.value("ece"), Some(ece(&shares, &raters, Calibrated::TopLabel, config.bins).unwrap()));
    let alone = CaseMaps { prediction: None, samples: &samples[..1], ..maps };
    let of_the_sample = CaseMaps { prediction: Some(&samples[0]), ..alone };
    assert_eq!(
        score_maps(&alone, &raters, &config).unwrap(),
        score_maps(&of_the_sample, &raters, &config).unwrap()
    );
    assert!(
        score_maps(&CaseMaps { probabilities: Some(&shares[1..]), ..maps }, &raters, &voxelwise).is_err()
    );
    assert!(score_maps(&CaseMaps { samples: &[], ..maps }, &raters, &config).is_err());
}

#[test]
fn masks_are_scored_with_every_rater() {
    let (file, raters) = (file("a"), raters(2));
    let group = Group { name: "both".to_owned(), classes: vec![1, 2] };
    let found =
        score(&file, &raters, &ScoreConfig { samples: 9, groups: vec![group], ..ScoreConfig::default() })
            .unwrap();
    assert_eq!(found.masks, ["both"]);
    let whole = ClassGroup::new(&[1, 2]).unwrap();
    let prediction = LabelMap::new(file.labels_on_image(&file.prediction().unwrap()).unwrap(), 3).unwrap();
    let dice = |map: &BitPlanes, rater: usize| {
        Overlap::new(map, &BitPlanes::new(&raters[rater]), &whole).unwrap().dice()
    };
    let of_prediction = [0, 1].map(|rater| dice(&BitPlanes::new(&prediction), rater));
    assert_eq!(found.of_mask("dsc", "both"), of_prediction);
    for rater in [0, 1] {
        let all: Vec<f64> =
            samples(&file, case_seed(0, "a"), 9).iter().map(|map| dice(map, rater).unwrap()).collect();
        let better = all.iter().filter(|&&x| Some(x) > of_prediction[rater]).count() as f64 / 9.0;
        assert_eq!(found.of_mask("better_than_prediction", "both")[rater], Some(better));
        let mean = found.of_mask("sample_dsc", "both")[rater].unwrap();
        assert!((mean - all.iter().sum::<f64>() / 9.0).abs() < 1e-12);
    }
    let voxel: f64 = description("a").geometry.spacing.iter().product::<f64>() / 1000.0;
    let volume = whole.volume(&BitPlanes::new(&prediction)) as f64 * voxel;
    assert_eq!(found.of_mask("volume", "both"), [Some(volume)]);
    assert_eq!(found.of_mask("hd95", "both").len(), 2);
    let default = score(&file, &raters, &ScoreConfig::fast(2)).unwrap();
    assert_eq!(default.masks, ["core", "oedema", "all classes"]);
}

#[test]
fn the_volume_difference_has_no_sign() {
    let map = |marked: usize| LabelMap::new((0..60).map(|i| u8::from(i < marked)).collect(), 3).unwrap();
    let (prediction, raters) = (map(20), [map(12), map(50)]);
    let maps = CaseMaps {
        case: "a",
        classes: &description("a").classes,
        size: [3, 4, 5],
        spacing: Some([5.0, 10.0, 10.0]),
        prediction: Some(&prediction),
        samples: &[map(20)],
        probabilities: None,
    };
    let of = |maps: &CaseMaps<'_>| {
        let found = score_maps(maps, &raters, &ScoreConfig::fast(1)).unwrap();
        ["core", "oedema"].map(|mask| found.of_mask("volume_difference", mask).to_vec())
    };
    // A voxel has half a milliliter.
    assert_eq!(of(&maps), [[Some(4.0), Some(15.0)], [Some(0.0); 2]]);
    assert_eq!(of(&CaseMaps { spacing: None, ..maps }), [[Some(8.0), Some(30.0)], [Some(0.0); 2]]);
}

#[test]
fn what_raters_mark_outside_the_region_is_missed() {
    let certain = |class: usize| {
        let mean = (0..36).map(|i| if i / 12 == class { 50.0 } else { 0.0 }).collect::<Vec<f32>>();
        let d = LowRankNormal::new(3, 12, 0, mean, vec![0f32; 36], vec![0f32; 0]).unwrap();
        DistributionFile::new(description("a"), d, None).unwrap()
    };
    let everywhere = [LabelMap::new(vec![1; 60], 3).unwrap()];
    let found = score(&certain(1), &everywhere, &ScoreConfig::fast(1)).unwrap();
    assert_eq!(found.of_mask("dsc", "core"), [Some(2.0 * 12.0 / 72.0)]);
    let inside =
        LabelMap::new(certain(1).labels_on_image(&LabelMap::new(vec![1; 12], 3).unwrap()).unwrap(), 3);
    let found = score(&certain(1), &[inside.unwrap()], &ScoreConfig::default()).unwrap();
    assert_eq!((found.of_mask("dsc", "core")[0], found.ged_squared()), (Some(1.0), Some(0.0)));
    let [ece, brier, likelihood] = ["ece", "brier", "log_likelihood"].map(|key| found.value(key).unwrap());
    assert!(ece < 1e-6 && brier < 1e-6 && likelihood > -1e-3);
}

#[test]
fn a_score_without_a_value_has_none() {
    let mean = (0..36).map(|i| if i < 12 { 50.0 } else { 0.0 }).collect::<Vec<f32>>();
    let d = LowRankNormal::new(3, 12, 0, mean, vec![0f32; 36], vec![0f32; 0]).unwrap();
    let empty = DistributionFile::new(description("a"), d, None).unwrap();
    let found = score(
        &empty,
        &[LabelMap::new(vec![0; 60], 3).unwrap()],
        &ScoreConfig { samples: 3, ..ScoreConfig::default() },
    )
    .unwrap();
    for key in
        ["dsc", "dsc_nod", "sample_dsc", "sample_dsc_05", "better_than_prediction", "hd95", "assd", "nsd"]
    {
        assert_eq!(found.of_mask(key, "core"), [None], "{key}");
    }
    assert_eq!(found.mean_dice(), None);
    for key in ["variance_ncc", "s_ncc"] {
        assert_eq!(found.of(key), Some(&[None][..]), "{key}");
    }
    assert_eq!((found.ged_squared(), found.of_mask("volume", "core")), (Some(0.0), &[Some(0.0)][..]));
    let json = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<CaseScores>(&json).unwrap(), found);
}

#[test]
fn likelihood_is_that_of_the_region() {
    let (file, raters) = (file("a"), raters(2));
    let found = score(&file, &raters, &ScoreConfig { samples: 30, ..ScoreConfig::default() }).unwrap();
    let seed = case_seed(0, "a");
    let sampler = Sampler::new(file.distribution(), seed, &Steering::default()).unwrap();
    let cropped: Vec<LabelMap> =
        raters.iter().map(|r| LabelMap::new(file.crop_to_region(r.labels()).unwrap(), 3).unwrap()).collect();
    let mut summary = SampleSummary::new(&sampler, &cropped).unwrap();
    summary.extend(&sampler, 0..30).unwrap();
    let expected: Vec<_> = summary.log_likelihoods().unwrap().into_iter().map(Some).collect();
    assert_eq!(found.of("log_likelihood").unwrap(), expected);
}

#[test]
fn steered_samples_are_scored_as_they_are_drawn() {
    let (file, raters) = (file("a"), raters(2));
    let config = ScoreConfig { samples: 12, ..ScoreConfig::default() };
    let scored = |config: &ScoreConfig| score(&file, &raters, config).unwrap();
    // Without any noise all samples are the prediction.
    let cold = scored(&ScoreConfig { temperature: 0.0, ..config.clone() });
    assert_eq!(cold.value("sample_diversity"), Some(0.0));
    let smooth = ScoreConfig { diagonal_noise: false, temperature: 0.7, ..config.clone() };
    let steering = Steering { diagonal_noise: false, temperature: 0.7, ..Steering::default() };
    let sampler = Sampler::new(file.distribution(), case_seed(config.seed, "a"), &steering).unwrap();
    let planes: Vec<BitPlanes> = sampler
        .labels(0..12)
        .unwrap()
        .iter()
        .map(|map| BitPlanes::new(&LabelMap::new(file.labels_on_image(map).unwrap(), 3).unwrap()))
        .collect();
    let rater_planes: Vec<BitPlanes> = raters.iter().map(BitPlanes::new).collect();
    let distances = PairwiseDistances::new(&planes, &rater_planes).unwrap();
    let expected = distances.ged().unwrap();
    let found = scored(&smooth);
    assert_eq!(
        (found.ged_squared(), found.value("sample_diversity")),
        (Some(expected.squared), Some(expected.sample_diversity))
    );
    assert_ne!(found.value("sample_diversity"), scored(&config).value("sample_diversity"));
}

#[test]
fn a_deterministic_network_has_its_prediction_as_only_sample() {
    let about = ssn_eval::CaseDescription { kind: PredictionKind::Deterministic, ..description("a") };
    let noise = distribution(3, 12, 0, 1);
    let d = LowRankNormal::new(3, 12, 0, noise.mean().to_f32(), vec![0f32; 36], vec![0f32; 0]).unwrap();
    let file = DistributionFile::new(about, d, None).unwrap();
    let raters = raters(2);
    let config = ScoreConfig { samples: 10, ..ScoreConfig::default() };
    let found = score(&file, &raters, &config).unwrap();
    assert_eq!((found.samples, found.value("sample_diversity")), (1, Some(0.0)));
    assert_eq!(found.values.iter().filter(|values| values.key.starts_with("ged2")).count(), 1);
    let [to_raters, of_raters] = ["cross_distance", "rater_diversity"].map(|key| found.value(key).unwrap());
    assert_eq!(found.ged_squared(), Some(2.0 * to_raters - of_raters));
    let categorical = score(&file, &raters, &ScoreConfig { categorical: true, ..config }).unwrap();
    assert_eq!(categorical.samples, 10);
    assert!(categorical.value("sample_diversity") > Some(0.0));
    // Σ log softmax of the logits at the rater's labels.
    let labels = file.crop_to_region(raters[0].labels()).unwrap();
    let logit = |class: usize, voxel: usize| f64::from(file.distribution().mean().get(class * 12 + voxel));
    let likelihood: f64 = (0..12)
        .map(|x| {
            let total: f64 = (0..3).map(|k| logit(k, x).exp()).sum();
            logit(usize::from(labels[x]), x) - total.ln()
        })
        .sum();
    assert!((found.value("log_likelihood").unwrap() - likelihood).abs() < 1e-4);
}

#[test]
fn the_fast_scores_are_the_same() {
    let (file, raters) = (file("a"), raters(3));
    let full =
        score(&file, &raters, &ScoreConfig { samples: 16, seed: 2, ..ScoreConfig::default() }).unwrap();
    let fast = score(&file, &raters, &ScoreConfig { seed: 2, ..ScoreConfig::fast(16) }).unwrap();
    assert_eq!((fast.ged_squared(), fast.mean_dice()), (full.ged_squared(), full.mean_dice()));
    for name in ["ece", "log_likelihood", "hd95 core", "sample_nsd core"] {
        assert!(fast.of(name).is_none() && full.of(name).is_some(), "{name}");
    }
}

#[test]
fn threads_change_nothing() {
    let (file, raters) = (file("a"), raters(3));
    let config = ScoreConfig { samples: 40, ..ScoreConfig::default() };
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| score(&file, &raters, &config)).unwrap()
    };
    assert_eq!(with(1), with(2));
    assert_ne!(with(1), score(&file, &raters, &ScoreConfig { seed: 1, ..config.clone() }).unwrap());
}

#[test]
fn raters_and_settings_must_fit() {
    let file = file("a");
    let refuse =
        |raters: &[LabelMap], config: &ScoreConfig| score(&file, raters, config).unwrap_err().to_string();
    let fast = ScoreConfig::fast(2);
    let group = Group { name: "x".to_owned(), classes: vec![3] };
    insta::assert_snapshot!(
        [
            refuse(&[], &fast),
            refuse(&[LabelMap::new(vec![0; 12], 3).unwrap()], &fast),
            refuse(&[LabelMap::new(vec![0; 60], 4).unwrap()], &fast),
            refuse(&raters(1), &ScoreConfig { samples: 0, ..fast.clone() }),
            refuse(&raters(1), &ScoreConfig { bins: 0, ..fast.clone() }),
            refuse(&raters(1), &ScoreConfig { tolerance: f64::NAN, ..fast.clone() }),
            refuse(&raters(1), &ScoreConfig { groups: vec![group], ..fast.clone() }),
        ]
        .join("\n")
    );
}

#[test]
fn the_memory_of_a_brain_scan_is_foreseen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    file("a").write(&path).unwrap();
    let mut header = DistributionFile::read_header(&path, &Limits::default()).unwrap();
    header.description.size = [155, 240, 240];
    header.description.region = ssn_eval::Region::whole([155, 240, 240]);
    (header.classes, header.rank) = (4, 10);
    header.description.classes = vec![String::new(); 4];
    let bytes = memory(&header, 1, &ScoreConfig::default());
    assert!((2_500_000_000..5_000_000_000).contains(&bytes), "{bytes}");
}

#[test]
fn cases_have_noise_of_their_own() {
    let draw = |case: &str, seed| {
        let file = file(case);
        SampleSource::new(&file, seed, &Steering::default()).unwrap().labels(0..20).unwrap()
    };
    assert_eq!(draw("a", 1), draw("a", 1));
    assert_ne!(draw("a", 1), draw("b", 1));
    assert_ne!(draw("a", 1), draw("a", 2));
}
