//! The presets of runs: texts that read like any config file.

use ssn_data::nearest;

/// A choice of settings for everything but the dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunPreset {
    /// For data of your own.
    General,
    /// The network of `ssn demo`.
    Demo,
    /// The paper's 2D experiment as it is described.
    Lidc,
    /// The paper's 2D experiment as the authors' code runs it.
    LidcAsCoded,
    /// The paper's 3D experiment with patches of 30 mm.
    Brats,
    /// The paper's 3D experiment with patches of 60 mm.
    Brats60mm,
}

impl RunPreset {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::General, Self::Demo, Self::Lidc, Self::LidcAsCoded, Self::Brats, Self::Brats60mm];

    /// The name in config files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::General => "general",
            Self::Demo => "demo",
            Self::Lidc => "lidc",
            Self::LidcAsCoded => "lidc-as-coded",
            Self::Brats => "brats",
            Self::Brats60mm => "brats-60mm",
        }
    }

    /// The preset of a name.
    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
    }

    /// The preset of a name, or a sentence that says which there are.
    pub fn parse(name: &str) -> Result<Self, String> {
        if name == "toy" {
            return Err("the toy problem has a verb of its own: ssn toy".to_owned());
        }
        Self::named(name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name);
            let hint =
                nearest(name, names).map_or(".".to_owned(), |near| format!("; did you mean `{near}`?"));
            format!("there is no preset `{name}`{hint} There are {}", names.join(", "))
        })
    }

    /// Its text: a config without `[data]`.
    pub fn text(self) -> &'static str {
        match self {
            Self::General => include_str!("../../presets/general.toml"),
            Self::Demo => include_str!("../../presets/demo.toml"),
            Self::Lidc => include_str!("../../presets/lidc.toml"),
            Self::LidcAsCoded => include_str!("../../presets/lidc-as-coded.toml"),
            Self::Brats => include_str!("../../presets/brats.toml"),
            Self::Brats60mm => include_str!("../../presets/brats-60mm.toml"),
        }
    }
}
