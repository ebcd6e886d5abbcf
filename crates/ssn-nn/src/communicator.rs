//! Communication between ranks: processes or threads that train one network together, each on its part of every batch.
//!
//! All hold the same weights. A step is that of the whole batch: what is a mean over its items is a sum over ranks.
//! Every rank calls the same functions here in the same order; each waits for the others.

use std::fmt::Debug;
use std::ops::AddAssign;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{NnError, Result};

/// The collective operations of a group of ranks, with the names of MPI and `torch.distributed`.
pub trait Communicator: Debug + Send + Sync {
    /// The index of this rank, from 0.
    fn rank(&self) -> usize;

    /// The number of ranks.
    fn world_size(&self) -> usize;

    /// Element-wise sums over all ranks, in place; all ranks get the same bits.
    fn all_reduce_f32(&self, numbers: &mut [f32]) -> Result<()>;

    /// Element-wise sums over all ranks, in place; all ranks get the same bits.
    fn all_reduce_f64(&self, numbers: &mut [f64]) -> Result<()>;

    /// The bytes of every rank, by rank.
    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>>;

    /// A second communicator of the same ranks, for another thread: the order of calls on the two is independent.
    fn duplicate(&self) -> Result<Arc<dyn Communicator>>;
}

/// Whether this process writes files and messages: rank 0, or the only process.
pub fn is_root(comm: Option<&Arc<dyn Communicator>>) -> bool {
    comm.is_none_or(|comm| comm.rank() == 0)
}

/// The value of every rank, by rank.
pub fn all_gather_values<T: Serialize + DeserializeOwned>(
    comm: &dyn Communicator,
    value: &T,
) -> Result<Vec<T>> {
    let failed = |error: serde_json::Error| NnError::communicator(error);
    let given = comm.all_gather(&serde_json::to_vec(value).map_err(failed)?)?;
    given.iter().map(|bytes| serde_json::from_slice(bytes).map_err(failed)).collect()
}

/// Ranks that are threads of one process. When a thread has ended, the others get an error.
#[derive(Debug)]
pub struct ThreadCommunicator {
    rank: usize,
    channels: Mutex<Channels>,
    duplicate: Mutex<Option<Arc<ThreadCommunicator>>>,
}

/// The channels to every rank and from every rank.
#[derive(Debug)]
struct Channels {
    to: Vec<Sender<Vec<u8>>>,
    from: Vec<Receiver<Vec<u8>>>,
}

impl ThreadCommunicator {
    /// One communicator per thread.
    pub fn new(size: usize) -> Vec<Arc<Self>> {
        let seconds =
            channels(size).into_iter().enumerate().map(|(rank, channels)| Self::with(rank, channels, None));
        let firsts = channels(size).into_iter().enumerate();
        firsts
            .zip(seconds)
            .map(|((rank, channels), second)| Self::with(rank, channels, Some(second)))
            .collect()
    }

    fn with(rank: usize, channels: Channels, duplicate: Option<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self { rank, channels: Mutex::new(channels), duplicate: Mutex::new(duplicate) })
    }

    /// Sums in the order of the ranks, so that all get the same bits.
    fn sum<T: Copy + Default + AddAssign, const N: usize>(
        &self,
        numbers: &mut [T],
        to_bytes: fn(T) -> [u8; N],
        from_bytes: fn([u8; N]) -> T,
    ) -> Result<()> {
        let all = self.all_gather(&numbers.iter().flat_map(|x| to_bytes(*x)).collect::<Vec<u8>>())?;
        numbers.fill(T::default());
        for given in &all {
            let (given, _) = given.as_chunks::<N>();
            numbers.iter_mut().zip(given).for_each(|(sum, x)| *sum += from_bytes(*x));
        }
        Ok(())
    }
}

fn channels(size: usize) -> Vec<Channels> {
    let mut all: Vec<Channels> = (0..size).map(|_| Channels { to: vec![], from: vec![] }).collect();
    for from in 0..size {
        for to in 0..size {
            let (sender, receiver) = channel();
            all[from].to.push(sender);
            all[to].from.push(receiver);
        }
    }
    all
}

impl Communicator for ThreadCommunicator {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world_size(&self) -> usize {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner).to.len()
    }

    fn all_reduce_f32(&self, numbers: &mut [f32]) -> Result<()> {
        self.sum(numbers, f32::to_le_bytes, f32::from_le_bytes)
    }

    fn all_reduce_f64(&self, numbers: &mut [f64]) -> Result<()> {
        self.sum(numbers, f64::to_le_bytes, f64::from_le_bytes)
    }

    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let gone = |rank: usize| NnError::communicator(format!("rank {rank} has ended"));
        let channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        for (rank, to) in channels.to.iter().enumerate() {
            to.send(bytes.to_vec()).map_err(|_| gone(rank))?;
        }
        channels.from.iter().enumerate().map(|(rank, from)| from.recv().map_err(|_| gone(rank))).collect()
    }

    fn duplicate(&self) -> Result<Arc<dyn Communicator>> {
        match self.duplicate.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(second) => Ok(second),
            None => Err(NnError::communicator("the communicator was duplicated already")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn sums_are_the_same_bits_for_all_and_the_missing_are_missed() {
        let sums: Vec<Vec<f32>> = thread::scope(|scope| {
            let threads: Vec<_> = ThreadCommunicator::new(3)
                .into_iter()
                .map(|ranks| {
                    scope.spawn(move || {
                        let mut numbers = [0.1 + ranks.rank() as f32, 1e8 * ranks.rank() as f32];
                        ranks.all_reduce_f32(&mut numbers).unwrap();
                        let second = ranks.duplicate().unwrap();
                        let names = second.all_gather(&[ranks.rank() as u8; 2]).unwrap();
                        assert_eq!(names, [vec![0, 0], vec![1, 1], vec![2, 2]]);
                        numbers.to_vec()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(sums.iter().all(|sum| *sum == sums[0]), "{sums:?}");
        assert_eq!(sums[0][1], 3e8);

        let mut two = ThreadCommunicator::new(2);
        drop(two.pop());
        assert!(two[0].all_reduce_f64(&mut [1.0]).unwrap_err().to_string().contains("rank 1 has ended"));
    }
}
