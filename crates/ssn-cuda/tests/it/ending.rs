//! How a program ends whose GPU fails where no error can be handed on. Needs the C++ compiler that builds the bindings.

use std::env;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

const ABORTED: i32 = 6;

#[test]
fn a_gpu_that_fails_in_a_destructor_is_told_in_a_sentence_and_other_failures_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("ending");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ending.cpp");
    let compiler = env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let mut compile = Command::new(compiler);
    compile.args(["-std=c++17", "-w", "-o"]).arg(&program).arg(source);
    assert!(compile.status().unwrap().success());
    let ended = |failure: &str| {
        let output = Command::new(&program).arg(failure).output().unwrap();
        (output.status, String::from_utf8(output.stderr).unwrap())
    };

    let (status, said) = ended("CUDA error: unspecified launch failure\nSearch for it");
    assert_eq!(status.code(), Some(74));
    assert_eq!(said, "error: the GPU stopped working (CUDA error: unspecified launch failure). Go on\n");

    let (status, said) = ended("something else");
    assert_eq!(status.signal(), Some(ABORTED));
    assert!(said.contains("something else"), "{said}");
}
