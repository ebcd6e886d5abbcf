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

#[test]
fn the_users_libtorch_serves_cuda_only_with_its_headers() {
    let temp = tempfile::tempdir().unwrap();
    let (own, home) = (temp.path().join("torch"), temp.path().join("cuda"));
    libtorch_folder(&own, "2.11.0+cu130");
    fs::write(own.join("lib/libtorch_cuda.so"), "").unwrap();
    let host = Host { libtorch: Some(own), cxx: Some("/bin/sh".into()), ..Host::default() };
    let request = Request { parts: Parts::Cuda, ..request(&temp.path().join("libtorch")) };
    let error = settle(&host, &request).unwrap_err();
    let told = error.to_string();
    assert!(matches!(error, Error::NoCudaHeaders { .. }), "{told}");
    assert!(told.contains("nvidia/cu13/include/cuda_runtime_api.h is missing"), "{told}");
    assert!(told.contains("nvidia-cuda-crt=="), "{told}");
    cuda_headers::fill(&home.join("include"));
    settle(&Host { cuda_home: Some(home), ..host.clone() }, &request).unwrap();
    cuda_headers::fill(&temp.path().join(cuda_headers::FOLDER));
    settle(&host, &request).unwrap();
}

#[test]
fn a_link_for_cuda_needs_headers_and_without_them_the_earlier_link_stays() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().join("libtorch");
    let host = fixtures::host("cuda-torch");
    let outcome = settle(&host, &request(&root)).unwrap();
    assert!(
        matches!(&outcome, Outcome::Installed(text) if text.contains("(CPU) in") && text.contains("is a link")),
        "{outcome:?}"
    );
    let cuda = Request { parts: Parts::Cuda, ..request(&root) };
    assert!(installed(&cuda).unwrap_err().contains("CPU alone"));
    let error = settle(&host, &cuda).unwrap_err();
    assert!(
        matches!(&error, Error::PipFailed { package, .. } if package == "nvidia-cuda-runtime"),
        "{error}"
    );
    assert!(installed(&request(&root)).unwrap().is_some());
}
