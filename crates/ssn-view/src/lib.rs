//! The viewer: what a browser needs to sample and steer the distribution of a case by itself.
//!
//! A case with its image and raters becomes a package of bytes ([`package()`]); a [`Server`] hands packages to the page
//! on this machine alone, and [`export()`] writes page and packages into one file that needs no server. The page is
//! written in TypeScript, in `page/`, and its built form is part of this crate. Nothing here knows networks or
//! datasets. `docs/reference/viewer.md` describes how the server is protected.
//!
//! Letters in shapes: `c` classes, `d h w` space, `v` voxels, `n` voxels in a package, `r` rank, `m` samples.

pub mod export;
mod image;
mod keep;
pub mod package;
mod page;
mod scores;
pub mod server;

pub use export::{ExportCase, Exported, export};
pub use package::{Packing, Rater, StoredPicture, ViewCase, package};
pub use scores::CaseHeadline;
pub use server::{Library, Listed, Server, ServerLimits};
