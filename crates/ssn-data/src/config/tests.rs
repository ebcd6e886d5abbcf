//! What a config may say, and what is said about mistakes.

use super::*;
use crate::split::Ratios;

#[test]
fn a_whole_config_is_understood() {
    let text = r#"
        [data]
        path = "set"
        layout = "nn-unet"
        channels = ["flair"]
        classes = ["background", "lesion"]
        label_values = [0, 255]
        normalization = { kind = "scale", subtract = 0.5 }
        spacing = [1.0, 1.0, 2.0]
        crop_to_mask = true
        split = { ratios = [60, 10, 30], seed = 4 }
        [training]
        anything = 1
    "#;
    let config = DataConfig::parse(text).unwrap();
    assert_eq!(
        (config.layout, config.split.ratios, config.split.seed),
        (Some(Layout::NnUnet), Ratios::BRATS, 4)
    );
    assert_eq!(config.normalization, Normalization::Scale { subtract: 0.5, divide: 1.0 });
    let least = DataConfig::parse("[data]\npath = \"x\"").unwrap();
    assert_eq!((least.normalization, least.split), (Normalization::None, SplitConfig::default()));
}

#[test]
fn mistakes_are_explained() {
    let message = |text: &str| DataConfig::parse(text).unwrap_err();
    let data = |line: &str| message(&format!("[data]\npath = \"x\"\n{line}\n"));
    insta::assert_snapshot!(
        [
            data("chanels = [\"a\"]"),
            data("layout = \"nnunet\""),
            data("normalization = { kind = \"z-scor\" }"),
            data("normalization = { kind = \"ct-window\", center = 40, width = 400 }"),
            data("split = { ratio = [1, 1, 1] }"),
            data("split = { ratios = [0, 1, 1] }"),
            data("split = { folds = 5, fold = 5 }"),
            data("spacing = [1.0, 0.0, 1.0]"),
            data("label_values = [0, 1]\nlabel_threshold = 3"),
            data("path = 3"),
            message("[dtaa]\npath = \"x\""),
            message("[model]\n"),
            message("[data]\nlayout = \"csv\""),
            message("[data\n"),
        ]
        .join("\n")
    );
}
