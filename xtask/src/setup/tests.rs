//! Which libtorch is chosen, and what each refusal is, with fake interpreters and no network.

use super::*;
use crate::python::fixtures;
use std::fs;

fn request(root: &Path) -> Request {
    Request { root: root.to_owned(), parts: Parts::Cpu, force: false, download: false, in_checkout: true }
}

fn refusal(host: &Host) -> Error {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().join("libtorch");
    let error = settle(host, &request(&root)).unwrap_err();
    if !matches!(error, Error::PipFailed { .. }) {
        assert!(!root.exists(), "nothing is begun before the refusal: {error}");
    }
    error
}

/// A folder that looks like a libtorch of this version.
fn libtorch_folder(folder: &Path, version: &str) {
    fs::create_dir_all(folder.join("lib")).unwrap();
    fs::create_dir_all(folder.join("include/torch")).unwrap();
    fs::write(folder.join("lib/libtorch_cpu.so"), "").unwrap();
    fs::write(folder.join("build-version"), version).unwrap();
}

#[test]
fn each_missing_tool_has_its_own_refusal() {
    assert!(matches!(refusal(&Host::default()), Error::NoCompiler { .. }));
    let compiler = Host { cxx: Some("/bin/sh".into()), ..Host::default() };
    assert!(matches!(refusal(&compiler), Error::NoPython { .. }));
    assert!(matches!(refusal(&fixtures::host("no-pip")), Error::NoPip { .. }));
    assert!(matches!(refusal(&Host { use_pytorch: true, ..compiler }), Error::NoPython { .. }));
}

#[test]
fn the_users_libtorch_is_taken_or_refused_but_never_replaced() {
    let temp = tempfile::tempdir().unwrap();
    let own = temp.path().join("own");
    libtorch_folder(&own, "2.11.0+cpu");
    let host = Host { libtorch: Some(own.clone()), cxx: Some("/bin/sh".into()), ..Host::default() };
    let outcome = settle(&host, &request(&temp.path().join("libtorch"))).unwrap();
    assert!(matches!(&outcome, Outcome::Found(text) if text.starts_with("LIBTORCH is set")), "{outcome:?}");
    fs::write(own.join("build-version"), "2.4.0").unwrap();
    assert!(matches!(refusal(&host), Error::WrongVersion { found, .. } if found == "2.4.0"));
    assert!(matches!(
        refusal(&Host { libtorch: Some("/nowhere".into()), ..host }),
        Error::IncompleteLibtorch { .. }
    ));
}

#[test]
fn use_pytorch_is_refused_when_the_version_is_wrong_or_none_is_there() {
    let old = Host { use_pytorch: true, ..fixtures::host("old-torch") };
    assert!(matches!(refusal(&old), Error::WrongVersion { found, .. } if found == "2.10.0"));
    let none = Host { use_pytorch: true, ..fixtures::host("no-pip") };
    assert!(matches!(refusal(&none), Error::NoPytorch { .. }));
}

#[test]
fn a_pytorch_of_another_version_is_not_linked() {
    // It has no pip either, so that the way to the wheels ends at once.
    assert!(matches!(refusal(&fixtures::host("old-torch")), Error::NoPip { .. }));
}

#[test]
fn a_foreign_folder_is_not_filled() {
    let temp = tempfile::tempdir().unwrap();
    fs::write(temp.path().join("thesis.tex"), "precious").unwrap();
    let request = Request { in_checkout: false, ..request(temp.path()) };
    let error = settle(&fixtures::host("no-pip"), &request).unwrap_err();
    assert!(matches!(error, Error::NotOurs { .. }), "{error}");
}
