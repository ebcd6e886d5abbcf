//! Names in a config that its schema does not know, with the name that was probably meant.

use schemars::{JsonSchema, schema_for};
use serde_json::{Map, Value as Json};
use toml::{Table, Value};

use crate::text::nearest;

/// A key or choice of a config that the schema does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    /// The keys that lead to it; the last one is the name itself if it is a key.
    pub keys: Vec<String>,
    /// The name.
    pub name: String,
    /// The most similar name that the schema knows there.
    pub nearest: Option<String>,
}

impl UnknownName {
    /// The first unknown name of a table that should hold a `T`.
    pub fn find<T: JsonSchema>(table: &Table) -> Option<Self> {
        let schema = schema_for!(T).to_value();
        let mut keys = vec![];
        find(&schema, &[&schema], &Value::Table(table.clone()), &mut keys).map(|(name, nearest)| Self {
            keys,
            name,
            nearest,
        })
    }

    /// The end of a sentence: the name that was probably meant, if there is one.
    pub fn hint(&self) -> String {
        self.nearest.as_ref().map_or(String::new(), |near| format!("; did you mean `{near}`?"))
    }
}

/// Looks for an unknown name below a value that one of the `nodes` describes. Returns it with its nearest known name, and leaves
/// the way to it in `keys`.
fn find(
    root: &Json,
    nodes: &[&Json],
    value: &Value,
    keys: &mut Vec<String>,
) -> Option<(String, Option<String>)> {
    let mut choices = vec![];
    nodes.iter().for_each(|node| flatten(root, node, &mut choices));
    let near = |name: &str, known: &[&str]| {
        (name.to_owned(), nearest(name, known.iter().copied()).map(str::to_owned))
    };
    match value {
        Value::String(text) => {
            let known: Vec<&str> = choices.iter().flat_map(|choice| names(choice)).collect();
            let free = choices
                .iter()
                .any(|choice| choice.get("type") == Some(&"string".into()) && names(choice).is_empty());
            (!known.is_empty() && !free && !known.contains(&text.as_str())).then(|| near(text, &known))
        }
        Value::Array(items) => {
            let inner: Vec<&Json> = choices.iter().filter_map(|choice| choice.get("items")).collect();
            items.iter().find_map(|item| find(root, &inner, item, keys))
        }
        Value::Table(table) => {
            let mut objects: Vec<&Map<String, Json>> =
                choices.iter().filter_map(|choice| choice.get("properties")?.as_object()).collect();
            // A tag such as `kind` selects one of several objects.
            for (key, value) in table {
                let Some(text) = value.as_str() else { continue };
                let is_named = |object: &&Map<String, Json>| {
                    object.get(key).is_some_and(|schema| names(schema).contains(&text))
                };
                if objects.iter().any(is_named) {
                    objects.retain(is_named);
                }
            }
            let known: Vec<&str> =
                objects.iter().flat_map(|object| object.keys()).map(String::as_str).collect();
            for (key, value) in table {
                keys.push(key.clone());
                let inner: Vec<&Json> = objects.iter().filter_map(|object| object.get(key)).collect();
                let found = match inner.is_empty() {
                    true => (!known.is_empty()).then(|| near(key, &known)),
                    false => find(root, &inner, value, keys),
                };
                if found.is_some() {
                    return found;
                }
                keys.pop();
            }
            None
        }
        _ => None,
    }
}

/// The texts that a schema allows one by one.
fn names(schema: &Json) -> Vec<&str> {
    let listed = schema.get("enum").and_then(Json::as_array).into_iter().flatten();
    listed.chain(schema.get("const")).filter_map(Json::as_str).collect()
}

/// The schemas that a schema refers to or chooses from.
fn flatten<'a>(root: &'a Json, node: &'a Json, choices: &mut Vec<&'a Json>) {
    choices.push(node);
    let path = node.get("$ref").and_then(Json::as_str).and_then(|path| path.strip_prefix('#'));
    if let Some(referred) = path.and_then(|path| root.pointer(path)) {
        flatten(root, referred, choices);
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        node.get(key)
            .and_then(Json::as_array)
            .into_iter()
            .flatten()
            .for_each(|inner| flatten(root, inner, choices));
    }
}

/// Refuses a config with a section that `T` does not have.
pub fn check_sections<T: JsonSchema>(table: &Table) -> Result<(), String> {
    let schema = schema_for!(T).to_value();
    let sections = schema.get("properties").and_then(Json::as_object);
    let known: Vec<&str> = sections.into_iter().flat_map(Map::keys).map(String::as_str).collect();
    match table.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(section) => {
            let inside = known.iter().filter(|known| has_key(&schema, known, section));
            let inside: Vec<String> = inside.map(|known| format!("`{known}.{section}`")).collect();
            if !inside.is_empty() {
                let inside = inside.join(" or ");
                return Err(format!("there is no section [{section}]; did you mean {inside}?"));
            }
            let near = nearest(section, known);
            let hint = near.map_or(String::new(), |near| format!("; did you mean [{near}]?"));
            Err(format!("there is no section [{section}]{hint}"))
        }
    }
}

/// Whether a section has a key.
fn has_key(schema: &Json, section: &str, key: &str) -> bool {
    let mut choices = vec![];
    schema["properties"].get(section).into_iter().for_each(|node| flatten(schema, node, &mut choices));
    choices.iter().any(|choice| choice.get("properties").is_some_and(|keys| keys.get(key).is_some()))
}

/// What a TOML error says, with its line, and the name that was probably meant in a text that should hold a `T`.
pub fn explain<T: JsonSchema>(text: &str, error: &toml::de::Error) -> String {
    let place = error.span().map_or(String::new(), |span| format!("line {}: ", line_of(text, span.start)));
    let about = error.span().and_then(|span| text.get(span)).unwrap_or_default();
    let unknown = toml::from_str(text).ok().and_then(|table| UnknownName::find::<T>(&table));
    let unknown = unknown.filter(|unknown| about.contains(&unknown.name));
    format!("{place}{}{}", error.message(), unknown.map_or(String::new(), |unknown| unknown.hint()))
}

/// The line of a byte of a text, from 1.
pub fn line_of(text: &str, byte: usize) -> usize {
    text[..byte.min(text.len())].matches('\n').count() + 1
}
