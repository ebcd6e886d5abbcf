//! Free disk space, asked for before a download starts: a full disk found late costs half an hour.

use crate::error::Error;
use std::path::Path;

/// Room for what is not counted: folders, the rounding of files to blocks, the manifest.
const SLACK: u64 = 50_000_000;

/// The most bytes that an installation takes at any moment.
///
/// pip writes a wheel to a temporary file and copies it, so that the largest one exists twice for a while;
/// later the wheels and the unpacked files exist together.
pub fn needed(wheels_to_fetch: &[u64], unpacked: u64) -> u64 {
    let largest = wheels_to_fetch.iter().copied().max().unwrap_or(0);
    wheels_to_fetch.iter().sum::<u64>() + largest.max(unpacked) + SLACK
}

/// Refuses a folder on whose disk `needed` bytes are not free; the folder need not exist yet.
pub fn check(folder: &Path, needed: u64) -> Result<(), Error> {
    let free = free(folder)?;
    if free < needed {
        return Err(Error::NoSpace { folder: folder.to_owned(), free, needed });
    }
    Ok(())
}

/// The bytes that are free to this user where `folder` is, or will be.
fn free(folder: &Path) -> Result<u64, Error> {
    let existing = folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    fs4::available_space(existing).map_err(Error::io("ask for the free space of", existing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_counts_the_second_copy_or_the_unpacked_files() {
        assert_eq!(needed(&[300, 100], 50), 300 + 100 + 300 + SLACK);
        assert_eq!(needed(&[300, 100], 500), 300 + 100 + 500 + SLACK);
        assert_eq!(needed(&[], 500), 500 + SLACK);
    }

    #[test]
    fn a_folder_that_does_not_exist_yet_is_measured_where_it_will_be() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("not/yet");
        check(&inside, 1).unwrap();
        let error = check(&inside, u64::MAX).unwrap_err();
        assert!(matches!(error, Error::NoSpace { needed: u64::MAX, .. }), "{error}");
        assert!(!inside.exists());
    }
}
