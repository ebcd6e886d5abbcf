//! Training by processes of MPI: the same curve as one process, killed, resumed by another number of them.
//!
//! Built with the feature `mpi`, and run where there is an `mpirun`.

#![cfg(feature = "mpi")]
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use ssn_testing::process::{Ended, run_to_end, send, wait_for_end, write_program};

use crate::common::{self, Images, Lab, finishes};

/// The command of one process, started as so many ranks.
fn ranks(count: usize, alone: &Command) -> Command {
    let mut command = Command::new("mpirun");
    command
        .args(["-n", &count.to_string(), "--oversubscribe"])
        .arg(alone.get_program())
        .args(alone.get_args());
    for (name, value) in alone.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    // Tests may run as any user; a machine for tests has few cores.
    let allowed = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"];
    command.envs(allowed.map(|name| (name, "1")));
    command
}

/// Returns the numbers of every row of the metrics.
fn metrics(run: &Path) -> Vec<Vec<f64>> {
    let text = fs::read_to_string(run.join("metrics.csv")).unwrap();
    let numbers = |row: &str| row.split(',').map(|cell| cell.parse().unwrap_or(f64::NAN)).collect();
    text.lines().skip(1).map(numbers).collect()
}

fn assert_close(found: &Path, expected: &Path, most: f64) {
    let (found, expected) = (metrics(found), metrics(expected));
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found.len(), expected.len());
        for (a, b) in found.iter().zip(expected) {
            let same = a.is_nan() && b.is_nan() || (a - b).abs() <= most * b.abs();
            assert!(same, "{found:?} and {expected:?}");
        }
    }
}

/// A process of a run, with its rank.
struct Process {
    pid: u32,
    rank: usize,
}

/// Finds the processes of a run by what their launcher told them.
fn processes(run: &Path) -> Vec<Process> {
    let parts = |path: PathBuf| -> Option<Vec<String>> {
        let text = String::from_utf8(fs::read(path).ok()?).ok()?;
        Some(text.split('\0').map(str::to_owned).collect())
    };
    let of_entry = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let environment = parts(entry.path().join("environ"))?;
        let words = parts(entry.path().join("cmdline"))?;
        let rank = environment.iter().find_map(|variable| variable.strip_prefix("OMPI_COMM_WORLD_RANK="))?;
        let ours = words.contains(&run.display().to_string());
        ours.then_some(Process { pid, rank: rank.parse().ok()? })
    };
    fs::read_dir("/proc").unwrap().flatten().filter_map(of_entry).collect()
}

fn process(run: &Path, rank: usize) -> Option<u32> {
    processes(run).into_iter().find(|process| process.rank == rank).map(|process| process.pid)
}

fn wait_for(what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < Duration::from_secs(120), "it did not come");
        sleep(Duration::from_millis(20));
    }
}

/// A job that is killed if it does not end in time, or if the test fails meanwhile.
struct Job(Option<Child>);

impl Job {
    fn start(command: &mut Command) -> Self {
        Self(Some(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()))
    }

    fn end(mut self) -> Ended {
        let job = self.0.take().unwrap();
        let (pid, (ended, has_ended)) = (job.id(), mpsc::channel::<()>());
        let guard = thread::spawn(move || {
            if has_ended.recv_timeout(Duration::from_secs(120)) == Err(RecvTimeoutError::Timeout) {
                assert!(send("KILL", pid.into()));
            }
        });
        let how = wait_for_end(job);
        drop(ended);
        guard.join().unwrap();
        how
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(job) = &mut self.0 {
            let _ = job.kill();
        }
    }
}

const DOUBLE: &[&str] =
    &["training.precision=f64", "batches.batch_size=4", "training.log_every=1", "training.ema=12"];

#[test]
fn two_and_four_ranks_train_as_one_process_does() {
    for images in [Images::Flat, Images::Volumes] {
        let lab = Lab::new(images).with(DOUBLE);
        let alone = lab.uncut("alone");
        for count in [2, 4] {
            let run = lab.path(&format!("ranks-{count}"));
            let ended = finishes(&mut ranks(count, &lab.begin(&run)));
            assert!(ended.stderr.contains(&format!("trains over {count} ranks")), "{}", ended.stderr);
            assert_close(&run, &alone, 1e-9);
        }
    }
}

#[test]
fn a_killed_rank_ends_all_and_another_number_goes_on_as_if_uncut() {
    let lab = Lab::new(Images::Flat).with(DOUBLE).with(&["training.steps=400"]);
    let alone = lab.uncut("alone");
    let run = lab.path("killed");
    for (rank, count) in [(1, 2), (0, 3)] {
        let command = if run.exists() { lab.resume(&run) } else { lab.begin(&run) };
        let saved = || common::verified(&run).into_iter().max().unwrap_or(0);
        let before = if run.exists() { saved() } else { 0 };
        let job = Job::start(&mut ranks(count, &command));
        wait_for(|| run.join("checkpoints").exists() && saved() > before);
        let pid = process(&run, rank).unwrap();
        let start = Instant::now();
        assert!(send("KILL", pid.into()));
        let Ended { code, stderr: said, .. } = job.end();
        eprintln!(
            "rank {rank} of {count} was killed; all had ended after {:.1} s",
            start.elapsed().as_secs_f64()
        );
        assert_ne!(code, Some(0), "{said}");
    }
    finishes(&mut ranks(2, &lab.resume(&run)));
    assert_close(&run, &alone, 1e-9);
}

#[test]
fn a_signal_to_one_rank_stops_all_of_them() {
    let lab = Lab::new(Images::Flat).with(DOUBLE).with(&["training.steps=4000"]);
    let run = lab.path("stopped");
    let job = Job::start(&mut ranks(2, &lab.begin(&run)));
    wait_for(|| run.join("checkpoints").exists() && !common::verified(&run).is_empty());
    let pid = process(&run, 1).unwrap();
    assert!(send("USR1", pid.into()));
    let Ended { code, stderr: said, .. } = job.end();
    assert_eq!(code, Some(75), "{said}");
    let steps = common::verified(&run).into_iter().max().unwrap();
    assert_eq!(metrics(&run).last().unwrap()[0], steps as f64, "what is done is saved");
}

/// Slurm signals each process, more than once.
#[test]
fn signals_to_all_processes_stop_all_of_them_and_what_is_done_is_saved() {
    let settings = ["training.steps=4000", "training.save_every=4000", "training.validate_every=0"];
    let lab = Lab::new(Images::Flat).with(DOUBLE).with(&settings);
    let run = lab.path("warned");
    let job = Job::start(&mut ranks(2, &lab.begin(&run)));
    wait_for(|| run.join("metrics.csv").exists() && metrics(&run).len() > 4);
    let all = processes(&run);
    assert_eq!(all.len(), 2);
    for signal in ["STOP", "USR1", "TERM", "CONT"] {
        all.iter().for_each(|process| assert!(send(signal, process.pid.into())));
    }
    let Ended { code, stderr: said, .. } = job.end();
    assert_eq!(code, Some(75), "{said}");
    let steps = common::verified(&run).into_iter().max().unwrap();
    assert_eq!(metrics(&run).last().unwrap()[0], steps as f64);
}

#[test]
fn processes_that_mpi_does_not_bring_together_are_refused() {
    let lab = Lab::new(Images::Flat);
    let run = lab.path("strangers");
    // As the mpirun of another MPI starts them.
    let ended = run_to_end(lab.begin(&run).envs([("PMI_RANK", "0"), ("PMI_SIZE", "2")]));
    assert_eq!(ended.code, Some(69), "{}", ended.stderr);
    assert!(ended.stderr.contains("started 2 processes, but MPI sees 1 of them"), "{}", ended.stderr);
    assert!(!run.exists());
}

#[test]
fn ranks_that_nobody_binds_to_cores_share_them() {
    let lab = Lab::new(Images::Flat);
    let alone = lab.begin(&lab.path("free"));
    let mut command = ranks(2, &alone);
    command.env_remove("OMP_NUM_THREADS").env("OMPI_MCA_hwloc_base_binding_policy", "none");
    let said = finishes(&mut command).stderr;
    let threads = said.split("threads of this rank: ").nth(1).and_then(|rest| rest.lines().next());
    let threads: usize = threads.unwrap_or_default().trim().parse().unwrap();
    let cores = thread::available_parallelism().unwrap().get();
    assert!(threads <= (cores / 2).max(1), "{threads} threads of {cores} cores: {said}");
}

/// Whichever rank it falls to.
#[test]
fn a_case_that_one_rank_cannot_load_is_named_and_loses_no_step() {
    let settings = ["training.log_every=1", "training.save_every=1000", "training.validate_every=0"];
    let lab = Lab::new(Images::Volumes).with(&settings);
    let begun = lab.path("begun");
    finishes(lab.begin(&begun).args(["--set", "training.steps=5"]));
    let config = fs::read_to_string(begun.join("config.toml")).unwrap();
    fs::write(begun.join("config.toml"), config.replace("\nsteps = 5\n", "\nsteps = 40\n")).unwrap();
    let split: toml::Table = fs::read_to_string(begun.join("split.toml")).unwrap().parse().unwrap();
    for id in split["train"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()) {
        let (run, image) = (lab.path(id), lab.data().join(format!("images/{id}.nii.gz")));
        common::copy(&begun, &run);
        let healthy = fs::read(&image).unwrap();
        fs::write(&image, "no image").unwrap();
        let ended = run_to_end(&mut ranks(2, &lab.resume(&run)));
        fs::write(&image, healthy).unwrap();
        assert!(![Some(0), Some(75)].contains(&ended.code), "{}", ended.stderr);
        assert!(ended.stderr.contains(id), "{}", ended.stderr);
        let steps = common::verified(&run).into_iter().max().unwrap();
        assert_eq!(metrics(&run).last().unwrap()[0], steps as f64, "{id}");
    }
}

#[test]
fn more_ranks_than_items_are_refused_by_all() {
    let lab = Lab::new(Images::Flat);
    let ended = run_to_end(&mut ranks(3, &lab.begin(&lab.path("many"))));
    assert_ne!(ended.code, Some(0));
    assert!(ended.stderr.contains("an item for each of the ranks"), "{}", ended.stderr);
}

/// Two hosts that see each other by a cable and nothing else: namespaces of the network, for as long as the value lives.
struct Hosts {
    names: [String; 2],
}

impl Hosts {
    const ADDRESSES: [&str; 2] = ["10.77.0.1", "10.77.0.2"];

    /// Nothing where this user may not make them.
    fn new() -> Option<Self> {
        let names = ["one", "two"].map(|name| format!("ssn-{name}-{}", std::process::id()));
        let ip = |words: &[&str]| {
            Command::new("ip").args(words).output().is_ok_and(|output| output.status.success())
        };
        if !ip(&["netns", "add", &names[0]]) {
            return None;
        }
        let hosts = Self { names };
        let [one, two] = [0, 1].map(|i| hosts.names[i].as_str());
        let cable =
            ["link", "add", "cable", "netns", one, "type", "veth", "peer", "name", "cable", "netns", two];
        let mut made = ip(&["netns", "add", two]) && ip(&cable);
        for (name, address) in hosts.names.iter().zip(Self::ADDRESSES) {
            made &= ip(&["-n", name, "addr", "add", &format!("{address}/24"), "dev", "cable"]);
            made &= ip(&["-n", name, "link", "set", "lo", "up"])
                && ip(&["-n", name, "link", "set", "cable", "up"]);
        }
        made.then_some(hosts)
    }

    /// The bytes that the second host has received.
    fn received(&self) -> u64 {
        let words = ["netns", "exec", &self.names[1], "cat", "/sys/class/net/cable/statistics/rx_bytes"];
        let output = Command::new("ip").args(words).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or(0)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).output();
        }
    }
}

#[test]
fn two_hosts_train_over_a_network_as_one_process_does() {
    let Some(hosts) = Hosts::new() else {
        ssn_testing::skip("this user may not make network namespaces");
        return;
    };
    let lab = Lab::new(Images::Flat).with(DOUBLE);
    let (alone, run, agent) = (lab.uncut("alone"), lab.path("hosts"), lab.path("agent"));
    // What takes the place of ssh: HOST COMMAND…
    let script = format!("#!/bin/sh\nshift\nexec ip netns exec {} sh -c \"$*\"\n", hosts.names[1]);
    write_program(&agent, script.as_bytes());
    let local = ranks(2, &lab.begin(&run));
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &hosts.names[0], "mpirun", "--host"]);
    command.arg(Hosts::ADDRESSES.map(|address| format!("{address}:1")).join(","));
    command
        .args(["--mca", "plm_rsh_agent"])
        .arg(&agent)
        .args(["--mca", "btl", "tcp,self", "--mca", "pml", "ob1"]);
    for part in ["btl_tcp_if_include", "oob_tcp_if_include"] {
        command.args(["--mca", part, "10.77.0.0/24"]);
    }
    command.args(local.get_args());
    command.envs(local.get_envs().filter_map(|(name, value)| Some((name, value?))));
    finishes(&mut command);
    assert_close(&run, &alone, 1e-9);
    let bytes = hosts.received();
    eprintln!("{bytes} bytes went to the second host");
    assert!(bytes > 100_000, "only {bytes} bytes went over the network");
}
