//! Layouts of datasets, one or a few in each file, which return a [`Draft`].
//!
//! A new layout is a file, two rows here (its module and its place in a list of recognizers), and a variant of
//! [`Layout`](crate::Layout) with its description.

mod bids;
mod cache;
mod case_folders;
mod csv_index;
mod dataset_json;
mod draft;
mod folder_pair;
mod images;
mod known_labels;
mod label_folders;
mod label_sets;
mod left_out;
mod lidc;
mod one_folder;
mod qubiq;
mod rater_folder;
mod rater_folders;
mod recognize;
mod sources;

pub use cache::{CACHE_ENDING, encode as encode_cache};
pub(crate) use draft::label_values;
pub use label_sets::{FileContent, FilesByCase};
pub use recognize::DatasetOverrides;

use std::path::Path;

use draft::Draft;
use ssn_io::Result;

use crate::resolve::{PartPath, Tree};

/// Recognizes one layout of many files: returns a draft if the folder has it.
type Attempt = fn(&Tree<'_>, &Path) -> Result<Option<Draft>>;

/// Recognizes one layout with a description or an index.
type DescribedAttempt = fn(&Path) -> Result<Option<Draft>>;

/// Opens files that hold many cases; `None` if there are none, or several where one holds all parts.
type Open = fn(&[PartPath]) -> Result<Option<Draft>>;

/// Layouts with a description or an index, the most specific ones first.
const DESCRIBED: [DescribedAttempt; 2] = [dataset_json::recognize, csv_index::recognize];
/// Layouts of files with many cases, by how they are named. Such a file may also be next to a dataset of another layout.
const PACKED: [(&[&str], Open); 3] = [
    (&[CACHE_ENDING], |files| alone(files, cache::open)),
    (&[".pickle", ".pickle.gz", ".pkl", ".pkl.gz"], |files| {
        files.first().map(|_| lidc::open_pickle(files)).transpose()
    }),
    (&[".hdf5", ".h5"], |files| alone(files, lidc::open_hdf5)),
];
/// Layouts of many files, the most specific ones first.
const OF_FOLDERS: [Attempt; 6] = [
    bids::recognize,
    qubiq::recognize,
    lidc::recognize_png,
    lidc::recognize_jpeg,
    rater_folders::recognize,
    folder_pair::recognize,
];
/// Layouts by the names of files alone, after all others; prediction finds these images by the channels of the model.
const BY_NAMES: [Attempt; 2] = [one_folder::recognize, case_folders::recognize];

fn alone(files: &[PartPath], open: fn(&Path) -> Result<Draft>) -> Result<Option<Draft>> {
    let [(_, file)] = files else { return Ok(None) };
    open(file).map(Some)
}
