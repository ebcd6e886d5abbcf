//! `metrics.csv` in the folder of a run: a row every few steps and one per validation.
//!
//! Its last column, `check`, is the CRC-32 of the row before it in hexadecimal, as `zlib.crc32` of Python computes it. Files of
//! version 0.1 have no such column and are read as they are.

/// The name of the file in the folder of a run.
pub const METRICS_FILE: &str = "metrics.csv";

/// The columns, without the checksum: the step, four of training, and four of validation.
const COLUMNS: &str = "step,loss,ess,gradient_norm,learning_rate,\
validation_ged,validation_diversity,validation_rater_diversity,validation_dice";
/// The column of the checksum.
const CHECK: &str = "check";
/// Digits of a checksum.
const DIGITS: usize = 8;
/// The name of `ess` in version 0.1.
const OLD_ESS: &str = "effective_samples";

/// The row of the steps up to `step`: loss, effective sample size, gradient norm and learning rate.
pub fn training_row(step: u64, values: [Option<f64>; 4]) -> String {
    with_check(&format!("{step},{},,,,", values.map(cell).join(",")))
}

/// The row of a validation after `step` steps: GED², diversity, that of raters, and Dice.
pub fn validation_row(step: u64, values: [Option<f64>; 4]) -> String {
    with_check(&format!("{step},,,,,{}", values.map(cell).join(",")))
}

/// The shortest text that gives the same number back.
fn cell(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

fn check(cells: &str) -> String {
    format!("{:0DIGITS$x}", crc32fast::hash(cells.as_bytes()))
}

fn with_check(cells: &str) -> String {
    format!("{cells},{}\n", check(cells))
}

/// The cells of a row before its checksum; nothing if that does not fit.
fn checked(row: &str) -> Option<&str> {
    row.rsplit_once(',').filter(|(cells, found)| *found == check(cells)).map(|(cells, _)| cells)
}

/// The file of a run that goes on after `step` steps: `old` without what came later. A validation of that very step comes
/// after its checkpoint, and is done again. Damaged rows stay, so that readers tell of them, and half a row at the end goes.
pub fn resumed(old: &str, step: u64) -> String {
    let keeps = |cells: &str| {
        let number = cells.split(',').next().and_then(|step| step.parse::<u64>().ok());
        number.is_some_and(|number| number < step || number == step && !is_validation(cells))
    };
    let (header, rows) = old.split_once('\n').unwrap_or_default();
    let is_old = !header.split(',').any(|column| column.trim() == CHECK);
    let (mut kept, mut last) = (vec![], 0);
    for row in rows.split_inclusive('\n').filter_map(|row| row.strip_suffix('\n')) {
        match checked(row).or(is_old.then_some(row)) {
            Some(cells) if keeps(cells) => {
                kept.push(with_check(cells));
                last = kept.len();
            }
            Some(_) => {}
            None => kept.push(format!("{row}\n")),
        }
    }
    // Behind the last row that is kept, nobody knows which steps a damaged row was of.
    format!("{COLUMNS},{CHECK}\n{}", kept[..last].concat())
}

/// Steps that could not be applied leave the cells of a training row empty as well.
fn is_validation(cells: &str) -> bool {
    cells.trim_end().split(',').skip(5).any(|cell| !cell.is_empty())
}

/// What the file holds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MetricsTable {
    /// The names of the columns, without the checksum; the first is `step`.
    pub columns: Vec<String>,
    /// As many cells as there are columns: numbers, where there are some.
    pub rows: Vec<Vec<Option<f64>>>,
    /// The lines, from 1, that are damaged and left out.
    pub damaged: Vec<usize>,
}

impl MetricsTable {
    /// Reads the file, however far the run is: half a row at the end is being written.
    ///
    /// # Errors
    /// A sentence about a first line that names other columns.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (header, rows) = text.split_once('\n').unwrap_or((text, ""));
        let mut columns: Vec<String> = header.split(',').map(|column| column.trim().to_owned()).collect();
        if columns[0] != "step" {
            return Err("does not begin with the column `step`; is this a run's?".to_owned());
        }
        let is_known = |column: &String| {
            [CHECK, OLD_ESS].contains(&column.as_str()) || COLUMNS.split(',').any(|known| known == column)
        };
        if let Some(column) = columns.iter().find(|column| !is_known(column)) {
            return Err(format!(
                "has a column {column:?}, which runs do not have; its first line is damaged"
            ));
        }
        let has_check = columns.last().is_some_and(|column| column == CHECK);
        columns.truncate(columns.len() - usize::from(has_check));
        let mut table = Self { columns, ..Self::default() };
        for (number, line) in rows.split_inclusive('\n').enumerate() {
            let row = line.trim_end_matches(['\n', '\r']);
            let cells = if has_check { checked(row) } else { Some(row) };
            match cells.and_then(|cells| table.numbers(cells)) {
                _ if row.trim().is_empty() => {}
                Some(numbers) => table.rows.push(numbers),
                None if !line.ends_with('\n') && table.is_begun(row, has_check) => {}
                None => table.damaged.push(number + 2),
            }
        }
        Ok(table)
    }

    /// The cells of a row; nothing if they are not as many as the columns, or no numbers.
    fn numbers(&self, cells: &str) -> Option<Vec<Option<f64>>> {
        let number = |cell: &str| match cell.trim() {
            "" => Some(None),
            text => text.parse().ok().map(Some),
        };
        let numbers: Option<Vec<_>> = cells.split(',').map(number).collect();
        numbers.filter(|numbers| numbers.len() == self.columns.len())
    }

    /// Whether a line without an end may be the beginning of a row.
    fn is_begun(&self, row: &str, has_check: bool) -> bool {
        let cells: Vec<&str> = row.split(',').collect();
        match cells.len().cmp(&(self.columns.len() + usize::from(has_check))) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => !has_check || cells.last().is_some_and(|check| check.len() < DIGITS),
            std::cmp::Ordering::Greater => false,
        }
    }

    /// A sentence about the lines that are left out; nothing if there are none.
    pub fn damage(&self) -> Option<String> {
        let shown: Vec<String> = self.damaged.iter().take(MOST_LISTED).map(usize::to_string).collect();
        let more = if self.damaged.len() > MOST_LISTED { ", …" } else { "" };
        match &shown[..] {
            [] => None,
            [line] => Some(format!("line {line} of {METRICS_FILE} is damaged and left out")),
            lines => {
                Some(format!("lines {}{more} of {METRICS_FILE} are damaged and left out", lines.join(", ")))
            }
        }
    }
}

/// Damaged lines that a sentence lists.
const MOST_LISTED: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn training(step: u64) -> String {
        training_row(step, [Some(0.75), Some(3.0), Some(2.0), Some(0.001)])
    }

    fn validation(step: u64) -> String {
        validation_row(step, [Some(0.25), None, None, None])
    }

    /// A file with rows of the steps 2 and 4.
    fn file() -> String {
        [resumed("", 0), training(2), validation(2), training(4), validation(4)].concat()
    }

    #[test]
    fn rows_have_the_checksum_of_zlib() {
        // zlib.crc32(b"2,0.75,3,2,0.001,,,,")
        assert_eq!(training(2), "2,0.75,3,2,0.001,,,,,517e380a\n");
        assert_eq!(validation(4), "4,,,,,0.25,,,,751b350a\n");
        let table = MetricsTable::parse(&file()).unwrap();
        assert_eq!(table.columns.join(","), COLUMNS);
        assert_eq!((table.rows.len(), table.rows[1][5], table.damage()), (4, Some(0.25), None));
        assert_eq!(table.rows[2][..3], [Some(4.0), Some(0.75), Some(3.0)]);
    }

    /// Every bit of the file, one by one.
    #[test]
    fn no_flipped_bit_stays_unnoticed() {
        let (bytes, whole) = (file().into_bytes(), MetricsTable::parse(&file()).unwrap());
        for place in 0..8 * bytes.len() {
            let mut bytes = bytes.clone();
            bytes[place / 8] ^= 1 << (place % 8);
            let Ok(table) = MetricsTable::parse(&String::from_utf8_lossy(&bytes)) else { continue };
            assert!(!table.damaged.is_empty(), "bit {place}: {table:?}");
            assert!(table.rows.iter().all(|row| whole.rows.contains(row)), "bit {place}: {table:?}");
        }
        let damaged = file().replacen("0.75", "0.74", 2);
        let table = MetricsTable::parse(&damaged).unwrap();
        assert_eq!((table.damaged.as_slice(), table.rows.len()), ([2, 4].as_slice(), 2));
        assert_eq!(table.damage().unwrap(), "lines 2, 4 of metrics.csv are damaged and left out");
    }

    #[test]
    fn a_row_that_is_being_written_is_no_damage() {
        let whole = file();
        let last = whole.len() - validation(4).len();
        for end in last..whole.len() {
            let table = MetricsTable::parse(&whole[..end]).unwrap();
            // The last byte is the end of the line, without which all numbers are there.
            let rows = if end == whole.len() - 1 { 4 } else { 3 };
            assert_eq!((table.rows.len(), table.damage()), (rows, None), "{:?}", &whole[last..end]);
        }
    }

    #[test]
    fn files_without_checksums_are_read() {
        let old = format!(
            "{}\n10,1,2,,,,,,\n10,,,,,0.5,,,\n20,1\n30,1,2,,,,,,\n40,x",
            COLUMNS.replace("ess", OLD_ESS)
        );
        let table = MetricsTable::parse(&old).unwrap();
        assert_eq!((table.rows.len(), table.damaged), (3, vec![4]));
        for (header, said) in [("a,b", "`step`"), ("", "`step`"), ("step,loss,chebk", "\"chebk\"")] {
            let error = MetricsTable::parse(header).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn rows_after_the_checkpoint_are_removed() {
        let (header, whole) = (format!("{COLUMNS},check\n"), file());
        assert_eq!(resumed("", 7), header);
        assert_eq!(resumed(&whole, 5), whole);
        assert_eq!(
            resumed(&whole, 4),
            [&header, &training(2), &validation(2), &training(4)].map(String::as_str).concat()
        );
        assert_eq!(resumed(&whole, 3), [&header, &training(2), &validation(2)].map(String::as_str).concat());
        assert_eq!(resumed(&format!("{whole}6,1"), 9), whole, "half a row");
        let not_applied = header.clone() + &training_row(2, [None; 4]);
        assert_eq!(resumed(&not_applied, 2), not_applied, "steps that were not applied are no validation");
    }

    #[test]
    fn a_run_without_checksums_goes_on_with_them() {
        let rows: String = file().lines().skip(1).map(|row| format!("{}\n", checked(row).unwrap())).collect();
        assert_eq!(resumed(&format!("{COLUMNS}\n{rows}"), 5), file());
    }

    #[test]
    fn damaged_rows_stay_where_a_run_goes_on() {
        let damaged = file().replacen("0.75", "0.74", 1);
        assert_eq!(resumed(&damaged, 5), damaged);
        // The last row may be of steps that are done again.
        let last = file().replace("4,,,,,0.25", "4,,,,,0.24");
        assert_eq!(resumed(&last, 5), file().replace(&validation(4), ""));
    }
}
