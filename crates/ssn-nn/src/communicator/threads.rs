//! Ranks that are threads of one process.

use std::ops::AddAssign;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use super::Ranks;
use crate::error::{NnError, Result};

/// A rank that is a thread. A thread that ends is missed by the others, which get an error.
#[derive(Debug)]
pub struct Threads {
    rank: usize,
    ways: Mutex<Ways>,
    beside: Mutex<Option<Arc<Threads>>>,
}

/// To every rank and from every rank.
#[derive(Debug)]
struct Ways {
    to: Vec<Sender<Vec<u8>>>,
    from: Vec<Receiver<Vec<u8>>>,
}

impl Threads {
    /// So many ranks, one for each thread.
    pub fn new(size: usize) -> Vec<Arc<Self>> {
        let seconds = ways(size).into_iter().enumerate().map(|(rank, ways)| Self::with(rank, ways, None));
        let firsts = ways(size).into_iter().enumerate();
        firsts.zip(seconds).map(|((rank, ways), second)| Self::with(rank, ways, Some(second))).collect()
    }

    fn with(rank: usize, ways: Ways, beside: Option<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self { rank, ways: Mutex::new(ways), beside: Mutex::new(beside) })
    }

    /// Sums in the order of the ranks, so that all get the same bits.
    fn sum<T: Copy + Default + AddAssign, const N: usize>(
        &self,
        numbers: &mut [T],
        to_bytes: fn(T) -> [u8; N],
        from_bytes: fn([u8; N]) -> T,
    ) -> Result<()> {
        let all = self.gather(&numbers.iter().flat_map(|x| to_bytes(*x)).collect::<Vec<u8>>())?;
        numbers.fill(T::default());
        for given in &all {
            let (given, _) = given.as_chunks::<N>();
            numbers.iter_mut().zip(given).for_each(|(sum, x)| *sum += from_bytes(*x));
        }
        Ok(())
    }
}

fn ways(size: usize) -> Vec<Ways> {
    let mut all: Vec<Ways> = (0..size).map(|_| Ways { to: vec![], from: vec![] }).collect();
    for from in 0..size {
        for to in 0..size {
            let (sender, receiver) = channel();
            all[from].to.push(sender);
            all[to].from.push(receiver);
        }
    }
    all
}

impl Ranks for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.ways.lock().unwrap_or_else(PoisonError::into_inner).to.len()
    }

    fn sum_f32(&self, numbers: &mut [f32]) -> Result<()> {
        self.sum(numbers, f32::to_le_bytes, f32::from_le_bytes)
    }

    fn sum_f64(&self, numbers: &mut [f64]) -> Result<()> {
        self.sum(numbers, f64::to_le_bytes, f64::from_le_bytes)
    }

    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let gone = |rank: usize| NnError::Ranks { reason: format!("rank {rank} has ended") };
        let ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        for (rank, to) in ways.to.iter().enumerate() {
            to.send(bytes.to_vec()).map_err(|_| gone(rank))?;
        }
        ways.from.iter().enumerate().map(|(rank, from)| from.recv().map_err(|_| gone(rank))).collect()
    }

    fn beside(&self) -> Result<Arc<dyn Ranks>> {
        match self.beside.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(second) => Ok(second),
            None => Err(NnError::Ranks { reason: "there is a second connection already".to_owned() }),
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
            let threads: Vec<_> = Threads::new(3)
                .into_iter()
                .map(|ranks| {
                    scope.spawn(move || {
                        let mut numbers = [0.1 + ranks.rank() as f32, 1e8 * ranks.rank() as f32];
                        ranks.sum_f32(&mut numbers).unwrap();
                        let beside = ranks.beside().unwrap();
                        let names = beside.gather(&[ranks.rank() as u8; 2]).unwrap();
                        assert_eq!(names, [vec![0, 0], vec![1, 1], vec![2, 2]]);
                        numbers.to_vec()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(sums.iter().all(|sum| *sum == sums[0]), "{sums:?}");
        assert_eq!(sums[0][1], 3e8);

        let mut two = Threads::new(2);
        drop(two.pop());
        assert!(two[0].sum_f64(&mut [1.0]).unwrap_err().to_string().contains("rank 1 has ended"));
    }
}
