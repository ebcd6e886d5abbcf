//! `docs/reference/config.md` and `docs/reference/config.schema.json`, which are made of the code that reads configs.
//!
//! With `SSN_UPDATE_DOCS=1` the test writes them; otherwise it compares.

use std::fmt::Write as _;

use schemars::transform::{Transform, transform_subschemas};
use schemars::{Schema, schema_for};
use serde_json::{Value, json};
use ssn_testing::assert_page_is_up_to_date;
use ssn_train::run::{RunConfig, RunPreset};

const INTRODUCTION: &str = "\
# Every setting of a config

A config is merged from a preset, a file, and `--set KEY=VALUE` ([how](training.md#configs)). Keys are written as `--set` takes them; in a file,
`training.steps` is `steps` in the section `[training]`. A key without a default is set by every preset, or is not used. Sizes are `[d, h, w]`, with
d = 1 for pictures.

For completion in an editor, put `#:schema PATH/config.schema.json` into the first line of a config; the file is in the folder of this page.

This page is generated: `SSN_UPDATE_DOCS=1 cargo nextest run -p ssn-train --test it config_reference`.
";

#[test]
fn the_config_reference_is_that_of_the_code() {
    let schema = schema_for!(RunConfig).to_value();
    assert_page_is_up_to_date("config.md", &markdown(&schema));
    let file = serde_json::to_string_pretty(&file_schema(schema)).unwrap();
    assert_page_is_up_to_date("config.schema.json", &(file + "\n"));
}

/// The schema of a file, which need not name what its preset gives.
fn file_schema(mut schema: Value) -> Value {
    struct NothingIsRequired;
    impl Transform for NothingIsRequired {
        fn transform(&mut self, schema: &mut Schema) {
            // The keys that tell the forms of a choice apart stay.
            let properties = schema.get("properties").and_then(Value::as_object);
            let tells_choices = properties.is_some_and(|keys| keys.contains_key("kind") || keys.len() == 1);
            if !tells_choices {
                schema.remove("required");
            }
            transform_subschemas(self, schema);
        }
    }
    schema["properties"]["preset"] = json!({
        "description": "The settings to start with.",
        "enum": RunPreset::ALL.map(RunPreset::name),
    });
    let mut schema: Schema = schema.try_into().unwrap();
    NothingIsRequired.transform(&mut schema);
    schema.to_value()
}

fn markdown(schema: &Value) -> String {
    let mut page = Page { schema, text: INTRODUCTION.to_owned() };
    for section in ["data", "batches", "augmentation", "model", "loss", "optimizer", "training"] {
        let described = &schema["properties"][section];
        write!(page.text, "\n## `[{section}]`\n\n{}\n", sentence(described)).unwrap();
        let choices = page.table(section, described);
        page.choices(choices);
    }
    page.text += "\n## Presets\n\n| preset | |\n|---|---|\n";
    for preset in RunPreset::ALL {
        let about = preset.text().lines().map_while(|line| line.strip_prefix("# "));
        let (name, about) = (preset.name(), about.collect::<Vec<_>>().join(" "));
        let file = format!("../../crates/ssn-train/presets/{name}.toml");
        writeln!(page.text, "| [`{name}`]({file}) | {about} |").unwrap();
    }
    page.text
}

/// A key whose value is one of several forms.
struct Choice<'a> {
    key: String,
    forms: &'a [Value],
}

struct Page<'a> {
    schema: &'a Value,
    text: String,
}

impl<'a> Page<'a> {
    /// A table of all keys below `prefix`; gives those that need a table of their own.
    fn table(&mut self, prefix: &str, schema: &'a Value) -> Vec<Choice<'a>> {
        self.text += "\n| key | value | default | meaning |\n|---|---|---|---|\n";
        let mut choices = vec![];
        self.rows(prefix, schema, &mut choices);
        choices
    }

    fn rows(&mut self, prefix: &str, schema: &'a Value, choices: &mut Vec<Choice<'a>>) {
        let Some(properties) = self.resolved(schema)["properties"].as_object() else { return };
        for (name, property) in properties {
            let key = format!("{prefix}.{name}");
            let inner = self.resolved(property);
            if inner["properties"].is_object() {
                // The backbone is a choice of tables that are written like a section.
                self.rows(&key, property, choices);
                continue;
            }
            let (value, forms) = self.value(inner);
            if let Some(forms) = forms {
                choices.push(Choice { key: key.clone(), forms });
            }
            let default = default(property);
            writeln!(self.text, "| `{key}` | {value} | {default} | {} |", sentence(property)).unwrap();
        }
    }

    /// Tables of choices, and of choices inside them.
    fn choices(&mut self, choices: Vec<Choice<'a>>) {
        for Choice { key, forms } in choices {
            write!(self.text, "\n### `{key}`\n\n").unwrap();
            if forms.iter().all(|form| form["const"].is_string()) {
                self.text += "| form | meaning |\n|---|---|\n";
                for form in forms {
                    writeln!(self.text, "| `{}` | {} |", form["const"], sentence(form)).unwrap();
                }
                continue;
            }
            self.text += "| form | value | default | meaning |\n|---|---|---|---|\n";
            let mut inner = vec![];
            for form in forms {
                self.form(form, &mut inner);
            }
            self.choices(inner);
        }
    }

    /// The rows of one form, with its settings.
    fn form(&mut self, form: &'a Value, choices: &mut Vec<Choice<'a>>) {
        let meaning = sentence(form);
        if form["const"].is_string() {
            writeln!(self.text, "| `{}` | | | {meaning} |", form["const"]).unwrap();
            return;
        }
        if let Some(names) = form["enum"].as_array() {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            writeln!(self.text, "| {} | | | {meaning} |", names.join(", ")).unwrap();
        }
        let Some(properties) = form["properties"].as_object() else { return };
        if let Some(kind) = properties.get("kind").and_then(|kind| kind["const"].as_str()) {
            writeln!(self.text, "| `kind = \"{kind}\"` | | | {meaning} |").unwrap();
            self.settings("", properties.iter().filter(|(name, _)| *name != "kind"), choices);
            return;
        }
        for (name, settings) in properties {
            let settings = self.resolved(settings);
            let (value, _) = self.value(settings);
            let value = if settings["properties"].is_object() { "" } else { &value };
            writeln!(self.text, "| `{name}` | {value} | | {meaning} |").unwrap();
            self.settings(
                &format!("{name}."),
                settings["properties"].as_object().into_iter().flatten(),
                choices,
            );
        }
    }

    fn settings(
        &mut self,
        prefix: &str,
        settings: impl Iterator<Item = (&'a String, &'a Value)>,
        choices: &mut Vec<Choice<'a>>,
    ) {
        for (name, setting) in settings {
            let key = format!("{prefix}{name}");
            let (value, forms) = self.value(self.resolved(setting));
            if let Some(forms) = forms {
                choices.push(Choice { key: key.clone(), forms });
            }
            writeln!(self.text, "| – `{key}` | {value} | {} | {} |", default(setting), sentence(setting))
                .unwrap();
        }
    }

    /// In words what a value is; its forms where they need a table.
    fn value(&self, schema: &'a Value) -> (String, Option<&'a [Value]>) {
        if let Some(forms) = schema["oneOf"].as_array() {
            let names: Option<Vec<_>> = forms.iter().map(|form| form["const"].as_str()).collect();
            let value =
                names.map_or("see below".to_owned(), |names| format!("`\"{}\"`", names.join("\"`, `\"")));
            return (value, Some(forms));
        }
        if schema["type"] == "array" || schema["type"][0] == "array" {
            let (item, forms) = self.value(self.resolved(&schema["items"]));
            let value = match schema["maxItems"].as_u64() {
                Some(count) => format!("`[{}]`", vec![item.trim_matches('`'); count as usize].join(", ")),
                None if forms.is_some() => "list, see below".to_owned(),
                None => format!("list of {item}"),
            };
            return (value, forms);
        }
        let kind = schema["type"].as_str().or(schema["type"][0].as_str()).unwrap_or("see below");
        let word = match kind {
            "string" => "text",
            "boolean" => "true or false",
            other => other,
        };
        (word.to_owned(), None)
    }

    /// Behind references, and what else than nothing may stand there.
    fn resolved(&self, schema: &'a Value) -> &'a Value {
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
            return self.resolved(&self.schema["$defs"][name]);
        }
        match schema["anyOf"].as_array() {
            Some(forms) => self.resolved(forms.iter().find(|form| form["type"] != "null").unwrap()),
            None => schema,
        }
    }
}

/// The description on one line, in the form that a table takes.
fn sentence(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
        .replace("[`", "`")
        .replace("`]", "`")
}

fn default(schema: &Value) -> String {
    match &schema["default"] {
        Value::Object(form) if form.len() == 1 && form.contains_key("kind") => {
            format!("`kind = {}`", form["kind"])
        }
        Value::Null | Value::Object(_) => String::new(),
        value => format!("`{value}`"),
    }
}
