//! Files that are no files, and names that are more than names: pipes and devices are refused, and nothing steers a terminal.

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::common::{Prediction, picture, ssn, told};

fn pipe(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Nobody ever writes to the pipes: a program that opens one as a file waits for ever.
#[test]
fn pipes_and_devices_are_refused_wherever_a_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["pipe", "pipe.toml", "pipe.csv", "pipe.json", "pipe.ssn.safetensors", "split.toml"] {
        pipe(&at(name));
    }
    picture(&at("set/images/a.png"), |i| i as u8);
    picture(&at("set/labels/a.png"), |i| u8::from(i < 9));
    picture(&at("set/images/b.png"), |i| i as u8);
    picture(&at("set/labels/b.png"), |i| u8::from(i < 9));
    std::fs::write(at("config.toml"), "[data]\npath = \"set\"\n[data.split]\nfile = \"split.toml\"\n")
        .unwrap();
    for device in ["/dev/zero", "/dev/null"] {
        std::os::unix::fs::symlink(device, at(&format!("{}.toml", device.replace('/', "")))).unwrap();
    }
    for (arguments, exit, said) in [
        (&["check", "pipe"][..], 65, "neither a plain file nor a folder"),
        (&["check", "/dev/zero"], 65, "neither a plain file nor a folder"),
        (&["check", "pipe.csv"], 65, "neither a plain file nor a folder"),
        (&["check", "pipe.toml"], 65, "a pipe, which is no plain file"),
        (&["check", "devzero.toml"], 65, "a device, which is no plain file"),
        (&["check", "devnull.toml"], 65, "a device, which is no plain file"),
        (&["check", "config.toml"], 1, "a pipe, which is no plain file"),
        (&["init", "pipe"], 65, "neither a plain file nor a folder"),
        (&["sample", "pipe.ssn.safetensors", "--out", "samples"], 65, "a pipe, which is no plain file"),
        (&["report", "pipe"], 65, "neither a folder of predictions"),
        (&["view", "pipe.ssn.safetensors", "--export", "a.html"], 65, "a pipe, which is no plain file"),
    ] {
        let output = ssn(&folder, arguments);
        let told = told(&output);
        assert_eq!((output.status.code(), told.contains(said)), (Some(exit), true), "{arguments:?}: {told}");
    }
    assert!(!at("split.toml").is_file(), "the pipe stays");
}

#[test]
fn pipes_among_the_files_of_a_dataset_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    picture(&at("a.png"), |i| i as u8);
    picture(&at("a_seg.png"), |i| u8::from(i < 9));
    for name in ["b.png", "b.nii.gz", "b.mhd", "b.dcm", "b.npy"] {
        pipe(&at(name));
        let index = format!("id,image,seg\na,a.png,a_seg.png\nb,{name},a_seg.png\n");
        std::fs::write(at("index.csv"), index).unwrap();
        let output = ssn(&folder, &["check", "index.csv"]);
        let told = told(&output);
        assert!(told.contains("a pipe, which is no plain file"), "{name}: {told}");
        assert_eq!(output.status.code(), Some(1), "{name}: {told}");
    }
}

/// Sets the title of a terminal, rings its bell, begins the line anew, gives a command in one character, and turns text around.
const STEERING: &str = "\u{1b}]0;x\u{7}\r\u{9b}31m\u{202e}";

/// Both streams, in colors as on a terminal.
fn colored(folder: &TempDir, arguments: &[&str]) -> (Output, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ssn"))
        .args(arguments)
        .current_dir(folder.path())
        .env_remove("NO_COLOR")
        .env("CLICOLOR_FORCE", "1")
        .output()
        .unwrap();
    let text = [&output.stdout[..], &output.stderr].concat();
    (output, String::from_utf8(text).unwrap())
}

/// A text without the colors of the program itself.
fn without_colors(text: &str) -> String {
    ["\u{1b}[1m", "\u{1b}[0m", "\u{1b}[31m", "\u{1b}[33m", "\u{1b}[36m"]
        .iter()
        .fold(text.to_owned(), |text, own| text.replace(own, ""))
}

fn check_harmless(text: &str, what: &str) {
    let steers = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
    assert!(!without_colors(text).contains(steers), "{what}: {text:?}");
    // JSON writes the return of the carriage as `\r`.
    for part in [r"\u001b]0;x\u0007", r"\u009b31m\u202e"] {
        assert!(text.contains(part), "{what}: {text:?}");
    }
}

#[test]
fn names_of_files_steer_no_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // Without a label, the case is named in a finding.
    picture(&at(&format!("set/images/{STEERING}.png")), |i| i as u8);
    picture(&at("set/images/a.png"), |i| i as u8);
    picture(&at("set/labels/a.png"), |i| u8::from(i < 9));
    picture(&at("set/images/b.png"), |i| i as u8);
    std::fs::write(at("set/labels/b.png"), "no picture").unwrap();
    let (output, text) = colored(&folder, &["check", "set"]);
    assert_eq!(output.status.code(), Some(1), "{text}");
    check_harmless(&text, "findings");
    let (_, text) = colored(&folder, &["check", "set", "--json"]);
    check_harmless(&text, "JSON");
    let (output, text) = colored(&folder, &["check", &format!("absent{STEERING}")]);
    assert_eq!(output.status.code(), Some(65), "{text}");
    check_harmless(&text, "an error");
    let escaped = r"\u001B]0;x\u0007\r\u009b31m\u202e";
    std::fs::write(at("config.toml"), format!("[data]\npath = \"{escaped}\"\n")).unwrap();
    let (output, text) = colored(&folder, &["check", "config.toml"]);
    assert_eq!(output.status.code(), Some(65), "{text}");
    check_harmless(&text, "a value of a config");
}

#[test]
fn names_of_cases_steer_no_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("{STEERING}.ssn.safetensors"));
    Prediction::picture("a", 0).write(&path);
    let (_, text) = colored(&folder, &["sample", path.to_str().unwrap(), "--out", &format!("out{STEERING}")]);
    check_harmless(&text, "samples");
}
