//! The segments of a JPEG file (T.81, annex B), from its start to its end.

use super::super::{exif, unsupported};
use super::colour::Scheme;
use super::damaged;
use super::frame::Frame;
use super::huffman::Table;
use super::scan::{Scan, Tables};
use super::transform::ZIGZAG;
use crate::error::Problem;
use crate::limits::Limits;

/// Scans of a file. Encoders write about ten; each one visits every block.
const MOST_SCANS: usize = 100;

/// What has been read so far.
struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
    frame: Option<Frame>,
    tables: Tables,
    quantisation: [Option<[u16; 64]>; 4],
    scans: usize,
    /// Whether there is a JFIF header, which promises YCbCr.
    jfif: bool,
    /// What an Adobe header says about the colours.
    adobe: Option<u8>,
}

/// Reads a file to its end marker.
pub fn decode(bytes: &[u8], limits: &Limits) -> Result<(Frame, Scheme), Problem> {
    if !bytes.starts_with(&[0xff, 0xd8]) {
        let start = format!("{:02x?}", &bytes[..bytes.len().min(2)]);
        let advice = "this is not a JPEG file";
        return Err(super::super::field("the start of the file", start, "ff d8", advice));
    }
    let mut decoder = Decoder {
        bytes,
        at: 2,
        frame: None,
        tables: Tables::default(),
        quantisation: [None; 4],
        scans: 0,
        jfif: false,
        adobe: None,
    };
    while decoder.segment(limits)? {}
    decoder.finish()
}

impl<'a> Decoder<'a> {
    /// Reads a segment; `false` at the end of the picture.
    fn segment(&mut self, limits: &Limits) -> Result<bool, Problem> {
        match self.marker()? {
            0xd9 => return Ok(false),
            sof @ 0xc0..=0xc2 => {
                let content = self.content()?;
                if self.frame.is_some() {
                    return Err(damaged("there are two frames"));
                }
                self.frame = Some(Frame::new(content, sof == 0xc2, self.bytes.len() as u64, limits)?);
            }
            0xc4 => self.huffman_tables()?,
            0xda => self.scan()?,
            0xdb => self.quantisation_tables()?,
            0xdd => {
                let content = self.content()?.try_into();
                let content = content.map_err(|_| damaged("the restart interval has a wrong length"))?;
                self.tables.restart = u16::from_be_bytes(content).into();
            }
            0xe0 => self.jfif |= self.content()?.starts_with(b"JFIF\0"),
            0xe1 => {
                let content = self.content()?;
                if content.starts_with(b"Exif\0\0") {
                    exif::check_upright(content)?;
                }
            }
            0xee => {
                let content = self.content()?;
                if content.starts_with(b"Adobe") {
                    let transform =
                        content.get(11).ok_or_else(|| damaged("the Adobe header is too short"))?;
                    self.adobe = Some(*transform);
                }
            }
            // Other data of applications, and comments.
            0xe2..=0xef | 0xfe => drop(self.content()?),
            marker => return Err(refuse_marker(marker)),
        }
        Ok(true)
    }

    /// The next marker; any number of 255 may stand before it.
    fn marker(&mut self) -> Result<u8, Problem> {
        if self.bytes.get(self.at) == Some(&0xff) {
            let rest = &self.bytes[self.at..];
            if let Some(offset) = rest.iter().position(|&b| b != 0xff) {
                self.at += offset + 1;
                return Ok(rest[offset]);
            }
        }
        let end = self.at >= self.bytes.len() || self.bytes[self.at] == 0xff;
        Err(damaged(if end { "its end marker is missing" } else { "a marker is missing" }))
    }

    /// The content of a segment.
    fn content(&mut self) -> Result<&'a [u8], Problem> {
        let rest = &self.bytes[self.at..];
        let content = match rest {
            [a, b, ..] => rest.get(2..usize::from(u16::from_be_bytes([*a, *b]))),
            _ => None,
        };
        let content = content.ok_or_else(|| damaged("a segment is cut off"))?;
        self.at += 2 + content.len();
        Ok(content)
    }

    fn huffman_tables(&mut self) -> Result<(), Problem> {
        let wrong = || damaged("a Huffman table has a wrong length");
        let mut content = self.content()?;
        while let [class, rest @ ..] = content {
            let (counts, rest) = rest.split_first_chunk::<16>().ok_or_else(wrong)?;
            let count = counts.iter().map(|&n| usize::from(n)).sum();
            let (symbols, rest) = rest.split_at_checked(count).ok_or_else(wrong)?;
            let table = Some(Table::new(counts, symbols)?);
            match class {
                0..=3 => self.tables.dc[usize::from(*class)] = table,
                0x10..=0x13 => self.tables.ac[usize::from(class & 15)] = table,
                _ => return Err(damaged("a Huffman table has an impossible number")),
            }
            content = rest;
        }
        Ok(())
    }

    fn quantisation_tables(&mut self) -> Result<(), Problem> {
        let mut content = self.content()?;
        while let [number, rest @ ..] = content {
            let size = 1 + usize::from(number >> 4);
            let (index, length) = (usize::from(number & 15), 64 * size);
            if size > 2 || index > 3 || rest.len() < length {
                return Err(damaged("a quantisation table has a wrong length or number"));
            }
            let mut table = [0; 64];
            for (k, bytes) in rest[..length].chunks(size).enumerate() {
                table[ZIGZAG[k]] = bytes.iter().fold(0, |value, &byte| value << 8 | u16::from(byte));
            }
            self.quantisation[index] = Some(table);
            content = &rest[length..];
        }
        Ok(())
    }

    fn scan(&mut self) -> Result<(), Problem> {
        let content = self.content()?;
        let frame = self.frame.as_mut().ok_or_else(|| damaged("a scan comes before the frame"))?;
        self.scans += 1;
        if self.scans > MOST_SCANS {
            return Err(unsupported("a JPEG of more than 100 scans", "save the picture as PNG"));
        }
        let scan = Scan::new(content, frame)?;
        self.at = scan.decode(self.bytes, self.at, frame, &self.tables, &self.quantisation)?;
        Ok(())
    }

    /// The picture, if all of it is there, and the meaning of its components.
    fn finish(self) -> Result<(Frame, Scheme), Problem> {
        let mut frame = self.frame.ok_or_else(|| damaged("there is no picture in it"))?;
        if frame.components.iter().any(|component| component.known != [Some(0); 64]) {
            return Err(damaged("the picture is not complete: some scans are missing"));
        }
        if frame.progressive {
            frame.components.iter_mut().try_for_each(|component| component.finish())?;
        }
        let ids: Vec<u8> = frame.components.iter().map(|component| component.id).collect();
        let scheme = match (&ids[..], self.jfif, self.adobe) {
            ([_], ..) => Scheme::Grey,
            (_, true, _) | (_, _, Some(1)) | ([1, 2, 3], _, None) => Scheme::YCbCr,
            (_, _, Some(0)) | (b"RGB", _, None) => Scheme::Rgb,
            _ => return Err(unsupported("a JPEG that does not say what its colours are", "save it as PNG")),
        };
        Ok((frame, scheme))
    }
}

fn refuse_marker(marker: u8) -> Problem {
    let what = match marker {
        0xc3 | 0xc7 | 0xcb | 0xcf => "a lossless JPEG",
        0xc5 | 0xc6 => "a hierarchical JPEG",
        0xc9 | 0xca | 0xcd | 0xce | 0xcc => "a JPEG with arithmetic coding",
        0xdc => "a JPEG that gives its height after the picture",
        _ => return damaged(format!("the marker ff {marker:02x} where none such belongs")),
    };
    unsupported(what, "save the picture as PNG")
}
