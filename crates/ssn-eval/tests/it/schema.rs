//! `docs/reference/predictions.schema.json`, which is made of the code that reads `predictions.json`.
//!
//! With `SSN_UPDATE_DOCS=1` the test writes it; otherwise it compares.

use ssn_testing::assert_page_is_up_to_date;

#[test]
fn the_schema_is_that_of_the_code() {
    let text = serde_json::to_string_pretty(&ssn_eval::Predictions::schema()).unwrap();
    assert_page_is_up_to_date("predictions.schema.json", &(text + "\n"));
}
