//! The cases to be shown, with the images and raters of their dataset as far as they are there.

use std::path::{Path, PathBuf};

use ssn_args::SplitChoice;
use ssn_data::text::listed;
use ssn_data::{Dataset, LabelPolicy, nearest};
use ssn_eval::predictions::ABOUT_FILE;
use ssn_eval::{About, CaseDescription, CaseScores, DistributionFile, ErrorKind, Found, Predictions};
use ssn_io::Limits;
use ssn_view::{CaseHeadline, Packing, Rater, StoredPicture, ViewCase, package};

use crate::exit::Failure;
use ssn_eval::evaluation::{check_classes, load_with_image, open, open_of, places, written_scores};

/// A dataset, and the place in it of each case that it has.
type Placed = (Dataset, Vec<Option<usize>>);

/// The cases, and the dataset if there is one.
pub(super) struct Gathered {
    /// The name of the folder or file.
    pub(super) title: String,
    /// The cases, at least one.
    pub(super) found: Vec<Found>,
    /// The dataset.
    dataset: Option<Placed>,
    /// What is left out, and why.
    pub(super) note: Option<String>,
    /// The folder of the predictions.
    folder: PathBuf,
    packing: Packing,
}

impl Gathered {
    /// Finds the cases and looks for their dataset.
    pub(super) fn open(
        input: &Path,
        cases: &[String],
        data: Option<&Path>,
        packing: Packing,
    ) -> Result<Self, Failure> {
        let found = chosen(ssn_eval::find_distribution_files(&[input.to_owned()])?, cases, input)?;
        let title = whole(input).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (dataset, note) = match dataset(input, data, &found) {
            Ok(Some((dataset, places))) => {
                let unknown = places.iter().filter(|place| place.is_none()).count();
                let note = (unknown > 0).then(|| {
                    let (all, root) = (found.len(), dataset.root.display());
                    format!(
                        "{unknown} of {all} cases are not in {root}, and are shown without image and raters"
                    )
                });
                (Some((dataset, places)), note)
            }
            Ok(None) => (None, Some(left_out("the predictions do not say what they are of"))),
            Err(failure) if data.is_some() => return Err(failure),
            Err(failure) => (None, Some(left_out(&failure.message))),
        };
        Ok(Self { title, found, dataset, note, folder: folder(input), packing })
    }

    /// The scores that `ssn evaluate` wrote of a case.
    fn scores(&self, number: usize) -> Option<CaseScores> {
        Some(written_scores(&self.folder, self.found[number].id())?.scores)
    }

    /// The scores by which a case is listed.
    pub(super) fn headline(&self, number: usize) -> Option<CaseHeadline> {
        self.scores(number).as_ref().map(CaseHeadline::new)
    }

    /// Reads and packs a case.
    pub(super) fn package(&self, number: usize) -> Result<Vec<u8>, Failure> {
        let found = &self.found[number];
        let place = self.dataset.as_ref().and_then(|(dataset, places)| Some((dataset, places[number]?)));
        let beside = || match place {
            None => Ok((None, vec![])),
            Some((dataset, place)) => material(dataset, place, &found.header.description),
        };
        let read = || DistributionFile::read(&found.path, &Limits::default());
        let (file, beside) = rayon::join(read, beside);
        let (file, (picture, raters)) = (file?, beside?);
        Ok(package(&ViewCase { file, picture, raters, scores: self.scores(number) }, &self.packing)?)
    }
}

/// Image and raters of a case.
fn material(
    dataset: &Dataset,
    place: usize,
    about: &CaseDescription,
) -> Result<(Option<StoredPicture>, Vec<Rater>), Failure> {
    let (case, maps) = load_with_image(dataset, place, about)?;
    let names = dataset.rater_names_of(&case, maps.len());
    let picture = (case.channels > 0).then(|| StoredPicture {
        channels: channel_names(dataset, case.channels),
        color: dataset.is_color() && about.size[0] == 1,
        values: case.image,
    });
    let raters = maps.into_iter().zip(names).map(|(map, name)| Rater { name, labels: map.into_labels() });
    Ok((picture, raters.collect()))
}

fn channel_names(dataset: &Dataset, channels: usize) -> Vec<String> {
    let name = |channel: usize| match dataset.channels.get(channel) {
        Some(name) => name.clone(),
        None => format!("channel {channel}"),
    };
    (0..channels).map(name).collect()
}

/// The cases that were asked for, in the order of the folder.
fn chosen(found: Vec<Found>, names: &[String], input: &Path) -> Result<Vec<Found>, Failure> {
    let known = || found.iter().map(Found::id);
    for name in names {
        if !known().any(|id| id == name) {
            let hint = match nearest(name, known()) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("it has {}", listed(&known().collect::<Vec<_>>(), 5)),
            };
            let message = format!("there is no case {name:?} in {}; {hint}", input.display());
            return Err(Failure::new(ErrorKind::Usage, message));
        }
    }
    let wanted = |case: &Found| names.is_empty() || names.iter().any(|name| name == case.id());
    Ok(found.into_iter().filter(wanted).collect())
}

/// The dataset that was named, or that the predictions name, with the place of each case; nothing where none is named.
fn dataset(input: &Path, data: Option<&Path>, found: &[Found]) -> Result<Option<Placed>, Failure> {
    let classes = || found.first().map(|case| case.header.description.classes.clone()).unwrap_or_default();
    let (dataset, _) = match (data, about(input)?) {
        (data, Some(about)) => open_of(&about, data, &classes(), SplitChoice::All)?,
        (Some(data), None) => open(data, SplitChoice::All, None)?,
        (None, None) => return Ok(None),
    };
    let dataset = dataset.with_labels(LabelPolicy::Optional);
    check_classes(&dataset, found)?;
    let places = places(&dataset);
    let places = found.iter().map(|case| places.get(case.id()).copied()).collect();
    Ok(Some((dataset, places)))
}

/// What the folder of the predictions says of them.
fn about(input: &Path) -> Result<Option<About>, Failure> {
    let folder = folder(input);
    if !folder.join(ABOUT_FILE).is_file() {
        return Ok(None);
    }
    Ok(Some(Predictions::open(&folder)?.about().clone()))
}

/// The folder that was named, or that of the file.
fn folder(input: &Path) -> PathBuf {
    let whole = whole(input);
    if whole.is_dir() { whole } else { whole.parent().unwrap_or(Path::new(".")).to_owned() }
}

fn whole(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn left_out(reason: &str) -> String {
    format!("Images and raters are left out: {reason}. Name the dataset with --data.")
}
