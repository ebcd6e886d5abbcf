//! What the description of a TIFF file says about its pages beyond the file format.
//!
//! Microscopes and ImageJ store channels and times as pages too, and ImageJ may leave the directories of all
//! pages but the first out. Read as slices, such a stack would be wrong without anybody noticing, so it is
//! refused.

use super::super::{field, unsupported};
use crate::error::Problem;

const ADVICE: &str = "save one channel at one time as a stack of slices, each with a directory of its own";

/// Refuses a stack whose pages are more, or other, than slices.
pub fn check(description: &[u8], pages: usize, samples: usize) -> Result<(), Problem> {
    let text = String::from_utf8_lossy(description);
    if text.starts_with("ImageJ=") {
        let value = |key: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(key)?.strip_prefix('=')?.trim().parse::<u64>().ok())
        };
        if let Some(images) = value("images").filter(|&images| images != pages as u64) {
            let found = format!("{images}, but there are {pages} directories");
            return Err(field(
                "the number of images of the ImageJ stack",
                found,
                "that of the directories",
                ADVICE,
            ));
        }
        for key in ["channels", "frames"] {
            check_single(key, value(key), 1)?;
        }
    }
    if text.contains("<OME") {
        check_single("channels (SizeC)", attribute(&text, "SizeC"), samples as u64)?;
        check_single("times (SizeT)", attribute(&text, "SizeT"), 1)?;
        check_single("slices (SizeZ)", attribute(&text, "SizeZ"), pages as u64)?;
    }
    if text.starts_with('{') && text.contains("\"truncated\": true") {
        return Err(unsupported("a stack with a directory for its first page alone", ADVICE));
    }
    Ok(())
}

fn check_single(what: &str, found: Option<u64>, allowed: u64) -> Result<(), Problem> {
    match found {
        Some(count) if count != allowed => {
            Err(unsupported(format!("a TIFF stack with {count} {what}, where {allowed} can be read"), ADVICE))
        }
        _ => Ok(()),
    }
}

/// The first number that is given for an attribute of an XML text.
fn attribute(text: &str, name: &str) -> Option<u64> {
    let (_, rest) = text.split_once(&format!(" {name}=\""))?;
    rest.split_once('"')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_of_slices_alone_are_read() {
        let slices = b"ImageJ=1.53\nimages=3\nslices=3\nloop=false\n\0";
        assert!(check(slices, 3, 1).is_ok());
        assert!(check(slices, 1, 1).unwrap_err().to_string().contains("3, but there are 1 directories"));
        let channels = b"ImageJ=1.53\nimages=6\nchannels=2\nslices=3\nhyperstack=true\n";
        assert!(check(channels, 6, 1).unwrap_err().to_string().contains("2 channels"));
        let ome = br#"<?xml version="1.0"?><OME><Pixels SizeX="4" SizeC="1" SizeZ="5" SizeT="2"/></OME>"#;
        assert!(check(ome, 10, 1).unwrap_err().to_string().contains("2 times"));
        assert!(check(br#"<OME><Pixels SizeC="3" SizeZ="1" SizeT="1"/></OME>"#, 1, 3).is_ok());
        assert!(check(br#"{"shape": [5, 8, 8], "truncated": true}"#, 1, 1).is_err());
        assert!(check(b"a holiday \xff", 7, 1).is_ok());
    }
}
