//! Exported files hold page and cases, and nothing is left of one that could not be written.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ssn_io::{Error, Result};
use ssn_view::{CaseHeadline, ExportCase, export};

type Case = Result<ExportCase>;

fn case(name: &str, package: Vec<u8>) -> ExportCase {
    ExportCase { name: name.to_owned(), scores: None, package }
}

/// The names and packages in a page.
fn cases(html: &str) -> Vec<(String, Vec<u8>)> {
    let parts = html.split("<script type=\"application/x-ssn-case\" data-name=\"").skip(1);
    let case = |part: &str| {
        let (name, rest) = part.split_once("\">").unwrap();
        let text = rest.split_once("</script>").unwrap().0;
        let mut package = vec![];
        let gzip = STANDARD.decode(text).unwrap();
        flate2::read::GzDecoder::new(gzip.as_slice()).read_to_end(&mut package).unwrap();
        (name.to_owned(), package)
    };
    parts.map(case).collect()
}

#[test]
fn cases_come_back_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cases.html");
    let first: Vec<u8> = (0..100_000u32).flat_map(|i| i.wrapping_mul(i).to_le_bytes()).collect();
    let given = [("a", first.clone()), ("\"><script>alert(1)</script>&", b"SSNVIEW1".to_vec())];
    let done = export(&path, given.into_iter().map(|(name, bytes)| -> Case { Ok(case(name, bytes)) }));
    let done = done.unwrap();
    let html = std::fs::read_to_string(&path).unwrap();
    assert_eq!((done.cases, done.bytes), (2, html.len() as u64));
    let found = cases(&html);
    assert!(found[0] == ("a".to_owned(), first));
    let escaped = "&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;";
    assert_eq!(found[1], (escaped.to_owned(), b"SSNVIEW1".to_vec()));
    assert!(!html.contains("<script>alert") && !html.contains("<!--CASES-->"));
    // The policy stands before everything that it is about, and the cases before the script that looks for them.
    let place = |text: &str| html.find(text).unwrap();
    assert!(place("<meta http-equiv=\"Content-Security-Policy\"") < place("<style"));
    assert!(place("application/x-ssn-case") < html.rfind("<script").unwrap());
    assert!(html.contains("connect-src 'none'") && html.contains("default-src 'none'"));
}

#[test]
fn nothing_is_left_of_a_file_that_fails() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cases.html");
    std::fs::write(&path, "before").unwrap();
    let refusal = || Error::case("b", "no");
    let cases: [Case; 2] = [Ok(case("a", vec![1; 100])), Err(refusal())];
    let error = export(&path, cases.into_iter()).unwrap_err();
    assert_eq!(error.to_string(), "case b: no");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn scores_stand_beside_the_name_of_a_case() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cases.html");
    let scores: CaseHeadline =
        [("ged2".to_owned(), Some(0.25)), ("dsc".to_owned(), None)].into_iter().collect();
    let cases: [Case; 2] =
        [Ok(ExportCase { scores: Some(scores), ..case("a", vec![1]) }), Ok(case("b", vec![2]))];
    export(&path, cases.into_iter()).unwrap();
    let html = std::fs::read_to_string(&path).unwrap();
    let escaped = "{&quot;dsc&quot;:null,&quot;ged2&quot;:0.25}";
    assert!(html.contains(&format!("data-name=\"a\" data-scores=\"{escaped}\">")), "{html}");
    assert!(html.contains("data-name=\"b\">"));
    assert!(html.contains("<script type=\"application/x-ssn-columns\">[{\"key\":\"ged2\",\"name\":\"GED²\""));
}
