//! `docs/reference/predictions.schema.json`, which is made of the code that reads `predictions.json`.
//!
//! With `SSN_UPDATE_DOCS=1` the test writes it; otherwise it compares.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

#[path = "../../../tools/generated_page.rs"]
mod generated_page;

use generated_page::is_that_of_the_code;

#[test]
fn the_schema_is_that_of_the_code() {
    let text = serde_json::to_string_pretty(&ssn_eval::Predictions::schema()).unwrap();
    is_that_of_the_code("predictions.schema.json", &(text + "\n"));
}
