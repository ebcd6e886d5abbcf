//! What a run logs: `metrics.csv`, TensorBoard's event files, and incidents.
//!
//! Rows of `metrics.csv` are means over some steps, or validations. The file has the same bytes however often the run was
//! stopped: a run that goes on from a checkpoint first removes the rows that came after it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use ssn_data::Batch;
use ssn_eval::metrics_file::{METRICS_FILE, resumed, row, tag};
use ssn_io::write_atomically;
use ssn_nn::error::{NnError, Result};

use super::events::Event;

/// What is logged step by step: `metrics.csv`, open for more rows, and the same numbers as events.
#[derive(Debug)]
pub struct RunLogs {
    path: PathBuf,
    file: File,
    events: SummaryWriter,
}

impl RunLogs {
    /// Opens the files of a run that stands after `step` steps, and removes what came later. A validation of that very
    /// step comes after its checkpoint, and is done again.
    pub fn open(run: &Path, step: u64) -> Result<Self> {
        let path = run.join(METRICS_FILE);
        let failed = |error| NnError::unsaved(&path, error);
        let old = match ssn_io::read_file(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(failed(error)),
        };
        let kept = resumed(&old, step);
        write_atomically(&path, |out| out.write_all(kept.as_bytes()))
            .map_err(|error| failed(error.source))?;
        let file = ssn_io::open_own(&path, true).map_err(failed)?;
        Ok(Self { path, file, events: SummaryWriter::create(run)? })
    }

    /// Adds a row for the events that have one.
    pub fn on_event(&mut self, event: &Event) -> Result<()> {
        match event {
            Event::Row { step, means } => self.add(*step, &means.columns()),
            Event::Validated { step, scores, .. } => self.add(*step, &scores.columns()),
            _ => Ok(()),
        }
    }

    fn add(&mut self, step: u64, values: &[(&str, Option<f64>)]) -> Result<()> {
        // One write, so that a stop never leaves half a row.
        self.file
            .write_all(row(step, values).as_bytes())
            .map_err(|error| NnError::unsaved(&self.path, error))?;
        let events: Vec<_> = values.iter().map(|(name, value)| (tag(name), *value)).collect();
        self.events.add(step, &events)
    }

    /// Brings all rows to the disk: a checkpoint relies on the rows before it.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|error| NnError::unsaved(&self.path, error))
    }
}

/// Writes scalars to an event file of TensorBoard, as `torch.utils.tensorboard.SummaryWriter`.
///
/// A record is the length of its data, a checksum of the length, the data, and a checksum of the data. The data is a
/// protocol-buffer message `Event`: wall time (1), step (2), version (3) or a summary (5) of tag (1) and value (2).
#[derive(Debug)]
pub struct SummaryWriter {
    path: PathBuf,
    file: File,
}

impl SummaryWriter {
    /// A new file in a folder, named after the moment, as TensorBoard wants it.
    pub fn create(folder: &Path) -> Result<Self> {
        let path = folder.join(format!("events.out.tfevents.{:.6}.ssn", now()));
        let failed = |error| NnError::unsaved(&path, error);
        let file = ssn_io::open_own(&path, true).map_err(failed)?;
        let mut events = Self { path, file };
        let mut first = event(now(), 0);
        field_bytes(&mut first, 3, b"brain.Event:2");
        events.append(&first)?;
        Ok(events)
    }

    /// Adds the numbers of a step; those that are undefined are left out.
    pub fn add(&mut self, step: u64, values: &[(impl AsRef<str>, Option<f64>)]) -> Result<()> {
        let mut summary = vec![];
        for (tag, value) in values.iter().filter_map(|(tag, value)| Some((tag, (*value)?))) {
            let mut entry = vec![];
            field_bytes(&mut entry, 1, tag.as_ref().as_bytes());
            entry.push(field(2, FIXED_32));
            entry.extend((value as f32).to_le_bytes());
            field_bytes(&mut summary, 1, &entry);
        }
        let mut message = event(now(), step);
        field_bytes(&mut message, 5, &summary);
        self.append(&message)
    }

    fn append(&mut self, data: &[u8]) -> Result<()> {
        let length = (data.len() as u64).to_le_bytes();
        let mut record = length.to_vec();
        record.extend(checksum(&length));
        record.extend(data);
        record.extend(checksum(data));
        self.file.write_all(&record).map_err(|error| NnError::unsaved(&self.path, error))
    }
}

/// The wire types of protocol buffers.
const VARINT: u8 = 0;
const FIXED_64: u8 = 1;
const BYTES: u8 = 2;
const FIXED_32: u8 = 5;

fn field(number: u8, wire: u8) -> u8 {
    number << 3 | wire
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn field_bytes(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    out.push(field(number, BYTES));
    varint(out, bytes.len() as u64);
    out.extend(bytes);
}

/// The beginning of an event: when, and after how many steps.
fn event(time: f64, step: u64) -> Vec<u8> {
    let mut out = vec![field(1, FIXED_64)];
    out.extend(time.to_le_bytes());
    out.push(field(2, VARINT));
    varint(&mut out, step);
    out
}

/// CRC-32C, turned and shifted as the format asks, so that checksums of checksums stay sound.
fn checksum(bytes: &[u8]) -> [u8; 4] {
    const SHIFT: u32 = 0xa282_ead8;
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(SHIFT).to_le_bytes()
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

/// The folder of incidents in that of a run.
const INCIDENTS: &str = "incidents";

/// What is written about an incident.
#[derive(Serialize)]
struct Incident<'a> {
    /// The step, counted from 1 as in the metrics.
    step: u64,
    reason: String,
    learning_rate: f64,
    /// The cases of the batch.
    cases: &'a [IncidentItem],
}

/// An item of the batch of an incident.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct IncidentItem {
    id: String,
    /// The number of the target's rater; nothing if all raters were targets.
    rater: Option<usize>,
    /// The voxel at the center of the patch.
    center: [usize; 3],
    /// Values of the patch that are not finite.
    non_finite: usize,
    /// The smallest and largest finite value of the patch, if there is one.
    range: [Option<f32>; 2],
}

/// What a batch was made of.
pub(super) fn incident_items(batch: &Batch) -> Vec<IncidentItem> {
    let values = (batch.images.len() / batch.image_shape[0].max(1)).max(1);
    let items = batch.origins.iter().zip(batch.images.chunks(values)).map(|(origin, image)| {
        let finite = image.iter().copied().filter(|x| x.is_finite());
        let range = [finite.clone().fold(f32::INFINITY, f32::min), finite.fold(f32::NEG_INFINITY, f32::max)];
        IncidentItem {
            id: origin.id.clone(),
            rater: origin.rater,
            center: origin.center,
            non_finite: image.iter().filter(|x| !x.is_finite()).count(),
            range: range.map(|end| Some(end).filter(|end| end.is_finite())),
        }
    });
    items.collect()
}

/// Writes what a step that was not applied was made of; gives the file.
pub(super) fn write_incident(
    run: &Path,
    number: u64,
    cases: &[IncidentItem],
    reason: &NnError,
    learning_rate: f64,
) -> Result<PathBuf> {
    let step = number + 1;
    let incident = Incident { step, reason: reason.to_string(), learning_rate, cases };
    let folder = run.join(INCIDENTS);
    let path = folder.join(format!("step-{step:09}.json"));
    let failed = |error| NnError::unsaved(&path, error);
    fs::create_dir_all(&folder).map_err(failed)?;
    let bytes = serde_json::to_vec_pretty(&incident).map_err(|error| failed(error.into()))?;
    write_atomically(&path, |out| out.write_all(&bytes)).map_err(|error| failed(error.source))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::AverageMeter;
    use crate::run::events::ValidationScores;
    use crate::trainer::StepReport;
    use ssn_eval::metrics_file::{ESS, GRADIENT_NORM, LEARNING_RATE, LOSS, VALIDATION_GED};

    fn report(step: u64, loss: f64) -> StepReport {
        StepReport { step, loss, ess: Some(3.0), gradient_norm: 2.0, learning_rate: 1e-3 }
    }

    #[test]
    fn rows_after_the_checkpoint_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let text = || fs::read_to_string(folder.path().join(METRICS_FILE)).unwrap();
        let mut interval = AverageMeter::default();
        interval.add(&report(0, 1.0));
        interval.add(&report(1, 0.5));
        let scores = ValidationScores { ged: Some(0.25), ..ValidationScores::default() };
        let mut logs = RunLogs::open(folder.path(), 0).unwrap();
        for step in [2, 4] {
            logs.on_event(&Event::Row { step, means: interval.means() }).unwrap();
            logs.on_event(&Event::Validated { step, scores, is_best: true }).unwrap();
        }
        let values = [(LOSS, 0.75), (ESS, 3.0), (GRADIENT_NORM, 2.0), (LEARNING_RATE, 0.001)];
        let training = |step| row(step, &values.map(|(name, value)| (name, Some(value))));
        let validation = |step| row(step, &[(VALIDATION_GED, Some(0.25))]);
        let whole = [resumed("", 0), training(2), validation(2), training(4), validation(4)].concat();
        assert_eq!(text(), whole);
        // What stays is tested where it is decided; here, that it is written.
        RunLogs::open(folder.path(), 4).unwrap();
        assert_eq!(text(), whole.replace(&validation(4), ""));
    }

    #[test]
    fn records_are_what_tensorboard_reads() {
        let folder = tempfile::tempdir().unwrap();
        let mut events = SummaryWriter::create(folder.path()).unwrap();
        events.add(300, &[("loss", Some(0.5)), ("undefined", None)]).unwrap();
        let bytes = fs::read(&events.path).unwrap();
        let mut records = vec![];
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let length = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
            assert_eq!(rest[8..12], checksum(&rest[..8]));
            let data = &rest[12..12 + length];
            assert_eq!(rest[12 + length..16 + length], checksum(data));
            records.push(data);
            rest = &rest[16 + length..];
        }
        assert!(records[0].ends_with(b"brain.Event:2"));
        // Step 300 as a varint, then the summary with one value.
        let tail =
            [&[0x10, 0xac, 0x02, 0x2a, 13, 0x0a, 11, 0x0a, 4][..], b"loss", &[0x15, 0, 0, 0, 0x3f]].concat();
        assert_eq!(records[1][9..], tail);
        assert_eq!(records.len(), 2);
    }
}
