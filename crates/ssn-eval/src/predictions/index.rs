//! The index of a folder of predictions: a row per case with its files, relative to the folder.

use std::path::PathBuf;

use ssn_data::text::csv_text;
use ssn_io::write_atomically;

use crate::error::Result;
use crate::predictions::file_names::Output;
use crate::predictions::folder::Predictions;

/// The name of the index, as in the authors' tool.
pub const INDEX_FILE: &str = "prediction.csv";

impl Predictions {
    /// Writes the index of what is in the folder, atomically, and gives its path.
    ///
    /// The columns are id, distribution and prediction, and then those that any case has.
    pub fn write_index(&self) -> Result<PathBuf> {
        let cases = self.cases()?;
        let files = |id: &str| Output::ALL.map(|output| self.find_output(id, output));
        let rows: Vec<_> = cases.iter().map(|case| files(case.id())).collect();
        let present = |&column: &usize| column == 0 || rows.iter().any(|row| row[column].is_some());
        let columns: Vec<usize> = (0..Output::ALL.len()).filter(present).collect();

        let names = columns.iter().map(|&column| Output::ALL[column].name());
        let mut table = vec![["id", "distribution"].into_iter().chain(names).map(str::to_owned).collect()];
        for (case, row) in cases.iter().zip(&rows) {
            let mut cells = vec![case.id().to_owned(), relative(Some(&case.path))];
            cells.extend(columns.iter().map(|&column| relative(row[column].as_ref())));
            table.push(cells);
        }
        let path = self.root().join(INDEX_FILE);
        write_atomically(&path, |out| out.write_all(csv_text(&table).as_bytes()))?;
        Ok(path)
    }
}

/// All files lie in the folder itself: relative to it, a path is its name. Empty where there is none.
fn relative(path: Option<&PathBuf>) -> String {
    let name = path.and_then(|path| path.file_name()).unwrap_or_default();
    name.to_string_lossy().into_owned()
}
