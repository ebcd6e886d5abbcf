//! Text inside HTML and SVG.

/// Text as it stands in elements and in attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // What neither XML nor HTML may hold.
            c if c.is_control() && !matches!(c, '\n' | '\t') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_closes_an_attribute_or_opens_an_element() {
        assert_eq!(escape("a < b & \"c\" > 'd'\n"), "a &lt; b &amp; &quot;c&quot; &gt; &#39;d&#39;\n");
        assert_eq!(escape("\u{0}\u{1b}[31m"), "\u{fffd}\u{fffd}[31m");
    }
}
