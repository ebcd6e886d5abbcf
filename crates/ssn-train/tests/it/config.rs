//! Configs: presets are the paper's, layers win in order, and mistakes are told with their place.

use ssn_data::{AugmentPreset, CaseOrder};
use ssn_nn::backbones::BackboneConfig;
use ssn_nn::{HeadConfig, Method, ModelConfig, Pairing, Schedule};
use ssn_train::LossConfig;
use ssn_train::run::{ConfigSources, Override, RunConfig, RunPreset};

const DATA: &str = "[data]\npath = \"set\"\n";

fn sources(preset: Option<RunPreset>, text: &str, settings: &[&str]) -> ConfigSources {
    let overrides = settings.iter().map(|text| Override::parse(text).unwrap()).collect();
    ConfigSources { preset, file: Some(("folder/ssn.toml".into(), text.to_owned())), overrides }
}

fn config(preset: RunPreset, settings: &[&str]) -> RunConfig {
    sources(Some(preset), DATA, settings).config().unwrap()
}

fn wrong(text: &str, settings: &[&str]) -> String {
    sources(None, text, settings).config().unwrap_err().to_string()
}

#[test]
fn the_presets_are_the_papers_experiments() {
    let lidc = config(RunPreset::Lidc, &[]);
    assert_eq!(lidc.model.backbone.as_ref(), Some(&ModelConfig::lidc().backbone));
    assert_eq!((lidc.model.head, lidc.batches.batch_size), (ModelConfig::lidc().head, 12));
    assert_eq!((lidc.training.steps, lidc.loss.samples), (500_000, 20));
    assert_eq!((lidc.loss.pairing, lidc.optimizer.method), (Pairing::Independent, Method::adam()));
    assert_eq!((lidc.optimizer.learning_rate, &lidc.optimizer.decay), (1e-3, &Schedule::Constant));
    assert_eq!(lidc.augmentation, AugmentPreset::Lidc.config());
    let as_coded = config(RunPreset::LidcAsCoded, &[]);
    assert_eq!(as_coded.augmentation, AugmentPreset::LidcAsCoded.config());
    assert_eq!(RunConfig { augmentation: lidc.augmentation.clone(), ..as_coded }, lidc);

    let brats = config(RunPreset::Brats, &[]);
    assert_eq!(brats.model.backbone.as_ref(), Some(&ModelConfig::brats().backbone));
    assert_eq!((brats.batches.batch_size, brats.batches.order), (10, CaseOrder::BRATS));
    assert_eq!((brats.loss.pairing, brats.training.steps), (Pairing::Antithetic, 1_200 * 50 * 20 / 10));
    let larger = config(RunPreset::Brats60mm, &[]);
    assert_eq!((larger.batches.batch_size, larger.training.steps), (4, 1_200 * 50 * 20 / 4));
    assert_eq!(larger.batches.patch.target_size, Some([60; 3]));
    // Halved at the same epochs.
    let milestones = |config: &RunConfig, steps_per_epoch: u64| match &config.optimizer.decay {
        Schedule::MultiStep { milestones, .. } => {
            milestones.iter().map(|step| step / steps_per_epoch).collect()
        }
        _ => vec![],
    };
    assert_eq!(milestones(&brats, 100), [440, 640, 800, 900, 980, 1050]);
    assert_eq!(milestones(&larger, 250), [440, 640, 800, 900, 980, 1050]);
}

#[test]
fn a_frozen_config_is_read_back_the_same() {
    for preset in RunPreset::ALL {
        let config = config(preset, &[]);
        let text = toml::to_string(&config).unwrap();
        assert_eq!(ConfigSources::frozen("config.toml".into(), text).unwrap(), config, "{}", preset.name());
    }
}

#[test]
fn later_layers_win() {
    let text =
        format!("preset = \"lidc\"\n{DATA}[training]\nsteps = 7000\n[model]\nhead = \"deterministic\"\n");
    let from_file = sources(None, &text, &[]).config().unwrap();
    assert_eq!((from_file.training.steps, from_file.batches.batch_size), (7000, 12));
    assert_eq!(from_file.model.head, HeadConfig::Deterministic);
    assert_eq!(from_file.data.path, std::path::Path::new("folder/set"));
    let settings = [
        "training.steps=9",
        "model.head.stochastic.rank=3",
        "optimizer.method.sgd.momentum=0.9",
        "loss.dice=1",
    ];
    let set = sources(Some(RunPreset::Small), &text, &settings);
    let set = sources(
        set.preset,
        &text,
        &[&settings[..], &["loss.pretrain_steps=2", "loss.likelihood_steps=2"]].concat(),
    )
    .config()
    .unwrap();
    assert_eq!(set.training.steps, 9);
    assert!(matches!(set.model.head, HeadConfig::Stochastic(head) if head.rank == 3));
    assert_eq!(set.optimizer.method, Method::sgd(0.9));
    assert_eq!(set.model.backbone, None);
}

#[test]
fn phases_of_a_preset_are_shortened_where_they_do_not_fit() {
    let phases = |settings: &[&str]| {
        let sources = sources(Some(RunPreset::Small), DATA, settings);
        let config = sources.config().unwrap();
        (config.loss.pretrain_steps, config.loss.likelihood_steps, sources.shortened(&config))
    };
    let (pretrain, likelihood, none) = phases(&[]);
    assert!(pretrain > 0 && likelihood > 0 && none.is_empty());
    assert_eq!(
        phases(&[&format!("training.steps={}", pretrain + likelihood + 1)]),
        (pretrain, likelihood, vec![])
    );
    let (shorter, shortest, sentences) = phases(&["training.steps=60"]);
    assert_eq!(
        (shorter, shortest),
        (30 * pretrain / (pretrain + likelihood), 30 * likelihood / (pretrain + likelihood))
    );
    assert_eq!(sentences.len(), 2);
    assert_eq!(
        sentences[0],
        format!("loss.pretrain_steps is {shorter} instead of {pretrain}, because training.steps is 60")
    );
    let (own, rest, sentences) = phases(&["training.steps=60", "loss.pretrain_steps=50"]);
    assert_eq!((own, rest, sentences.len()), (50, 5, 1));
}

#[test]
fn another_choice_replaces_the_whole_of_the_old_one() {
    let text =
        format!("preset = \"brats\"\n{DATA}[batches]\npatch = {{ sampler = {{ kind = \"whole\" }} }}\n");
    let config = sources(None, &text, &[]).config().unwrap();
    assert_eq!(config.batches.patch.sampler, ssn_data::PatchSampler::Whole);
    assert_eq!(config.batches.patch.target_size, Some([30; 3]), "what was not named stays");
    let unet = "[model.backbone.unet]\nwidths = [4]\nstrides = []\nkernels = [[1, 3, 3]]\ndecoder_widths = []\n\
                norm = { kind = \"batch\", eps = 1e-5, momentum = 0.1 }\nactivation = \"relu\"\n";
    let config = sources(None, &format!("preset = \"brats\"\n{DATA}{unet}"), &[]).config().unwrap();
    assert!(matches!(config.model.backbone, Some(BackboneConfig::Unet(_))));
}

#[test]
fn mistakes_are_told_with_their_place() {
    let data = |line: &str| wrong(&format!("{DATA}{line}\n"), &[]);
    insta::assert_snapshot!(
        [
            wrong("", &[]),
            wrong("[data\n", &[]),
            wrong(&format!("preset = \"lidd\"\n{DATA}"), &[]),
            wrong(&format!("preset = 3\n{DATA}"), &[]),
            data("pth = \"x\""),
            data("[losss]"),
            data("[loss]\n# how many\nsmaples = 10"),
            data("[loss]\nsamples = \"many\""),
            data("[loss]\nsamples = -1"),
            data("[loss]\npairing = \"antithetics\""),
            data("[training]\nsteps = 10\n[loss]\npretrain_steps = 10"),
            data("[training]\nvalidate = 10"),
            data("[model]\nhead = { stochastic = { rnk = 3 } }"),
            data("[model]\nhead = \"diagonal\""),
            data("[model]\nbackbone = { unett = {} }"),
            data("[model]\nplan = { width = 0 }"),
            data("[optimizer]\nmethod = { adam = { beta = 0.9 } }"),
            data("[optimizer]\nlearning_rate = 0"),
            data("[batches]\npatch = { sampler = { kind = \"random\", sizes = [1, 2, 3] } }"),
            wrong(DATA, &["training.stesp=10"]),
            wrong(DATA, &["training.steps=many"]),
            wrong(DATA, &["model.head.stochastic.rank=ten"]),
            wrong(DATA, &["trainin.steps=10"]),
            wrong(
                DATA,
                &["training.sync_batch_norm=always", "model.backbone={torchscript=\"x.pt\", features=3}"]
            ),
        ]
        .join("\n")
    );
    let parse = |text: &str| Override::parse(text).unwrap_err();
    insta::assert_snapshot!([parse("training.steps"), parse(".steps=3")].join("\n"));
}

#[test]
fn a_preset_with_a_moving_average_takes_a_torchscript_backbone() {
    let own = config(RunPreset::General, &["model.backbone={torchscript=\"x.pt\", features=3}"]);
    assert_eq!(own.training.ema, config(RunPreset::General, &[]).training.ema);
    assert!(own.training.ema > 0);
}

#[test]
fn the_path_of_a_torchscript_backbone_starts_at_the_file_that_names_it() {
    let path = |text: &str, settings: &[&str]| match sources(None, text, settings)
        .config()
        .unwrap()
        .model
        .backbone
    {
        Some(BackboneConfig::Torchscript(backbone)) => (backbone.torchscript, backbone.features),
        other => panic!("{other:?}"),
    };
    let text = format!("{DATA}[model]\nbackbone = {{ torchscript = \"nets/x.pt\", features = 3 }}\n");
    assert_eq!(path(&text, &[]), ("folder/nets/x.pt".into(), 3));
    let named = "model.backbone={torchscript=\"y.pt\", features=5}";
    assert_eq!(path(&text, &[named]), ("y.pt".into(), 5));
}

#[test]
fn settings_without_effect_are_told_where_they_are_written() {
    let of = |preset, settings: &[&str]| {
        let text = format!("{DATA}[loss]\nsimilarity = \"dice\"\n");
        let sources = sources(Some(preset), &text, settings);
        sources.without_effect(&sources.config().unwrap())
    };
    let told = of(RunPreset::LidcEnergy, &["model.head=deterministic", "loss.samples=4"]);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].starts_with("--set loss.samples=4: loss.samples has no effect: the head `deterministic`")
    );
    assert!(told[1].starts_with("line 4: loss.similarity has no effect"), "{told:?}");
    let told = of(RunPreset::LidcEnergy, &["model.head=deterministic", "loss={samples=4,kind=\"energy\"}"]);
    assert!(told.iter().any(|sentence| sentence.contains("loss.samples has no effect")), "{told:?}");
    // The settings of a preset may serve another head.
    assert_eq!(of(RunPreset::LidcEnergy, &[]), [""; 0]);
    let told = of(RunPreset::Lidc, &["training.validate_every=0", "training.patience=3"]);
    assert!(told[0].contains("loss.similarity has no effect: loss.kind is"), "{told:?}");
    assert_eq!(
        told[1],
        "--set training.patience=3: training.patience has no effect: training.validate_every is 0"
    );
}

#[test]
fn a_loss_of_another_kind_starts_from_its_own_settings_and_one_of_the_same_keeps_the_presets() {
    let of = |loss: &str| {
        let text = format!("{DATA}[loss]\n{loss}\n");
        sources(Some(RunPreset::LidcEnergy), &text, &[]).config().unwrap().loss
    };
    let preset = config(RunPreset::LidcEnergy, &[]).loss;
    assert_eq!(of("samples = 4"), LossConfig { samples: 4, ..preset });
    assert_eq!(of("kind = \"energy\"\nsamples = 4"), LossConfig { samples: 4, ..preset });
    assert_eq!(of("kind = \"likelihood\""), LossConfig::default());
}
