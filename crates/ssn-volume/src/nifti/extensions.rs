//! Extensions of a header: sections of other programs, stepped over and not read.

use crate::error::Problem;
use crate::voxels::ByteOrder;

/// Bytes of the size and the code at the start of a section.
const SECTION_START: usize = 8;
/// Fewer bytes than this hold no section; they fill up to the data.
const SMALLEST_SECTION: usize = 16;

/// Steps over all sections in `rest`, the bytes between the header and the data, and refuses a size that leads
/// out of them: then the header is damaged or the data starts elsewhere.
pub(super) fn check(flag: u8, mut rest: &[u8], order: ByteOrder) -> Result<(), Problem> {
    if flag == 0 {
        return Ok(());
    }
    while let Some(start) = rest.first_chunk::<4>().filter(|_| rest.len() >= SMALLEST_SECTION) {
        let size = match order {
            ByteOrder::Little => i32::from_le_bytes(*start),
            ByteOrder::Big => i32::from_be_bytes(*start),
        };
        let after = usize::try_from(size).ok().filter(|&size| size >= SECTION_START);
        rest = after.and_then(|size| rest.get(size..)).ok_or_else(|| Problem::Field {
            field: "esize of a header extension",
            found: size.to_string(),
            allowed: "at least 8 and at most what is left before the data",
            advice: "the header is damaged: copy the file again, or remove the extensions",
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_lead_to_the_data_or_are_refused() {
        let section = |size: i32| [&size.to_le_bytes()[..], &[6, 0, 0, 0], &[b'x'; 8]].concat();
        let two = [section(16), section(16)].concat();
        assert!(check(1, &two, ByteOrder::Little).is_ok());
        assert!(check(1, &two, ByteOrder::Big).is_err());
        assert!(check(0, &two, ByteOrder::Big).is_ok(), "no extensions are announced");
        assert!(check(1, &[0xff; 15], ByteOrder::Little).is_ok(), "too short for a section");
        for bad in [0, 7, -16, 17, 33, i32::MAX, i32::MIN] {
            let message = check(1, &section(bad), ByteOrder::Little).unwrap_err().to_string();
            assert!(message.contains(&format!("extension is {bad}")), "{message}");
        }
    }
}
