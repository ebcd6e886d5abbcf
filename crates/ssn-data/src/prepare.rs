//! Preparation of the paper's two datasets, once, so that training reads what it needs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path};

use ssn_core::Control;
use ssn_io::{Error, Problem, Result, Voxels, write_atomically};

use crate::config::template::data_sections;
use crate::dataset::{
    Case, CaseEntry, Dataset, LabelCoding, Normalization, PackedCase, PackedImage, PackedLabels, Ratios,
    Split, SplitConfig,
};
use crate::layouts::{DatasetOverrides, encode_cache};
use crate::parallel::{self, Shard, ShardProgress};
use crate::text::csv_text;

/// The classes after preparation.
pub const BRATS_CLASSES: [&str; 4] = ["background", "NET", "oedema", "enhancing"];

/// Labels that BraTS has had over the years: enhancing tumour is 4, and 3 where there is no 4.
const STORED_LABELS: usize = 5;
/// Names that T1 has had over the years.
const T1_NAMES: [&str; 3] = ["t1", "t1n", "t1w"];
const MASK_FILE: &str = "brain_mask.nii.gz";

/// The config that is written beside the prepared cases.
pub const BRATS_CONFIG: &str = "ssn.toml";

/// How BraTS is prepared.
#[derive(Debug, Clone, Copy)]
pub struct BratsOptions<'a> {
    /// The seed of the split.
    pub seed: u64,
    /// The cases that this process prepares.
    pub shard: Shard,
    /// Prepare every case anew.
    pub overwrite: bool,
    /// What the config says before `[data]`.
    pub config_head: &'a str,
}

/// What was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BratsSummary {
    /// Cases that were prepared now.
    pub prepared: usize,
    /// Cases that were there already.
    pub kept: usize,
    /// Cases for training, validation and test.
    pub parts: [usize; 3],
    /// The cases of other shards that are not all there yet, and without which CSV files and config are not written.
    pub waiting: Option<ShardProgress>,
}

/// Prepares every case of a dataset, or of a shard of it, into a folder of its own below `out`; once all cases are there,
/// writes `train.csv`, `validation.csv`, `test.csv` and a config there.
///
/// A case whose files are all there is kept, so that a run that was stopped goes on; files are written
/// atomically. The split is kept in `split.toml` and reused.
pub fn brats(
    dataset: &Dataset,
    out: &Path,
    options: &BratsOptions<'_>,
    control: Control<'_>,
) -> Result<BratsSummary> {
    let BratsOptions { seed, shard, overwrite, .. } = *options;
    let rule = label_rule(dataset)?;
    let t1 = t1_channel(dataset)?;
    dataset.entries.iter().try_for_each(|entry| check_id(&entry.id))?;
    dataset.check_unique()?;
    // Before the work, so that a split that does not fit costs no time.
    let file = out.join("split.toml");
    let split = SplitConfig { file, ratios: Ratios::BRATS, seed, ..SplitConfig::default() };
    let parts = split.keep_parts(dataset)?;
    let mut dataset = dataset.clone();
    dataset.reading.coding = LabelCoding::Plain;
    dataset.classes = (0..STORED_LABELS).map(|label| label.to_string()).collect();
    let all = dataset.entries.iter().flat_map(CaseEntry::raters).collect();
    let names = |index: usize| names(&dataset, &dataset.entries[index], &all);
    let folder = |index: usize| out.join(&dataset.entries[index].id);
    let is_there = |index: usize| names(index).iter().all(|name| folder(index).join(name).is_file());
    let own = shard.own(dataset.entries.len());
    let new = own.iter().filter(|&&index| overwrite || !is_there(index));
    let of_case = |index: usize| names(index).into_iter().map(move |name| (index, name));
    let files = new.flat_map(|&index| of_case(index));
    let files = files.map(|(index, name)| format!("{}/{name}", dataset.entries[index].id));
    let tables = Split::ALL.map(|split| format!("{split}.csv"));
    claim(out, &files.chain(tables).chain([BRATS_CONFIG.to_owned()]).collect::<Vec<_>>())?;
    let phase = control.phase("preparing", own.len(), "cases");
    let prepared = parallel::map_until(own.len(), &phase, |number, meter| -> Result<bool> {
        let index = own[number];
        if !overwrite && is_there(index) {
            return Ok(false);
        }
        let folder = folder(index);
        let case = dataset.load_raw(index)?;
        meter.saw(case.bytes());
        let case = prepared_case(case, rule, t1)?;
        fs::create_dir_all(&folder).map_err(|error| Problem::Io(error).in_file(&folder))?;
        write_case(&folder, &names(index), &case)?;
        Ok(true)
    })?;
    drop(phase);
    let prepared = parallel::all_or_error(prepared, |number| &dataset.entries[own[number]].id)?;
    let prepared = prepared.into_iter().filter(|new| *new).count();
    let waiting = shard.waiting(dataset.entries.len(), is_there);
    if waiting.is_none() {
        for split in Split::ALL {
            write_index(&dataset, out, split, &parts)?;
        }
        write_config(out, options.config_head)?;
    }
    let count = |split| parts.iter().filter(|part| **part == split).count();
    Ok(BratsSummary { prepared, kept: own.len() - prepared, parts: Split::ALL.map(count), waiting })
}

/// Refuses to replace files that are not ours.
fn claim(out: &Path, names: &[String]) -> Result<()> {
    match ssn_io::claim(out, names)? {
        None => Ok(()),
        Some(path) => Err(Error::data(
            path,
            "it is there, but .ssn-files does not list it as written by this program: it is not replaced",
        )
        .advise("move it away, or choose another folder with --out")),
    }
}

/// The config of the prepared dataset: its channels are normalized already.
fn write_config(out: &Path, head: &str) -> Result<()> {
    let classes = BRATS_CLASSES.map(str::to_owned).to_vec();
    let known = DatasetOverrides {
        classes: Some(classes),
        coding: Some(LabelCoding::Plain),
        ..DatasetOverrides::default()
    };
    let dataset = Dataset::open_with(out, &known)?;
    let first = dataset.load_raw(0)?;
    let text = head.to_owned() + &data_sections(&dataset, Path::new("."), &first, Normalization::None);
    Ok(write_atomically(&out.join(BRATS_CONFIG), |file| file.write_all(text.as_bytes()))?)
}

/// Refuses an id that would lead out of the folder of results.
fn check_id(id: &str) -> Result<()> {
    if Path::new(id).components().all(|part| matches!(part, Component::Normal(_))) && !id.is_empty() {
        return Ok(());
    }
    Err(Error::case(id, "the id cannot be the name of a folder")
        .advise("give the case an id without `..` and without a slash at its start"))
}

/// The class of each stored label.
fn label_rule(dataset: &Dataset) -> Result<[u8; STORED_LABELS]> {
    let stored: Vec<u8> = match &dataset.reading.coding {
        LabelCoding::Plain => (0..dataset.classes.len()).map(|class| class as u8).collect(),
        LabelCoding::Values(values) => values.clone(),
        LabelCoding::Threshold(_) => vec![],
    };
    if stored.is_empty() || stored.iter().any(|&label| usize::from(label) >= STORED_LABELS) {
        let reason = format!("the labels are {stored:?}, but those of BraTS are 0, 1, 2 and 4 (or 0 to 4)");
        return Err(Error::data(&dataset.root, reason).advise("give the folder of a BraTS dataset"));
    }
    // In 2015 non-enhancing tumour (3) was apart from necrosis (1); later years have them as one.
    let three = if stored.contains(&4) { 1 } else { 3 };
    Ok([0, 1, 2, three, 3])
}

/// The channel T1, which is above 0 in the brain; `None` if the dataset has brain masks instead.
fn t1_channel(dataset: &Dataset) -> Result<Option<usize>> {
    let t1 = dataset.channels.iter().position(|name| T1_NAMES.contains(&name.to_lowercase().as_str()));
    if t1.is_some() || dataset.entries.iter().all(|entry| entry.files.mask.is_some()) {
        return Ok(t1);
    }
    let reason = format!(
        "the channels are {}, without T1, and not every case has a brain mask",
        dataset.channels.join(", ")
    );
    let advice = "the brain is where T1 is above 0: add T1 to every case, or a file named brainmask";
    Err(Error::data(&dataset.root, reason).advise(advice))
}

/// The case with classes 0 to 3, its brain mask, and normalized channels.
fn prepared_case(mut case: Case, rule: [u8; STORED_LABELS], t1: Option<usize>) -> Result<Case> {
    for label in case.raters.iter_mut().flatten() {
        *label = rule.get(usize::from(*label)).copied().unwrap_or(0);
    }
    let voxels = case.voxels();
    if let Some(t1) = t1 {
        let values = &case.image[t1 * voxels..(t1 + 1) * voxels];
        case.mask = Some(values.iter().map(|&x| u8::from(x > 0.0)).collect());
    }
    if !case.mask.as_ref().is_some_and(|mask| mask.contains(&1)) {
        let reason = "the brain mask is empty".to_owned();
        return Err(Error::case(case.id, reason).advise("check T1, or the file of the mask"));
    }
    for channel in case.image.chunks_exact_mut(voxels) {
        Normalization::Brats.apply(channel, case.mask.as_deref());
    }
    Ok(case)
}

/// The name of a rater's file, without its ending.
fn rater_name(number: usize, all: &BTreeSet<usize>) -> String {
    if all.len() == 1 { "seg".to_owned() } else { format!("seg_{number}") }
}

/// Names of the files of a prepared case: channels, raters, mask.
fn names(dataset: &Dataset, entry: &CaseEntry, all: &BTreeSet<usize>) -> Vec<String> {
    let channels = dataset.channels.iter().map(|name| format!("{name}.nii.gz"));
    let raters = entry.raters().into_iter().map(|number| format!("{}.nii.gz", rater_name(number, all)));
    channels.chain(raters).chain([MASK_FILE.to_owned()]).collect()
}

fn write_case(folder: &Path, names: &[String], case: &Case) -> Result<()> {
    let channels = case.image.chunks_exact(case.voxels()).map(|channel| Voxels::F32(channel.to_vec()));
    let labels = case.raters.iter().chain(&case.mask).map(|labels| Voxels::U8(labels.clone()));
    for (name, voxels) in names.iter().zip(channels.chain(labels)) {
        case.write_array(&folder.join(name), voxels)?;
    }
    Ok(())
}

/// The authors' index of one part; none for a part without cases.
fn write_index(dataset: &Dataset, out: &Path, split: Split, parts: &[Split]) -> Result<()> {
    let of_part = dataset.entries.iter().zip(parts).filter(|(_, part)| **part == split);
    let mut of_part = of_part.map(|(entry, _)| entry).peekable();
    if of_part.peek().is_none() {
        return Ok(());
    }
    let all: BTreeSet<usize> = dataset.entries.iter().flat_map(CaseEntry::raters).collect();
    let raters_columns = all.iter().map(|number| rater_name(*number, &all));
    let columns = ["id".to_owned()].into_iter().chain(dataset.channels.iter().cloned());
    let mut table = vec![columns.chain(raters_columns).chain(["sampling_mask".to_owned()]).collect()];
    for entry in of_part {
        let (present, file) = (entry.raters(), |name: &str| format!("{}/{name}.nii.gz", entry.id));
        let mut cells = vec![entry.id.clone()];
        cells.extend(dataset.channels.iter().map(|name| file(name)));
        // A rater who did not look at the case leaves the cell empty.
        let seg = |number: &usize| match present.contains(number) {
            true => file(&rater_name(*number, &all)),
            false => String::new(),
        };
        cells.extend(all.iter().map(seg));
        cells.push(format!("{}/{MASK_FILE}", entry.id));
        table.push(cells);
    }
    let path = out.join(format!("{split}.csv"));
    Ok(write_atomically(&path, |file| file.write_all(csv_text(&table).as_bytes()))?)
}

/// What was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LidcSummary {
    /// Cases in the file.
    pub cases: usize,
    /// Bytes of the file.
    pub bytes: usize,
}

/// Writes all cases of a dataset into one cache file, atomically; replaces a file of that name.
///
/// Images keep their values; normalization is for those who read the cache.
pub fn lidc(dataset: &Dataset, out: &Path, control: Control<'_>) -> Result<LidcSummary> {
    let phase = control.phase("preparing", dataset.entries.len(), "cases");
    let records = parallel::map_until(dataset.entries.len(), &phase, |index, meter| -> Result<PackedCase> {
        let case = dataset.load_raw(index)?;
        meter.saw(case.bytes());
        let surplus = match &case.rater_numbers[..] {
            _ if case.mask.is_some() => Some("the case has a region of interest".to_owned()),
            [] => None,
            some => Some(format!("only the raters {some:?} looked at the case")),
        };
        if let Some(surplus) = surplus {
            let reason = format!("{surplus}, which a cache does not hold");
            return Err(Error::case(case.id, reason).advise("use the dataset as it is"));
        }
        Ok(PackedCase {
            channels: case.channels,
            shape: case.shape,
            pixels: PackedImage::pack(case.image),
            raters: case.raters.into_iter().map(PackedLabels::pack).collect(),
        })
    })?;
    drop(phase);
    let records = parallel::all_or_error(records, |index| &dataset.entries[index].id)?;
    let bytes = encode_cache(&records, &dataset.entries, &dataset.classes).map_err(|reason| {
        Error::data(&dataset.root, reason)
            .advise("a cache is for images of one size with the same raters; use the dataset as it is")
    })?;
    write_atomically(out, |file| file.write_all(&bytes))?;
    Ok(LidcSummary { cases: records.len(), bytes: bytes.len() })
}
