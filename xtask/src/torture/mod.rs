//! `cargo xtask torture`: kills, full disks, little memory, flipped bits, mutated files and malformed requests, at random.
//!
//! A campaign is a file here. It runs trials until its time is up; each trial disturbs the programs and looks for what must
//! never happen. The seed of a trial is told with what it found, and the same seed does the same again.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::error::{Error, Exit};
use crate::{process, setup};

mod damage;
mod disturbances;
mod files;
mod lab;
mod requests;

use lab::Lab;

/// Try for some minutes to break the programs: kills at any system call, full disks, too little memory, flipped bits, mutated
/// files of every format, malformed requests.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Minutes for all campaigns together.
    #[arg(default_value_t = 2.0)]
    minutes: f64,
    /// The seed of every random choice.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Only this campaign; may be repeated.
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(CAMPAIGNS.map(|(name, ..)| name)))]
    only: Vec<String>,
    /// The folder of `ssn`, `ssn-engine` and `mutate_files`; without it they are built.
    #[arg(long)]
    programs: Option<PathBuf>,
}

type Campaign = fn(&Lab, &mut Rng, Instant, &mut Findings) -> Result<(), Error>;

/// The campaigns, with their shares of the time.
const CAMPAIGNS: [(&str, u32, Campaign); 6] = [
    ("kills", 4, disturbances::kills),
    ("full disks", 2, disturbances::full_disks),
    ("little memory", 2, disturbances::little_memory),
    ("flipped bits", 2, damage::flips),
    ("mutated files", 2, files::mutations),
    ("requests", 1, requests::malformed),
];

/// What must never happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The same command cannot be run again after what happened.
    DeadEnd,
    /// A panic, an abort, or a signal that nobody sent.
    Crash,
    /// A command or a server that does not answer.
    Hang,
    /// Something is missing or other than without the disturbance.
    Lost,
    /// Damage that was not noticed and changed a result.
    Missed,
}

const KINDS: [(Kind, &str); 5] = [
    (Kind::DeadEnd, "dead ends"),
    (Kind::Crash, "crashes"),
    (Kind::Hang, "hangs"),
    (Kind::Lost, "lost"),
    (Kind::Missed, "missed"),
];

/// What a campaign came to.
#[derive(Debug, Default)]
pub struct Findings {
    /// How often something was tried.
    trials: u64,
    found: Vec<(Kind, String)>,
}

impl Findings {
    /// Counts trials.
    pub fn tried(&mut self, count: u64) {
        self.trials += count;
    }

    /// Notes what must not happen, and tells it at once.
    pub fn found(&mut self, kind: Kind, what: String) {
        eprintln!("FOUND {kind:?}: {what}");
        self.found.push((kind, what));
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Exit, Error> {
    let programs = match &args.programs {
        Some(folder) => std::path::absolute(folder).map_err(Error::io("find", folder))?,
        None => match build()? {
            Ok(folder) => folder,
            Err(exit) => return Ok(exit),
        },
    };
    let lab = Lab::new(programs)?;
    let chosen: Vec<_> = CAMPAIGNS
        .iter()
        .filter(|(name, ..)| args.only.is_empty() || args.only.iter().any(|only| only == name))
        .collect();
    let shares: u32 = chosen.iter().map(|(_, share, _)| share).sum();
    println!("seed {}, {} minutes", args.seed, args.minutes);
    let heading: Vec<String> = KINDS.iter().map(|(_, name)| format!("{name:>10}")).collect();
    println!("{:14}{:>10}{}", "campaign", "trials", heading.concat());
    let mut is_clean = true;
    for (name, share, campaign) in chosen {
        let seconds = 60.0 * args.minutes * f64::from(*share) / f64::from(shares);
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        let mut findings = Findings::default();
        campaign(&lab, &mut Rng::with_seed(args.seed), end, &mut findings)?;
        let count = |kind| findings.found.iter().filter(|(found, _)| *found == kind).count();
        let counts: Vec<String> = KINDS.iter().map(|(kind, _)| format!("{:>10}", count(*kind))).collect();
        println!("{name:14}{:>10}{}", findings.trials, counts.concat());
        is_clean &= findings.found.is_empty();
    }
    Ok(if is_clean { Exit::Success } else { Exit::BadData })
}

/// Builds the programs; gives their folder.
fn build() -> Result<Result<PathBuf, Exit>, Error> {
    setup::ensure()?;
    let programs = ["--package", "ssn-cli", "--package", "ssn-engine", "--bins"];
    for what in [&programs[..], &["--package", "ssn-io", "--example", "mutate_files"]] {
        let built = process::run(process::cargo().arg("build").args(what))?;
        if built != Exit::Success {
            return Ok(Err(built));
        }
    }
    Ok(Ok(process::target_directory()?.join("debug")))
}
