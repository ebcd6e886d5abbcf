//! Commands as the user could type them, for messages.

/// A command line: words are quoted where a shell needs it.
pub fn command_line(words: &[String]) -> String {
    let shown: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!("$ ssn {}", shown.join(" "))
}

/// A word as a shell takes it for one.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_take_words_as_they_are_meant() {
        assert_eq!(quoted("training.steps=4"), "training.steps=4");
        assert_eq!(quoted("model.head={stochastic={rank=0}}"), "'model.head={stochastic={rank=0}}'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
