//! BraTS as the paper trains on it: labels 0 to 3, a brain mask, normalised channels, and the authors' CSV files.

use std::fs;
use std::path::{Component, Path};

use ssn_volume::{Image, Limits, Problem, Voxels, write};

use crate::case::Case;
use crate::dataset::{Dataset, Entry};
use crate::error::{DataError, Result};
use crate::labels::LabelCoding;
use crate::layouts::csv_cell;
use crate::normalise;
use crate::parallel::{self, Progress};
use crate::source::Source;
use crate::split::{Ratios, Split, SplitConfig, check_unique};

/// The classes after preparation.
pub const BRATS_CLASSES: [&str; 4] = ["background", "NET", "oedema", "enhancing"];

/// Labels that BraTS has had over the years: enhancing tumour is 4, and 3 where there is no 4.
const STORED_LABELS: usize = 5;
const MASK_FILE: &str = "brain_mask.nii.gz";

/// What was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Brats {
    /// Cases that were prepared now.
    pub prepared: usize,
    /// Cases that were there already.
    pub kept: usize,
    /// Cases for training, validation and test.
    pub parts: [usize; 3],
}

/// Prepares every case of a dataset into a folder of its own below `out`, and writes `train.csv`,
/// `validation.csv` and `test.csv` there.
///
/// A case whose files are all there is kept, so that a run that was stopped goes on; files are written
/// atomically. `again` prepares every case anew. The split is kept in `split.toml` and reused.
pub fn brats(dataset: &Dataset, out: &Path, seed: u64, again: bool, progress: Progress<'_>) -> Result<Brats> {
    let rule = LabelRule::of(dataset)?;
    let source = MaskSource::of(dataset)?;
    dataset.entries.iter().try_for_each(|entry| check_id(&entry.id))?;
    check_unique(&dataset.members())?;
    // Before the work, so that a split that does not fit costs no time.
    let file = out.join("split.toml");
    let split = SplitConfig { file, ratios: Ratios::BRATS, seed, ..SplitConfig::default() };
    let parts = split.keep_parts(dataset)?;
    let mut dataset = dataset.clone();
    dataset.reading.coding = LabelCoding::Plain;
    dataset.classes = (0..STORED_LABELS).map(|label| label.to_string()).collect();
    let prepared = parallel::map(dataset.entries.len(), progress, |index| -> Result<bool> {
        let (entry, folder) = (&dataset.entries[index], out.join(&dataset.entries[index].id));
        let names = names(&dataset, entry);
        if !again && names.iter().all(|name| folder.join(name).is_file()) {
            return Ok(false);
        }
        let case = prepared_case(dataset.load_raw(index)?, &rule, source)?;
        fs::create_dir_all(&folder).map_err(|error| Problem::Io(error).in_file(&folder))?;
        write_case(&folder, &names, &case)?;
        Ok(true)
    });
    let prepared =
        prepared.into_iter().collect::<Result<Vec<bool>>>()?.into_iter().filter(|new| *new).count();
    for split in Split::ALL {
        write_index(&dataset, out, split, &parts)?;
    }
    let count = |split| parts.iter().filter(|part| **part == split).count();
    Ok(Brats { prepared, kept: dataset.entries.len() - prepared, parts: Split::ALL.map(count) })
}

/// Refuses an id that would lead out of the folder of results.
fn check_id(id: &str) -> Result<()> {
    if Path::new(id).components().all(|part| matches!(part, Component::Normal(_))) && !id.is_empty() {
        return Ok(());
    }
    Err(DataError::Case {
        id: id.to_owned(),
        reason: "the id cannot be the name of a folder".to_owned(),
        advice: "give the case an id without `..` and without a slash at its start",
    })
}

/// The class of each stored label.
struct LabelRule([Option<u8>; STORED_LABELS]);

impl LabelRule {
    fn of(dataset: &Dataset) -> Result<Self> {
        let stored: Vec<u8> = match &dataset.reading.coding {
            LabelCoding::Plain => (0..dataset.classes.len()).map(|class| class as u8).collect(),
            LabelCoding::Values(values) => values.clone(),
            LabelCoding::Threshold(_) => vec![],
        };
        if stored.is_empty() || stored.iter().any(|&label| usize::from(label) >= STORED_LABELS) {
            return Err(DataError::Dataset {
                path: dataset.root.clone(),
                reason: format!(
                    "the labels are {stored:?}, but those of BraTS are 0, 1, 2 and 4 (or 0 to 4)"
                ),
                advice: "give the folder of a BraTS dataset",
            });
        }
        // In 2015 non-enhancing tumour (3) was apart from necrosis (1); later years have them as one.
        let three = if stored.contains(&4) { 1 } else { 3 };
        Ok(Self([Some(0), Some(1), Some(2), Some(three), Some(3)]))
    }
}

/// Where the brain mask comes from.
#[derive(Debug, Clone, Copy)]
enum MaskSource {
    /// Where this channel, T1, is above 0.
    Channel(usize),
    /// The dataset has one.
    File,
}

impl MaskSource {
    fn of(dataset: &Dataset) -> Result<Self> {
        if let Some(t1) = dataset.channels.iter().position(|name| name.eq_ignore_ascii_case("t1")) {
            return Ok(Self::Channel(t1));
        }
        let has_mask = |entry: &Entry| match &entry.source {
            Source::Files(files) => files.mask.is_some(),
            Source::Record(..) => false,
        };
        if dataset.entries.iter().all(has_mask) {
            return Ok(Self::File);
        }
        Err(DataError::Dataset {
            path: dataset.root.clone(),
            reason: format!(
                "the channels are {}, without T1, and not every case has a brain mask",
                dataset.channels.join(", ")
            ),
            advice: "the brain is where T1 is above 0: add T1 to every case, or a file named brainmask",
        })
    }
}

/// The case with classes 0 to 3, its brain mask, and normalised channels.
fn prepared_case(mut case: Case, rule: &LabelRule, source: MaskSource) -> Result<Case> {
    for label in case.raters.iter_mut().flatten() {
        *label = rule.0.get(usize::from(*label)).copied().flatten().unwrap_or(0);
    }
    let voxels = case.voxels();
    if let MaskSource::Channel(t1) = source {
        let values = &case.image[t1 * voxels..(t1 + 1) * voxels];
        case.mask = Some(values.iter().map(|&x| u8::from(x > 0.0)).collect());
    }
    if !case.mask.as_ref().is_some_and(|mask| mask.contains(&1)) {
        let reason = "the brain mask is empty".to_owned();
        return Err(DataError::Case { id: case.id, reason, advice: "check T1, or the file of the mask" });
    }
    for channel in case.image.chunks_exact_mut(voxels) {
        normalise::brats(channel, case.mask.as_deref());
    }
    Ok(case)
}

/// Names of the files of a prepared case: channels, raters, mask.
fn names(dataset: &Dataset, entry: &Entry) -> Vec<String> {
    let raters = match &entry.source {
        Source::Files(files) => files.raters.len(),
        Source::Record(records, index) => {
            records.items[*index].as_ref().map_or(0, |record| record.raters.len())
        }
    };
    let channels = dataset.channels.iter().map(|name| format!("{name}.nii.gz"));
    let raters = (0..raters)
        .map(|rater| if raters == 1 { "seg.nii.gz".into() } else { format!("seg_{rater}.nii.gz") });
    channels.chain(raters).chain([MASK_FILE.to_owned()]).collect()
}

fn write_case(folder: &Path, names: &[String], case: &Case) -> Result<()> {
    let [d, h, w] = case.shape;
    let channels = case.image.chunks_exact(case.voxels()).map(|channel| Voxels::F32(channel.to_vec()));
    let labels = case.raters.iter().chain(&case.mask).map(|labels| Voxels::U8(labels.clone()));
    for (name, voxels) in names.iter().zip(channels.chain(labels)) {
        let path = folder.join(name);
        let image = Image::new(voxels, [1, d, h, w], case.geometry, &Limits::default());
        write(&path, &image.map_err(|problem| problem.in_file(&path))?)?;
    }
    Ok(())
}

/// The authors' index of one part; none for a part without cases.
fn write_index(dataset: &Dataset, out: &Path, split: Split, parts: &[Split]) -> Result<()> {
    let of_part: Vec<&Entry> = dataset
        .entries
        .iter()
        .zip(parts)
        .filter(|(_, part)| **part == split)
        .map(|(entry, _)| entry)
        .collect();
    let Some(first) = of_part.first() else { return Ok(()) };
    let column = |name: &String| name.trim_end_matches(".nii.gz").replace("brain_mask", "sampling_mask");
    let header: Vec<String> = names(dataset, first).iter().map(column).collect();
    let mut text = format!("id,{}\n", header.join(","));
    for entry in of_part {
        let files = names(dataset, entry);
        let cells: Vec<String> = files.iter().map(|name| csv_cell(&format!("{}/{name}", entry.id))).collect();
        text += &format!("{},{}\n", csv_cell(&entry.id), cells.join(","));
    }
    let path = out.join(format!("{split}.csv"));
    Ok(ssn_volume::write_atomically(&path, |file| file.write_all(text.as_bytes()))?)
}
