//! `ssn view`: the viewer, served to the browser of this machine or written to a file.

mod browser;
mod gather;

use std::path::Path;

use serde::Serialize;
use ssn_data::text::counted;
use ssn_eval::ErrorKind;
use ssn_view::{ExportCase, Exported, Library, Listed, Packing, Server, ServerLimits, export};

use crate::answer::Answer;
use crate::args::{Global, ViewArgs};
use crate::exit::{Failure, json, print, tell};
use gather::Gathered;
use ssn_core::{Control, OnProgress, Phase};

/// Writes the cases to the file of `--export`.
pub fn answer(args: &ViewArgs, control: Control<'_>) -> Result<Answer, Failure> {
    let Some(path) = &args.export else {
        return Err(Failure::new(ErrorKind::Usage, "--export names no file"));
    };
    ssn_eval::check_free_or(path, args.overwrite, "choose another name")?;
    let gathered = gather(args, control)?;
    let exported = write_page(path, &gathered, control.progress)?;
    let cases = counted(exported.cases, "case");
    let size = exported.bytes as f64 / f64::from(1 << 20);
    let text = format!("{} ({size:.1} MiB) holds {cases}; open it in a browser\n", path.display());
    Answer::new(text, &Written { file: path, exported })
}

/// Serves the cases until it is stopped.
pub fn serve(args: &ViewArgs, global: &Global, control: Control<'_>) -> Result<(), Failure> {
    check_host(args)?;
    serve_gathered(args, gather(args, control)?, global)
}

fn gather(args: &ViewArgs, control: Control<'_>) -> Result<Gathered, Failure> {
    let packing = Packing { seed: args.seed, crop: args.crop };
    let gathered = Gathered::open(&args.input, &args.cases, args.data.as_deref(), packing)?;
    if let Some(note) = &gathered.note {
        control.message(note);
    }
    Ok(gathered)
}

/// What `--json` prints of a server.
#[derive(Serialize)]
struct Serving<'a> {
    url: &'a str,
    token: &'a str,
    port: u16,
}

fn serve_gathered(args: &ViewArgs, gathered: Gathered, global: &Global) -> Result<(), Failure> {
    let count = gathered.found.len();
    let title = gathered.title.clone();
    let server = Server::bind(args.host, args.port.unwrap_or(0), library(gathered), ServerLimits::default())?;
    if !args.host.is_loopback() {
        tell(&format!(
            "warning: every machine that reaches {} can see the cases if it knows the token, and the connection is not \
             encrypted",
            args.host
        ));
    }
    let url = server.url();
    if global.json {
        let serving = Serving { url: &url, token: server.token(), port: server.port() };
        print(&json(&serving)?)?;
    } else {
        print(&format!("{} of {title}: {url}\nCtrl-C ends it.\n", counted(count, "case")))?;
    }
    server.run_until_stopped(|server| {
        if !args.no_open {
            browser::open(server);
        }
    })?;
    Ok(())
}

/// The cases as the server wants them.
fn library(gathered: Gathered) -> Library {
    let listed = |(number, found): (usize, &ssn_eval::Found)| Listed {
        name: found.id().to_owned(),
        size: found.header.description.size,
        scores: gathered.headline(number),
        bytes: std::fs::metadata(&found.path).map_or(0, |file| file.len()),
    };
    Library {
        title: gathered.title.clone(),
        cases: gathered.found.iter().enumerate().map(listed).collect(),
        make: Box::new(move |number| {
            gathered.package(number).map_err(|failure| {
                failure.tell();
                failure.message
            })
        }),
    }
}

/// What `--json` prints of a file.
#[derive(Serialize)]
struct Written<'a> {
    file: &'a Path,
    #[serde(flatten)]
    exported: Exported,
}

/// Writes a page with all cases of a folder of predictions, and replaces one that is there.
///
/// # Errors
/// A folder or a case that cannot be read, and a page that cannot be written.
pub fn export_page(predictions: &Path, path: &Path, progress: OnProgress<'_>) -> Result<Exported, Failure> {
    write_page(path, &Gathered::open(predictions, &[], None, Packing::default())?, progress)
}

fn write_page(path: &Path, gathered: &Gathered, progress: OnProgress<'_>) -> Result<Exported, Failure> {
    let phase = Phase::new(progress, "exporting", gathered.found.len(), "cases");
    let cases = (0..gathered.found.len()).map(|number| {
        let name = gathered.found[number].id().to_owned();
        let package = gathered.package(number)?;
        phase.advance(1, &name);
        Ok(ExportCase { name, scores: gathered.headline(number), package })
    });
    export::<Failure>(path, cases)
}

/// Refuses addresses that would show the cases to others, unless that was asked for.
fn check_host(args: &ViewArgs) -> Result<(), Failure> {
    let host = args.host;
    if host.is_loopback() || args.allow_remote {
        return Ok(());
    }
    let message = format!(
        "--host {host} lets other machines reach the page, unencrypted; add --allow-remote if that is meant"
    );
    Err(Failure::new(ErrorKind::Usage, message))
}
