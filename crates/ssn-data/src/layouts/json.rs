//! `dataset.json` of nnU-Net and the Decathlon: names by numbers, and numbers by names.

use std::path::Path;

use serde_json::{Map, Value};
use ssn_io::{Limits, read_bytes};

use crate::error::{DataError, Result};

/// A `dataset.json` that was read.
pub(super) struct Description<'a> {
    path: &'a Path,
    fields: Map<String, Value>,
}

impl<'a> Description<'a> {
    /// Reads the file.
    pub fn read(path: &'a Path) -> Result<Self> {
        let bytes = read_bytes(path, &Limits::default())?;
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(fields)) => Ok(Self { path, fields }),
            Ok(_) => Err(wrong(path, "the file holds no object".to_owned())),
            Err(error) => Err(wrong(path, error.to_string())),
        }
    }

    /// Whether a field is there.
    pub fn has(&self, field: &str) -> bool {
        self.fields.contains_key(field)
    }

    /// A field that is an object; `expected` says what it should be.
    pub fn object(&self, field: &str, expected: &str) -> Result<&Map<String, Value>> {
        self.fields.get(field).and_then(Value::as_object).ok_or_else(|| self.wrong_field(field, expected))
    }

    /// A field that is a text, if it is there.
    pub fn text(&self, field: &str) -> Option<&str> {
        self.fields.get(field).and_then(Value::as_str)
    }

    /// A field that is a list.
    pub fn list(&self, field: &str, expected: &str) -> Result<&Vec<Value>> {
        self.fields.get(field).and_then(Value::as_array).ok_or_else(|| self.wrong_field(field, expected))
    }

    /// An object of number → name as the names in the order of the numbers, which must be 0, 1, 2, …
    pub fn names_by_number(&self, field: &str) -> Result<Vec<String>> {
        let expected = "an object such as {\"0\": \"a\", \"1\": \"b\"} with numbers from 0 without gaps";
        let mut names = vec![];
        for (number, name) in self.object(field, expected)? {
            let (Ok(number), Some(name)) = (number.parse::<usize>(), name.as_str()) else {
                return Err(self.wrong_field(field, expected));
            };
            names.push((number, name.to_owned()));
        }
        self.in_order(field, names, expected)
    }

    /// Names in the order of their numbers, which must be 0, 1, 2, …
    pub fn in_order(
        &self,
        field: &str,
        mut names: Vec<(usize, String)>,
        expected: &str,
    ) -> Result<Vec<String>> {
        names.sort();
        if names.is_empty() || names.iter().enumerate().any(|(place, (number, _))| place != *number) {
            return Err(self.wrong_field(field, expected));
        }
        Ok(names.into_iter().map(|(_, name)| name).collect())
    }

    /// A field that is not as it must be.
    pub fn wrong_field(&self, field: &str, expected: &str) -> DataError {
        let found = self.fields.get(field).map_or("missing".to_owned(), |value| {
            let text: String = value.to_string().chars().take(80).collect();
            if text.len() < 80 { text } else { format!("{text}…") }
        });
        wrong(self.path, format!("the field `{field}` is {found}, but it must be {expected}"))
    }
}

fn wrong(path: &Path, reason: String) -> DataError {
    DataError::Dataset { path: path.to_owned(), reason, advice: "correct the file" }
}
