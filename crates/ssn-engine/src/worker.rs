//! The worker of a program in another language: it keeps a network on its device, and answers one request after another.
//!
//! Requests come through standard input. Replies go to a pipe of their own, because libraries print to standard output.
//! A frame is the number of bytes of its JSON as a little-endian `u32`, the JSON, and the blobs whose lengths it lists:
//!
//! | request | blobs | replies |
//! |---|---|---|
//! | `{"run": ["train", "--data", …]}`, a verb as on a command line | | `progress`, `event` (of training), `ok` with the `--json` of the verb |
//! | `{"open": ["MODEL", …]}`, arguments of `ssn predict` | | `ok` with the model |
//! | `{"predict": {"case", "shape", …}}` | image `f32 [c, d, h, w]`, mask `u8 [d, h, w]` | `progress`, `ok` with a distribution file as its blob |
//!
//! `SIGINT` stops all requests received so far, between two tiles or steps; a training saves first. The end of standard
//! input stops them too, and then ends the worker.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use ssn::core::{PhaseId, Progress};
use ssn::training::run::Event;
use ssn::{Control, Error, ErrorKind, PredictConfig, Predictor, PredictorOptions, Volume};
use ssn_cli::args::Global;
use ssn_cli::{Answer, Cli, Failure, Verb};
use ssn_io::Geometry;

/// The version of the protocol.
const PROTOCOL: u32 = 1;
/// The most bytes of the JSON and of a blob of a frame.
const MOST_JSON: u32 = 1 << 24;
const MOST_BLOB: u64 = 1 << 38;
/// Counts of items are sent at most as often as this, and the last one of a phase always.
const INTERVAL: Duration = Duration::from_millis(50);

/// Runs a verb; the last argument gets the events of a training.
pub type RunVerb = fn(&Verb, &Global, Control<'_>, &mut dyn FnMut(&Event)) -> Result<Answer, Failure>;

/// Answers requests until standard input ends. Replies go to the pipe `frames`, such as `/dev/fd/5`.
pub fn run(frames: &Path, run_verb: RunVerb) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::new(ErrorKind::Io, format!("{}: {error}", frames.display()));
    let out = Frames::new(File::options().write(true).open(frames).map_err(failed)?);
    let waiting = Arc::new(Waiting::default());
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let (interrupted, received) = (waiting.clone(), waiting.clone());
    thread::spawn(move || signals.forever().for_each(|_| interrupted.stop_all()));
    let (sender, requests) = channel();
    thread::spawn(move || receive(&sender, &received));
    out.send(&json!({ "hello": { "protocol": PROTOCOL, "version": env!("CARGO_PKG_VERSION") } }), &[]);
    answer_all(&requests, &waiting, &out, run_verb);
    Ok(())
}

fn answer_all(requests: &Receiver<Received>, waiting: &Waiting, out: &Frames, run_verb: RunVerb) {
    let mut predictor = None;
    for Received { request, stop } in requests {
        let progress = |event: Progress<'_>| out.progress(event);
        let control = Control { progress: &progress, stop: &stop };
        let work = || answer(request?, &mut predictor, control, out, run_verb);
        let outcome =
            catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(ssn::of_panic(&*panic).into()));
        waiting.forget(&stop);
        match outcome {
            Ok((json, blob)) => out.send(
                &json!({ "ok": json, "blobs": blob.iter().map(Vec::len).collect::<Vec<_>>() }),
                blob.as_deref().unwrap_or_default(),
            ),
            Err(failure) => {
                // After a defect or a GPU that stopped working nothing is certain: a new process is.
                let ends = matches!(failure.kind, ErrorKind::Internal | ErrorKind::Io) && predictor.is_some();
                let error = json!({ "code": failure.kind as u8, "message": failure.message, "ends": ends });
                out.send(&json!({ "error": error }), &[]);
                if ends {
                    return;
                }
            }
        }
    }
}

fn answer(
    request: Request,
    predictor: &mut Option<Predictor>,
    control: Control<'_>,
    out: &Frames,
    run_verb: RunVerb,
) -> Result<(Value, Option<Vec<u8>>), Failure> {
    match request {
        Request::Run(words) => {
            let Cli { verb, global } = parse("", &words)?;
            let mut listener = |event: &Event| out.send(&json!({ "event": event }), &[]);
            let Answer { text, json, failure, .. } = run_verb(&verb, &global, control, &mut listener)?;
            let json: Option<Value> =
                json.map(|json| serde_json::from_str(&json)).transpose().map_err(Error::internal)?;
            let failure =
                failure.map(|Failure { kind, message }| json!({ "code": kind as u8, "message": message }));
            Ok((json!({ "answer": json, "text": text, "failure": failure }), None))
        }
        Request::Open(words) => {
            let begin = Instant::now();
            let config = match parse("predict", &words)? {
                Cli { verb: Verb::Predict(config), .. } => config,
                _ => PredictConfig::new("", ""),
            };
            // The memory of the last one is free for this one.
            *predictor = None;
            let opened = Predictor::open(&config.model, &PredictorOptions::of(&config), control)?;
            let about = opened.metadata();
            let json = json!({
                "model": opened.id().name, "sha256": opened.id().sha256, "channels": about.channels, "classes": about.classes,
                "device": opened.device(), "seconds": begin.elapsed().as_secs_f64(),
            });
            *predictor = Some(opened);
            Ok((json, None))
        }
        Request::Predict(image) => {
            let missing = || Failure::new(ErrorKind::Usage, "no model is open");
            let predictor = predictor.as_ref().ok_or_else(missing)?;
            let (file, timing) = predictor.predict_timed(image.volume()?, control)?;
            Ok((json!({ "network": timing.network }), Some(file.to_bytes()?)))
        }
    }
}

/// Parses words of a command line, after a verb unless that is empty.
fn parse(verb: &str, words: &[String]) -> Result<Cli, Failure> {
    let words =
        ["ssn", verb].into_iter().filter(|word| !word.is_empty()).chain(words.iter().map(String::as_str));
    Cli::try_parse_from(words.chain(["--json", "--quiet"]))
        .map_err(|error| Failure::new(ErrorKind::Usage, ssn_cli::args::sentence(&error)))
}

/// A request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Request {
    Run(Vec<String>),
    Open(Vec<String>),
    Predict(Box<ImageRequest>),
}

/// An image to be predicted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ImageRequest {
    case: String,
    shape: [usize; 4],
    #[serde(default)]
    spacing: Option<[f64; 3]>,
    #[serde(default)]
    affine: Option<[[f64; 4]; 3]>,
    #[serde(skip)]
    values: Vec<f32>,
    #[serde(skip)]
    mask: Option<Vec<u8>>,
}

impl ImageRequest {
    fn volume(self) -> Result<Volume, Failure> {
        let mut volume = Volume::new(self.case, self.values, self.shape)?;
        if let Some(spacing) = self.spacing {
            volume = volume.spacing(spacing)?;
        }
        if let Some(affine) = self.affine {
            let flat = || Failure::new(ErrorKind::Usage, "an axis of the affine has no length");
            volume = volume.geometry(Geometry::from_affine(affine).ok_or_else(flat)?);
        }
        Ok(match self.mask {
            Some(mask) => volume.mask(mask)?,
            None => volume,
        })
    }
}

/// The JSON of a frame.
#[derive(Debug, Deserialize)]
struct Head {
    request: Request,
    #[serde(default)]
    blobs: Vec<u64>,
}

/// A request, or the reason why it cannot be read, and the flag that stops it.
struct Received {
    request: Result<Request, Failure>,
    stop: Arc<AtomicBool>,
}

/// The flags of all requests that were received and not answered.
#[derive(Default)]
struct Waiting(Mutex<Vec<Arc<AtomicBool>>>);

impl Waiting {
    fn add(&self) -> Arc<AtomicBool> {
        let stop = Arc::new(AtomicBool::new(false));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(stop.clone());
        stop
    }

    fn forget(&self, stop: &Arc<AtomicBool>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| !Arc::ptr_eq(other, stop));
    }

    fn stop_all(&self) {
        let flags = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        flags.iter().for_each(|stop| stop.store(true, Ordering::Relaxed));
    }
}

/// Receives requests until standard input ends, and stops them then.
fn receive(sender: &Sender<Received>, waiting: &Waiting) {
    let mut input = io::stdin().lock();
    // A frame that ends early, or is none of ours, ends the conversation like the end of the input.
    while let Ok(request) = read_frame(&mut input) {
        if sender.send(Received { request, stop: waiting.add() }).is_err() {
            return;
        }
    }
    waiting.stop_all();
}

/// Reads a frame; the inner error is one of its content.
fn read_frame(input: &mut impl Read) -> io::Result<Result<Request, Failure>> {
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > MOST_JSON {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut json = vec![0; length as usize];
    input.read_exact(&mut json)?;
    let Head { mut request, blobs } = serde_json::from_slice(&json)?;
    let mut blobs =
        blobs.into_iter().map(|length| read_blob(input, length)).collect::<io::Result<Vec<_>>>()?.into_iter();
    if let Request::Predict(image) = &mut request {
        let mut next = || blobs.next().transpose();
        let (values, mask) = match (next(), next()) {
            (Ok(values), Ok(mask)) => (values.unwrap_or_default(), mask),
            (Err(failure), _) | (_, Err(failure)) => return Ok(Err(failure)),
        };
        let number = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        image.values = values.chunks_exact(4).map(number).collect();
        image.mask = mask;
    }
    Ok(Ok(request))
}

/// Reads a blob, or skips it if there is too little memory.
fn read_blob(input: &mut impl Read, length: u64) -> io::Result<Result<Vec<u8>, Failure>> {
    if length > MOST_BLOB {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut blob = vec![];
    if blob.try_reserve_exact(length as usize).is_err() {
        io::copy(&mut input.take(length), &mut io::sink())?;
        return Ok(Err(Error::memory("the image", length).into()));
    }
    let found = input.take(length).read_to_end(&mut blob)? as u64;
    if found == length { Ok(Ok(blob)) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// The pipe of replies, shared by the threads that report progress.
struct Frames {
    out: Mutex<File>,
    /// When the count of each phase was sent last, and the count that was left out since.
    counts: Mutex<HashMap<PhaseId, (Instant, Option<usize>)>>,
}

impl Frames {
    fn new(out: File) -> Self {
        Self { out: Mutex::new(out), counts: Mutex::default() }
    }

    fn progress(&self, event: Progress<'_>) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        match event {
            Progress::Done { phase, done } => {
                let (last, left_out) = counts.entry(phase).or_insert((now - INTERVAL, None));
                if now.duration_since(*last) < INTERVAL {
                    *left_out = Some(done);
                    return;
                }
                (*last, *left_out) = (now, None);
            }
            Progress::End { phase } => {
                if let Some((_, Some(done))) = counts.remove(&phase) {
                    self.send(&json!({ "progress": Progress::Done { phase, done } }), &[]);
                }
            }
            _ => {}
        }
        self.send(&json!({ "progress": event }), &[]);
    }

    /// Sends a frame. Nobody reads the replies of a parent that is gone: the end of standard input stops the work.
    fn send(&self, json: &impl Serialize, blob: &[u8]) {
        let Ok(json) = serde_json::to_vec(json) else { return };
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = out.write_all(&(json.len() as u32).to_le_bytes());
        let _ = out.write_all(&json);
        let _ = out.write_all(blob);
    }
}
