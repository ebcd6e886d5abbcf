//! Where this checkout lies, and where libtorch belongs in it.

use std::path::{Path, PathBuf};

/// The root folder of the workspace.
///
/// It is fixed when `xtask` is compiled: Cargo rebuilds the crate when the checkout moves.
pub fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// The folder that `setup` fills; `.cargo/config.toml` points LIBTORCH to its `torch` folder.
pub fn libtorch() -> PathBuf {
    root().join("libtorch")
}
