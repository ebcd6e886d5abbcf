//! Names of data files in headers.
//!
//! A header comes from outside and must not make the reader open files elsewhere, so a name is a plain name of a file
//! beside the header and nothing else.

use super::words::{refused, shown};
use crate::error::Problem;

/// What a header may name.
const ALLOWED: &str =
    "the plain name of one file beside the header, without `/`, `\\`, `:`, `%` or control characters";

/// The name of one file beside the header, or a refusal.
///
/// Both formats can also name many files, by `LIST` or by a pattern of `printf`; these forms are refused.
pub(crate) fn plain_name(field: &'static str, text: &str) -> Result<String, Problem> {
    let name = text.trim();
    let several = name.split_whitespace().next() == Some("LIST") || name.contains('%');
    if several {
        return Err(Problem::Unsupported {
            what: format!("{field} {} (data in several files, by LIST or by a pattern)", shown(name)),
            advice: "store the image in one file",
        });
    }
    let forbidden = |c: char| matches!(c, '/' | '\\' | ':') || c.is_control();
    // `-` is the standard input in some readers.
    if matches!(name, "" | "." | ".." | "-") || name.contains(forbidden) {
        let advice = "put the data file into the folder of the header and name it there";
        return Err(refused(field, name, ALLOWED, advice));
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_pass() {
        for good in ["a.raw", " scan 1.raw.gz ", "..a", ".hidden", "LISTE.raw"] {
            assert_eq!(plain_name("data file", good).unwrap(), good.trim());
        }
        for bad in ["", ".", "..", "-", "/etc/passwd", "../a.raw", "a/b", "a\\b", "C:a.raw", "a\0b", "./a"] {
            let message = plain_name("data file", bad).unwrap_err().to_string();
            assert!(message.contains("plain name of one file"), "{message}");
        }
        for several in ["LIST", "LIST 2", "slice%03d.raw 1 10 1"] {
            let message = plain_name("data file", several).unwrap_err().to_string();
            assert!(message.contains("several files"), "{message}");
        }
    }
}
