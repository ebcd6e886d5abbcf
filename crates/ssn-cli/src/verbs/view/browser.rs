//! Opening the user's browser.

use std::process::{Command, Stdio};

use crate::exit::tell;

/// Opens an address in the browser; where that fails, says so and goes on, as the address was printed.
pub(super) fn open(url: &str) {
    let Some(mut command) = command(url) else {
        tell("There is no screen here to open a browser on: open the address above where you have one.");
        return;
    };
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = move |reason: String| {
        tell(&format!("No browser could be opened ({program}: {reason}): open the address above yourself."));
    };
    match command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
        Err(error) => failed(error.to_string()),
        Ok(mut child) => {
            // Some programs end at once and others with the browser: nobody waits for them.
            std::thread::spawn(move || match child.wait() {
                Ok(status) if !status.success() => failed(status.to_string()),
                _ => {}
            });
        }
    }
}

/// The program that opens an address; nothing where there is no screen.
fn command(url: &str) -> Option<Command> {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else if cfg!(target_os = "windows") {
        "explorer"
    } else {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if !["DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME"].into_iter().any(set) {
            return None;
        }
        "xdg-open"
    };
    let mut command = Command::new(program);
    command.arg(url);
    Some(command)
}
