//! The answer of a verb, as text for people and as JSON for programs.

use serde::Serialize;

use crate::exit::{Failure, json, print, print_sentences};

/// The result of a verb.
#[derive(Debug)]
pub struct Answer {
    /// The text for people.
    pub text: String,
    /// The JSON of `--json`; `None` if another process prints it.
    pub json: Option<String>,
    /// Whether to wrap the text to the width of the terminal.
    pub is_prose: bool,
    /// The failure that follows the answer, such as a training that was stopped.
    pub failure: Option<Failure>,
}

impl Answer {
    /// Returns an answer as text and as JSON.
    pub fn new(text: impl Into<String>, value: &impl Serialize) -> Result<Self, Failure> {
        Ok(Self::of_json(text, Some(json(value)?)))
    }

    /// Returns an answer as text and as the text of its JSON.
    pub fn of_json(text: impl Into<String>, json: Option<String>) -> Self {
        Self { text: text.into(), json, is_prose: false, failure: None }
    }

    /// Prints the text, or the JSON.
    ///
    /// # Errors
    /// The failure that follows the answer.
    pub fn print(self, as_json: bool) -> Result<(), Failure> {
        match (as_json, &self.json) {
            (true, Some(json)) => print(json)?,
            (true, None) => {}
            (false, _) if self.is_prose => print_sentences(&self.text)?,
            (false, _) => print(&self.text)?,
        }
        self.failure.map_or(Ok(()), Err)
    }
}
