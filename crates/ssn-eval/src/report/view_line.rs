//! The line that opens a case in the viewer.

use std::path::Path;

use ssn_data::text::quoted;

/// `ssn view PREDICTIONS --case ID`, with names as a shell takes them.
pub(super) fn view_line(predictions: &Path, id: &str) -> String {
    let path = predictions.to_string_lossy();
    // A name that begins with a dash would be taken for an option.
    let path = if path.starts_with('-') { format!("./{path}") } else { path.into_owned() };
    let case =
        if id.starts_with('-') { format!("--case={}", quoted(id)) } else { format!("--case {}", quoted(id)) };
    format!("ssn view {} {case}", quoted(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_they_need_it() {
        let line = |path: &str, id: &str| view_line(Path::new(path), id);
        assert_eq!(line("runs/a_1/predictions", "case-1.2"), "ssn view runs/a_1/predictions --case case-1.2");
        assert_eq!(line("my data", "a'b"), r"ssn view 'my data' --case 'a'\''b'");
        assert_eq!(line("p", "$(rm x);`"), "ssn view p --case '$(rm x);`'");
        assert_eq!(line("-p", "-x"), "ssn view ./-p --case=-x");
        assert_eq!(line("p", ""), "ssn view p --case ''");
    }
}
