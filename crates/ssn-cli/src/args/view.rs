//! The arguments of `ssn view`.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use clap::Args;

/// Shows distributions with their images and raters in the browser, where they are sampled and steered as with `ssn sample`.
///
/// The page is served to this machine alone, by an address that holds a secret token. With --export, it is written to a
/// file with the cases in it, which needs no server and no network.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Sample I in the page is sample I of `ssn sample` with the same seed and settings, voxel for voxel. \
                  docs/reference/viewer.md tells what the page can do and what guards the server. Examples:\n  \
                  ssn view predictions\n  \
                  ssn view predictions/case1.ssn.safetensors --no-open --port 8000\n  \
                  ssn view predictions --case case1 --case case7 --export cases.html"
)]
pub struct ViewArgs {
    /// A distribution file (.ssn.safetensors), or a folder of them.
    #[arg(value_name = "FILE|FOLDER")]
    pub input: PathBuf,

    /// Only the case of this id. May be repeated.
    #[arg(long = "case", value_name = "ID")]
    pub cases: Vec<String>,

    /// The folder or file of the dataset, or a config (.toml) that names it; without it, what was predicted.
    #[arg(long, value_name = "DATASET|CONFIG")]
    pub data: Option<PathBuf>,

    /// The seed that the page starts with.
    #[arg(long, default_value_t = 0, value_name = "S")]
    pub seed: u64,

    /// Cut images to the box of what can change or is marked.
    #[arg(long)]
    pub crop: bool,

    /// Write page and cases to this file, and serve nothing.
    #[arg(long, value_name = "HTML", conflicts_with_all = ["port", "host", "no_open"])]
    pub export: Option<PathBuf>,

    /// Replace a file that is there already.
    #[arg(long, requires = "export")]
    pub overwrite: bool,

    /// The port to serve at [default: any that is free].
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,

    /// Do not open the browser.
    #[arg(long)]
    pub no_open: bool,

    /// The address to serve at; another than this machine's own needs --allow-remote.
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub host: IpAddr,

    /// Let other machines reach the page, unencrypted.
    #[arg(long)]
    pub allow_remote: bool,
}
