//! Opening the user's browser.
//!
//! Other users of the machine see what a browser is started with. So it is started with the path of a page that only this
//! user can read, and that leads to the viewer.

use std::process::{Command, Stdio};
use std::thread;

use ssn_view::Server;

use crate::exit::tell;

/// The folder of the page, in the user's home: browsers in a sandbox of their own, such as snap, read neither hidden folders
/// nor /tmp.
const FOLDER: &str = "ssn-view-opening";

/// Opens the page of a server in the browser; where that fails, says so and goes on, as the address was printed.
pub(super) fn open(server: &Server) {
    let Some(mut command) = command() else {
        tell("There is no screen here to open a browser on: open the address above where you have one.");
        return;
    };
    let failed = |program: &str, reason: &str| {
        tell(&format!("No browser could be opened ({program}: {reason}): open the address above yourself."));
    };
    let Some(home) = std::env::home_dir().filter(|home| home.is_absolute()) else {
        return failed("home folder", "there is none");
    };
    match server.write_opening_page(&home.join(FOLDER)) {
        Err(error) => failed("page", &error.to_string()),
        Ok(page) => start(command.arg(page), failed),
    }
}

/// Starts the program, and waits for it beside the server.
fn start(command: &mut Command, failed: impl Fn(&str, &str) + Copy + Send + 'static) {
    let program = command.get_program().to_string_lossy().into_owned();
    match command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
        Err(error) => failed(&program, &error.to_string()),
        Ok(mut child) => {
            // Some programs end at once and others with the browser: nobody waits for them. Without a thread, nobody learns
            // how it ended.
            let _ = thread::Builder::new().spawn(move || match child.wait() {
                Ok(status) if !status.success() => failed(&program, &status.to_string()),
                _ => {}
            });
        }
    }
}

/// The program that opens a page; nothing where there is no screen.
fn command() -> Option<Command> {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    // On another machine, a browser that is there could not read a page of this one.
    let is_remote = ["SSH_CONNECTION", "VSCODE_IPC_HOOK_CLI"].into_iter().any(set) && !set("DISPLAY");
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME"].into_iter().any(set);
    (!is_remote && has_screen).then(|| Command::new("xdg-open"))
}
