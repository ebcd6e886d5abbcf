//! Sentences about what serde refuses in a config.

use crate::text::nearest;

/// Returns the message of an error of serde, with the name that was probably meant.
pub fn with_hint(message: &str) -> String {
    if let Some((_, rest)) = message.split_once("invalid type: string ")
        && let Some((kind, _)) = rest.split_once(", expected internally tagged enum")
    {
        return format!("expected a table with its kind, such as {{ kind = {kind} }}");
    }
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match names.split_first() {
        Some((name, known)) if message.starts_with("unknown ") => {
            match nearest(name, known.iter().copied()) {
                Some(near) => format!("{message}; did you mean `{near}`?"),
                None => message.to_owned(),
            }
        }
        _ => message.to_owned(),
    }
}

/// Returns the key that an error of serde calls unknown.
pub fn unknown_key(message: &str) -> Option<&str> {
    Some(message.strip_prefix("unknown field `")?.split_once('`')?.0)
}

/// Returns a sentence about an error in a text, with its line.
pub fn explain(text: &str, error: &toml::de::Error) -> String {
    let place = error.span().map_or(String::new(), |span| format!("line {}: ", line_of(text, span.start)));
    place + &with_hint(error.message())
}

/// Returns the line of a byte of a text, counted from 1.
pub fn line_of(text: &str, byte: usize) -> usize {
    text[..byte.min(text.len())].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_similar_name_is_offered() {
        let hint = |name: &str| {
            with_hint(&format!("unknown field `{name}`, expected one of `steps`, `seed`"))
                .rsplit_once("; ")
                .map(|(_, hint)| hint.to_owned())
        };
        assert_eq!(hint("stesp").as_deref(), Some("did you mean `steps`?"));
        assert_eq!(hint("quantity"), None);
        assert_eq!(with_hint("missing field `path`"), "missing field `path`");
        assert_eq!(unknown_key("unknown field `stesp`, expected `steps`"), Some("stesp"));
    }
}
