//! The page, as it was built from `page/`, and what it may do.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use ssn_io::{Error, Result};

/// Script, worker and style in one file.
pub(crate) const PAGE: &str = include_str!("../page/dist/viewer.html");

/// Where exported cases go.
const CASES: &str = "<!--CASES-->";
/// Where an exported page states its content policy.
const HEAD: &str = "<head>";

/// Who shows the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Our server, from which it may fetch.
    Server,
    /// A file, which fetches nothing.
    File,
}

/// The content policy of the page: its own scripts and styles, by their hashes, workers and pictures that it makes itself,
/// and nothing else.
pub(crate) fn policy(page: &str, origin: Origin) -> String {
    let hashes = |element| {
        let list: Vec<String> = inline(page, element).iter().map(|text| hash(text)).collect();
        if list.is_empty() { "'none'".to_owned() } else { list.join(" ") }
    };
    let connect = match origin {
        Origin::Server => "'self'",
        Origin::File => "'none'",
    };
    let policy = format!(
        "default-src 'none'; script-src {}; worker-src blob:; style-src {}; img-src blob: data:; \
         connect-src {connect}; base-uri 'none'; form-action 'none'",
        hashes("script"),
        hashes("style"),
    );
    match origin {
        Origin::Server => policy + "; frame-ancestors 'none'",
        // Browsers ignore, and complain about, this part in a page.
        Origin::File => policy,
    }
}

/// Returns the error of a page that is not what it should be, though it is part of the program.
pub(crate) fn damaged(reason: &str) -> Error {
    Error::internal(format!("the page of the viewer is damaged: {reason}"))
        .advise("build it again (docs/reference/viewer.md)")
}

/// The page before and after the exported cases, with its policy in it.
pub(crate) fn exported() -> Result<(String, &'static str)> {
    let (before, after) =
        PAGE.split_once(CASES).ok_or_else(|| damaged("it has no place for exported cases"))?;
    let (start, rest) = before.split_once(HEAD).ok_or_else(|| damaged("it has no <head>"))?;
    let policy = policy(PAGE, Origin::File);
    let meta = format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">");
    Ok((format!("{start}{HEAD}{meta}{rest}"), after))
}

/// The texts of all elements of a name that run or style, in order.
fn inline<'a>(page: &'a str, element: &str) -> Vec<&'a str> {
    let (open, close) = (format!("<{element}"), format!("</{element}>"));
    let (mut found, mut rest) = (vec![], page);
    while let Some(at) = rest.find(&open) {
        rest = &rest[at + open.len()..];
        let Some(end) = rest.find('>') else { break };
        let (attributes, text) = (&rest[..end], &rest[end + 1..]);
        let Some(end) = text.find(&close) else { break };
        // Scripts of other types are data.
        if !attributes.contains("type=\"application/") {
            found.push(&text[..end]);
        }
        rest = &text[end + close.len()..];
    }
    found
}

fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_scripts_of_the_page_may_run() {
        let page = "<head><style>a{}</style></head><script type=\"application/x\">1</script><script>2</script>\
                    <script type=\"module\">3</script>";
        assert_eq!(inline(page, "script"), ["2", "3"]);
        assert_eq!(inline(page, "style"), ["a{}"]);
        let policy = policy(page, Origin::Server);
        // sha256 of "2", from `printf 2 | openssl dgst -sha256 -binary | base64`.
        assert!(policy.contains("'sha256-1HNeOiZeFu7gP1lxi5tdAwGcB9i2xR+Q2jpmbuwTqzU='"), "{policy}");
        assert!(!policy.contains("unsafe") && policy.contains("default-src 'none'"));
    }

    #[test]
    fn the_built_page_has_its_places() {
        let (before, after) = exported().unwrap();
        assert!(before.contains("connect-src 'none'") && !before.contains("frame-ancestors"));
        assert!(after.contains("</script>"), "the script comes after the cases");
        assert_eq!(PAGE.matches(CASES).count(), 1);
        assert_eq!(inline(PAGE, "script").len(), PAGE.matches("</script>").count(), "all scripts are seen");
        for fetched in [" src=\"http", " href=\"http", "url(http", "@import", " src='http"] {
            assert!(!PAGE.contains(fetched), "the page would fetch: {fetched}");
        }
    }
}
