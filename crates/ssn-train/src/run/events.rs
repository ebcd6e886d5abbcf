//! TensorBoard's event files: numbers by step, as records with check sums.
//!
//! A record is the length of its data, a check sum of the length, the data, and a check sum of the data. The data is a
//! protocol-buffer message `Event`: wall time (1), step (2), version (3) or a summary (5) of tag (1) and value (2).

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{Result, TrainError};

/// An event file, open for more.
#[derive(Debug)]
pub struct Events {
    path: PathBuf,
    file: File,
}

impl Events {
    /// A new file in a folder, named after the moment, as TensorBoard wants it.
    pub fn create(folder: &Path) -> Result<Self> {
        let path = folder.join(format!("events.out.tfevents.{:.6}.ssn", now()));
        let failed = |source| TrainError::Save { path: path.clone(), source };
        let file = OpenOptions::new().append(true).create(true).open(&path).map_err(failed)?;
        let mut events = Self { path, file };
        let mut first = event(now(), 0);
        field_bytes(&mut first, 3, b"brain.Event:2");
        events.append(&first)?;
        Ok(events)
    }

    /// Adds the numbers of a step; those that are undefined are left out.
    pub fn add(&mut self, step: u64, values: &[(&str, Option<f64>)]) -> Result<()> {
        let mut summary = vec![];
        for (tag, value) in values.iter().filter_map(|(tag, value)| Some((tag, (*value)?))) {
            let mut entry = vec![];
            field_bytes(&mut entry, 1, tag.as_bytes());
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
        record.extend(check_sum(&length));
        record.extend(data);
        record.extend(check_sum(data));
        self.file.write_all(&record).map_err(|source| TrainError::Save { path: self.path.clone(), source })
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

/// CRC-32C, turned and shifted as the format asks, so that check sums of check sums stay sound.
fn check_sum(bytes: &[u8]) -> [u8; 4] {
    const SHIFT: u32 = 0xa282_ead8;
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(SHIFT).to_le_bytes()
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_what_tensorboard_reads() {
        let folder = tempfile::tempdir().unwrap();
        let mut events = Events::create(folder.path()).unwrap();
        events.add(300, &[("loss", Some(0.5)), ("undefined", None)]).unwrap();
        let bytes = std::fs::read(&events.path).unwrap();
        let mut records = vec![];
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let length = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
            assert_eq!(rest[8..12], check_sum(&rest[..8]));
            let data = &rest[12..12 + length];
            assert_eq!(rest[12 + length..16 + length], check_sum(data));
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

    #[test]
    fn the_check_sum_is_castagnolis() {
        // The check value that CRC-32C is published with.
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
    }
}
