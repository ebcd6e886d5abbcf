//! Kills and failures at a chosen system call, by `strace`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The calls that change files. A question mark: not every machine has it.
pub const CHANGING: &str = "openat,?open,?creat,write,writev,pwrite64,fsync,fdatasync,?rename,?renameat,renameat2,?unlink,unlinkat,\
                        ?rmdir,?mkdir,mkdirat,?chmod,fchmod,fchmodat,ftruncate,fallocate,?link,linkat";

/// A system call of a process's first thread that changes files.
#[derive(Debug, Clone)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// Its number among those of the same name, from 1.
    pub nth: usize,
    /// How `strace` writes it, with the files that descriptors stand for.
    pub text: String,
}

/// Whether processes can be traced here; says so if not.
pub fn is_there() -> bool {
    match Command::new("strace").args(["-qq", "-e", "trace=none", "true"]).output() {
        Ok(output) if output.status.success() => return true,
        Ok(_) => crate::skip("processes cannot be traced here"),
        Err(_) => crate::skip_without("strace"),
    }
    false
}

/// Runs a command, which must succeed, and gives its calls that change files.
///
/// # Panics
/// If it fails.
pub fn calls(command: &Command, trace: &Path) -> Vec<Call> {
    let mut traced = Command::new("strace");
    traced.args(["-qq", "-y", "-s", "40", "-e", &format!("trace={CHANGING}"), "-o"]).arg(trace);
    let output = wrap(traced, command).output();
    assert!(output.as_ref().is_ok_and(|output| output.status.success()), "{output:?}");
    let mut counts = BTreeMap::<String, usize>::new();
    let mut calls = vec![];
    for line in fs::read_to_string(trace).unwrap_or_default().lines() {
        let Some((name, _)) = line.split_once('(').filter(|_| !line.starts_with(['-', '+'])) else {
            continue;
        };
        let count = counts.entry(name.to_owned()).or_default();
        *count += 1;
        // To open a file for reading changes nothing.
        if !name.starts_with("open") || line.contains("O_CREAT") {
            calls.push(Call { name: name.to_owned(), nth: *count, text: line.to_owned() });
        }
    }
    calls
}

/// The command, with something happening at a call: `signal=KILL` before it, or `error=ENOSPC` instead of it.
pub fn inject(command: &Command, call: &Call, what: &str) -> Command {
    let mut traced = Command::new("strace");
    let Call { name, nth, .. } = call;
    traced.args(["-qq", "-o", "/dev/null", "-e", &format!("trace={name}")]);
    traced.args(["-e", &format!("inject={name}:{what}:when={nth}")]);
    wrap(traced, command)
}

/// A command that starts another.
pub fn wrap(mut outer: Command, command: &Command) -> Command {
    for (name, value) in command.get_envs() {
        outer.env(name, value.unwrap_or_default());
    }
    if let Some(folder) = command.get_current_dir() {
        outer.current_dir(folder);
    }
    outer.arg(command.get_program()).args(command.get_args());
    outer
}
