//! Sizes as a reader wants them: decimal units, as download pages and disk vendors use them.

const MEGABYTE: f64 = 1e6;
const GIGABYTE: f64 = 1e9;

/// A number of bytes as `530.6 MB` or `2.51 GB`.
pub fn size(bytes: u64) -> String {
    let bytes = bytes as f64;
    if bytes < GIGABYTE {
        format!("{:.1} MB", bytes / MEGABYTE)
    } else {
        format!("{:.2} GB", bytes / GIGABYTE)
    }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn the_unit_follows_the_size() {
        assert_eq!(size(148_047), "0.1 MB");
        assert_eq!(size(530_604_548), "530.6 MB");
        assert_eq!(size(2_512_000_000), "2.51 GB");
    }
}
