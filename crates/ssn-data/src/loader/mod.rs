//! The data loader: threads prefetch batches, which are returned in order.
//!
//! A batch is a function of its number, so that threads need no order among themselves: each takes the next number,
//! and the consumer waits for the one it wants. How many threads there are changes nothing but the time it takes.

mod batch;
mod cache;
mod order;
mod patch;

pub use batch::{Batch, BatchConfig, BatchSampler, Origin, Replica};
pub use order::CaseOrder;
pub use patch::{PatchConfig, PatchSampler, RaterChoice};

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use ssn_io::{Error, Result};

use crate::dataset::Cases;
use crate::parallel::{default_bytes, lock};

/// The default memory for finished batches: a few batches of the largest kind in use (10 patches of
/// 4 × 110³ voxels take 213 MB), and hundreds of small ones.
const DEFAULT_PREFETCH_BYTES: usize = 1 << 30;

/// How long the end of a loader waits for its threads; one that is still loading a case ends by itself afterwards.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// How batches are made ahead of time. Nothing here changes what they hold; ranks may divide their items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoaderConfig {
    /// Threads; 0 makes every batch when it is asked for.
    pub workers: usize,
    /// The bytes of batches that are made ahead. One batch is always made, however large.
    pub prefetch_bytes: usize,
    /// The bytes of cases that are kept in memory; `None` means a quarter of what is available.
    pub cache_bytes: Option<usize>,
    /// The first batch.
    pub start: u64,
    /// Which items of each batch are made.
    pub replica: Replica,
}

impl Default for LoaderConfig {
    fn default() -> Self {
        Self {
            workers: 2,
            prefetch_bytes: DEFAULT_PREFETCH_BYTES,
            cache_bytes: None,
            start: 0,
            replica: Replica::SINGLE,
        }
    }
}

/// An endless sequence of batches. It ends with the first error; dropping it stops its threads.
pub struct DataLoader {
    sampler: Arc<BatchSampler>,
    queue: Arc<BatchQueue>,
    workers: usize,
    /// Carries nothing: it is closed when the last thread has ended.
    ended: Receiver<Infallible>,
    next: u64,
    failed: bool,
}

impl DataLoader {
    /// Checks the settings and starts the threads.
    pub fn new(
        cases: Arc<dyn Cases>,
        seed: u64,
        batches: BatchConfig,
        config: &LoaderConfig,
    ) -> Result<Self> {
        let cache_bytes = config.cache_bytes.unwrap_or_else(default_bytes);
        let sampler =
            Arc::new(BatchSampler::new(cases, seed, batches, cache_bytes)?.for_replica(config.replica)?);
        let queue = Arc::new(BatchQueue::new(config.start, config.prefetch_bytes));
        let (alive, ended) = channel();
        let workers = config.workers;
        let loader = Self { sampler, queue, workers, ended, next: config.start, failed: false };
        loader.start_threads(alive)?;
        Ok(loader)
    }

    /// Starts the threads, each of which holds a copy of `alive` until it has given everything else back.
    fn start_threads(&self, alive: Sender<Infallible>) -> Result<()> {
        for number in 0..self.workers {
            let (sampler, queue, alive) = (self.sampler.clone(), self.queue.clone(), alive.clone());
            let run = move || {
                work(&sampler, &queue);
                drop((sampler, queue));
                drop(alive);
            };
            let thread = thread::Builder::new().name(format!("batches-{number}"));
            thread.spawn(run).map_err(|error| {
                let expected = format!("no more threads than the system can start ({error})");
                Error::setting("workers", self.workers, expected)
            })?;
        }
        Ok(())
    }
}

/// Makes batches until the queue is stopped or one fails: nothing is asked for after an error.
fn work(sampler: &BatchSampler, queue: &BatchQueue) {
    while let Some(number) = queue.claim() {
        let made = sampler.batch_unless_stopped(number, &|| queue.is_stopped());
        let Some(made) = made.transpose() else { return };
        let failed = made.is_err();
        queue.deliver(number, made);
        if failed {
            return;
        }
    }
}

impl Iterator for DataLoader {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        if self.failed {
            return None;
        }
        let batch = match self.workers {
            0 => self.sampler.batch(self.next),
            _ => self.queue.take(self.next),
        };
        self.next += 1;
        self.failed = batch.is_err();
        if self.failed {
            self.queue.stop();
        }
        Some(batch)
    }
}

impl Drop for DataLoader {
    fn drop(&mut self) {
        self.queue.stop();
        let _ = self.ended.recv_timeout(END_TIMEOUT);
    }
}

/// The results of batches by number, within a number of bytes.
///
/// Numbers are claimed in order, and each that was claimed is delivered, unless the queue was stopped. A thread ends
/// after an error, and the consumer stops at the first one: it never waits for a number that nobody makes.
struct BatchQueue {
    limit: usize,
    state: Mutex<QueueState>,
    /// Something in the state changed.
    changed: Condvar,
}

struct QueueState {
    stopped: bool,
    /// The next number that no thread has claimed.
    claimed: u64,
    /// The number that the consumer wants.
    wanted: u64,
    ready: BTreeMap<u64, Result<Batch>>,
    /// The bytes of the batches that are ready.
    bytes: usize,
    /// The bytes of the largest batch so far, which those being made are taken to have.
    largest: usize,
}

impl BatchQueue {
    fn new(start: u64, limit: usize) -> Self {
        let (stopped, ready) = (false, BTreeMap::new());
        let state = QueueState { stopped, claimed: start, wanted: start, ready, bytes: 0, largest: 0 };
        Self { limit, state: Mutex::new(state), changed: Condvar::new() }
    }

    fn is_stopped(&self) -> bool {
        lock(&self.state).stopped
    }

    fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.notify_all();
    }

    /// The next batch to make, once there is room for it; `None` if no more are needed.
    fn claim(&self) -> Option<u64> {
        let full = |state: &mut QueueState| {
            let in_work = (state.claimed - state.wanted) as usize - state.ready.len();
            let bytes = state.bytes + (in_work + 1) * state.largest;
            !state.stopped && state.claimed != state.wanted && bytes > self.limit
        };
        let state = self.changed.wait_while(lock(&self.state), full);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        if state.stopped {
            return None;
        }
        state.claimed += 1;
        Some(state.claimed - 1)
    }

    fn deliver(&self, number: u64, batch: Result<Batch>) {
        let mut state = lock(&self.state);
        let bytes = bytes_of(&batch);
        state.bytes += bytes;
        state.largest = state.largest.max(bytes);
        state.ready.insert(number, batch);
        drop(state);
        self.changed.notify_all();
    }

    /// Waits for a batch, or for the error in it.
    fn take(&self, number: u64) -> Result<Batch> {
        let mut state = lock(&self.state);
        loop {
            if let Some(batch) = state.ready.remove(&number) {
                state.bytes -= bytes_of(&batch);
                state.wanted = number + 1;
                drop(state);
                self.changed.notify_all();
                return batch;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The bytes of a batch; an error takes none.
fn bytes_of(batch: &Result<Batch>) -> usize {
    batch.as_ref().map_or(0, Batch::bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    use ssn_core::Lattice;
    use ssn_io::Geometry;

    use super::*;
    use crate::augment::{AugmentPreset, Augmentation};
    use crate::dataset::{Case, MemoryCases};
    use crate::random::{Purpose, RandomStream};

    fn cases(count: usize, shape: [usize; 3], channels: usize, mask: bool) -> Arc<MemoryCases> {
        let voxels: usize = shape.iter().product();
        let case = |number: usize| {
            let mut stream = RandomStream::new(number as u64, Purpose::Synthetic, 0);
            let mut labels = || (0..voxels).map(|_| stream.below(8).saturating_sub(5) as u8).collect();
            let raters = vec![labels(), labels(), labels()];
            Case {
                id: format!("case-{number}"),
                channels,
                shape,
                image: (0..channels * voxels).map(|_| stream.normal() as f32).collect(),
                raters,
                mask: mask.then(|| (0..voxels).map(|_| u8::from(stream.chance(0.8))).collect()),
                geometry: Geometry { spacing: [1.0, 1.0, 2.5], ..Geometry::default() },
                ..Case::default()
            }
        };
        Arc::new(MemoryCases((0..count).map(case).collect()))
    }

    fn batches(
        set: Arc<MemoryCases>,
        config: &BatchConfig,
        workers: usize,
        start: u64,
        count: usize,
    ) -> Vec<Batch> {
        // Room for few cases and few batches, so that both have to go and come again.
        let cache_bytes = Some(3 * set.0[0].bytes());
        let settings =
            LoaderConfig { workers, prefetch_bytes: 200_000, cache_bytes, start, ..LoaderConfig::default() };
        let loader = DataLoader::new(set, 11, config.clone(), &settings).unwrap();
        loader.take(count).map(|batch| batch.unwrap()).collect()
    }

    /// The same bits for any number of threads, over three epochs, and from any start.
    fn check_workers(set: Arc<MemoryCases>, config: &BatchConfig, count: usize) {
        let alone = batches(set.clone(), config, 0, 0, count);
        let bits = |batch: &Batch| batch.images.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        for workers in [1, 2, 8] {
            let threaded = batches(set.clone(), config, workers, 0, count);
            assert_eq!(alone, threaded);
            assert!(alone.iter().zip(&threaded).all(|(a, b)| bits(a) == bits(b)));
        }
        let middle = count / 2;
        assert_eq!(batches(set, config, 2, middle as u64, count - middle), alone[middle..]);
        assert!(alone.iter().enumerate().all(|(number, batch)| batch.number == number as u64));
        assert_ne!(alone[0].images, alone[1].images);
    }

    #[test]
    fn batches_in_2d_do_not_depend_on_workers() {
        let config = BatchConfig { augment: AugmentPreset::Lidc.config(), ..BatchConfig::new(4) };
        check_workers(cases(10, [1, 24, 20], 1, false), &config, 8);
    }

    #[test]
    fn grids_of_patches_are_parts_of_the_whole() {
        let place = PatchSampler::Random { size: [14, 16, 15], foreground_probability: 0.5 };
        let mut augment = AugmentPreset::Brats.config();
        augment.steps.push(Augmentation::Noise { low: 0.1, high: 0.2, probability: 0.7 });
        let grids = vec![
            Lattice { start: [2, 1, 2], step: [5, 5, 5], count: [2, 3, 2] },
            Lattice { start: [4, 4, 3], step: [1, 1, 1], count: [6, 7, 9] },
            Lattice { start: [0, 0, 0], step: [3, 2, 1], count: [5, 8, 15] },
        ];
        let config = |seen| BatchConfig {
            patch: PatchConfig { sampler: place, target_size: None, rater: RaterChoice::Random },
            augment: augment.clone(),
            input_grids: seen,
            ..BatchConfig::new(3)
        };
        let set = cases(4, [20, 21, 19], 2, true);
        let sampler = |seen| BatchSampler::new(set.clone(), 5, config(seen), usize::MAX).unwrap();
        let (whole, parts) = (sampler(None), sampler(Some(grids.clone())));
        for number in 0..12 {
            let (whole, parts) = (whole.batch(number).unwrap(), parts.batch(number).unwrap());
            assert_eq!((&whole.targets, &whole.masks), (&parts.targets, &parts.masks));
            assert_eq!(whole.image_shape, parts.image_shape);
            let [items, channels, d, h, w] = whole.image_shape;
            let voxels = d * h * w;
            let mut expected = vec![];
            for item in 0..items {
                for grid in &grids {
                    for channel in 0..channels {
                        let plane = &whole.images[(item * channels + channel) * voxels..][..voxels];
                        expected.extend(grid.places([d, h, w]).map(|place| plane[place]));
                    }
                }
            }
            assert_eq!(parts.images, expected, "batch {number}");
        }
    }

    #[test]
    fn batches_in_3d_do_not_depend_on_workers() {
        let place = PatchSampler::Random { size: [14, 14, 14], foreground_probability: 0.5 };
        let rater = RaterChoice::All;
        let config = BatchConfig {
            order: CaseOrder::Epochs { images: 4, patches: 5 },
            patch: PatchConfig { sampler: place, target_size: Some([6, 6, 6]), rater },
            augment: AugmentPreset::Brats.config(),
            ..BatchConfig::new(5)
        };
        let set = cases(6, [12, 16, 18], 4, true);
        check_workers(set.clone(), &config, 12);
        let batch = &batches(set, &config, 2, 3, 1)[0];
        assert_eq!((batch.image_shape, batch.target_shape), ([5, 4, 14, 14, 14], [5, 3, 6, 6, 6]));
        assert_eq!(batch.masks.as_ref().map(Vec::len), Some(5 * 216));
        assert!(batch.origins.iter().all(|origin| origin.rater.is_none()));
    }

    /// A set in which each case behaves as its number says.
    struct Moody {
        inner: Arc<MemoryCases>,
        loads: AtomicUsize,
        slow_ended: AtomicUsize,
        mood: fn(usize) -> Mood,
    }

    enum Mood {
        Good,
        Slow(u64),
        Broken,
        Panics,
        /// Loading panics, and so does its name.
        Nameless,
    }

    impl Cases for Moody {
        fn len(&self) -> usize {
            self.inner.len()
        }
        fn id(&self, index: usize) -> &str {
            assert!(!matches!((self.mood)(index), Mood::Nameless), "no name");
            self.inner.id(index)
        }
        fn rater_count(&self, index: usize) -> usize {
            self.inner.rater_count(index)
        }
        fn load(&self, index: usize) -> Result<Case> {
            self.loads.fetch_add(1, Ordering::Relaxed);
            match (self.mood)(index) {
                Mood::Good => {}
                Mood::Slow(milliseconds) => {
                    thread::sleep(Duration::from_millis(milliseconds));
                    self.slow_ended.fetch_add(1, Ordering::Relaxed);
                }
                Mood::Broken => {
                    let source = Error::setting("header", "bad", "good");
                    return Err(source.in_case(format!("file-{index}")));
                }
                Mood::Panics | Mood::Nameless => panic!("index out of range"),
            }
            self.inner.load(index)
        }
    }

    fn moody(mood: fn(usize) -> Mood) -> Arc<Moody> {
        Arc::new(Moody {
            inner: cases(20, [1, 8, 8], 1, false),
            loads: AtomicUsize::new(0),
            slow_ended: AtomicUsize::new(0),
            mood,
        })
    }

    fn in_order(set: Arc<Moody>, workers: usize, prefetch_bytes: usize) -> DataLoader {
        let config = BatchConfig { order: CaseOrder::Sequential, ..BatchConfig::new(1) };
        let settings =
            LoaderConfig { workers, prefetch_bytes, cache_bytes: Some(0), ..LoaderConfig::default() };
        DataLoader::new(set, 0, config, &settings).unwrap()
    }

    #[test]
    fn errors_and_panics_come_in_order_with_their_case_and_end_the_sequence() {
        let broken: fn(usize) -> Mood = |i| if i == 3 { Mood::Broken } else { Mood::Good };
        let panics: fn(usize) -> Mood = |i| if i == 3 { Mood::Panics } else { Mood::Good };
        let nameless: fn(usize) -> Mood = |i| if i == 3 { Mood::Nameless } else { Mood::Good };
        for (workers, mood, expected) in [
            (0, broken, "case case-3: "),
            (1, broken, "case case-3: "),
            (3, broken, "case case-3: "),
            (0, panics, "case case-3: the program failed: index out of range"),
            (2, panics, "case case-3: the program failed: index out of range"),
            (2, nameless, "case number 3: the program failed: index out of range"),
        ] {
            let mut loader = in_order(moody(mood), workers, 1 << 20);
            for _ in 0..3 {
                loader.next().unwrap().unwrap();
            }
            let error = loader.next().unwrap().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
            assert!(loader.next().is_none());
        }
    }

    #[test]
    fn an_error_comes_after_slow_batches_before_it() {
        let set = moody(|i| match i {
            0 => Mood::Slow(200),
            1 | 2 => Mood::Broken,
            _ => Mood::Good,
        });
        let mut loader = in_order(set.clone(), 3, 1 << 20);
        assert_eq!(loader.next().unwrap().unwrap().number, 0);
        let error = loader.next().unwrap().unwrap_err().to_string();
        assert!(error.contains("case-1"), "{error}");
        assert!(loader.next().is_none());
    }

    #[test]
    fn dropping_a_loader_stops_it() {
        let set = moody(|_| Mood::Slow(20));
        let loader = in_order(set.clone(), 3, usize::MAX);
        thread::sleep(Duration::from_millis(50));
        drop(loader);
        let loads = set.loads.load(Ordering::Relaxed);
        thread::sleep(Duration::from_millis(100));
        // Each of the three threads may have been about to load the case that it had begun.
        assert!(set.loads.load(Ordering::Relaxed) <= loads + 3);

        // A case that takes very long does not hold up the end.
        let set = moody(|_| Mood::Slow(60_000));
        let loader = in_order(set.clone(), 1, usize::MAX);
        thread::sleep(Duration::from_millis(50));
        drop(loader);
        assert_eq!(set.slow_ended.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn no_more_batches_are_made_ahead_than_have_room() {
        // A batch has 4 · 64 + 64 bytes: there is room for three. Each of the two threads may have begun one before
        // the size of a batch was known.
        let set = moody(|_| Mood::Good);
        let mut loader = in_order(set.clone(), 2, 3 * 320);
        let settles_at = |count: usize| {
            let start = Instant::now();
            while set.loads.load(Ordering::Relaxed) < count && start.elapsed() < Duration::from_secs(10) {
                thread::sleep(Duration::from_millis(5));
            }
            thread::sleep(Duration::from_millis(50));
            set.loads.load(Ordering::Relaxed) == count
        };
        assert!(settles_at(3));
        loader.next().unwrap().unwrap();
        assert!(settles_at(4));
        // One batch is made even if there is room for none.
        let set = moody(|_| Mood::Good);
        let mut small = in_order(set.clone(), 2, 0);
        for _ in 0..5 {
            small.next().unwrap().unwrap();
        }
    }

    #[test]
    fn images_of_different_shapes_are_refused_with_advice() {
        let mut set = cases(2, [1, 8, 8], 1, false).0.clone();
        set[1] = cases(2, [1, 8, 9], 1, false).0[1].clone();
        let config = BatchConfig { order: CaseOrder::Sequential, ..BatchConfig::new(2) };
        let mut loader =
            DataLoader::new(Arc::new(MemoryCases(set)), 0, config, &LoaderConfig::default()).unwrap();
        let error = loader.next().unwrap().unwrap_err().to_string();
        assert!(error.contains("case case-1: its images and targets are [1, 1, 8, 9]"), "{error}");
    }
}
