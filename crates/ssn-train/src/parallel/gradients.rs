//! The reduction of gradients over ranks while the backward pass goes on, in buckets, as PyTorch's
//! `DistributedDataParallel` does it.
//!
//! Parameters are put into buckets from the last to the first, which is about the order in which their gradients are
//! computed. A bucket that is full goes to a thread that sums it over the ranks, one bucket after the other in a fixed
//! order, so that ranks agree about it whatever the order in which theirs become full.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tch::{Kind, Tensor};

use ssn_nn::communicator::Communicator;
use ssn_nn::error::{NnError, Result};

/// The bytes of a bucket: large enough that sending it is not mostly waiting, small enough to begin early.
pub(super) const BUCKET_BYTES: usize = 4 << 20;

/// Reduces the gradients of parameters over ranks.
#[derive(Debug)]
pub struct GradientReducer {
    parameters: Vec<Tensor>,
    filling: Arc<Mutex<Filling>>,
    /// Sums, in the order of the buckets.
    summed: Receiver<Result<BucketValues>>,
    thread: Option<JoinHandle<()>>,
}

/// The buckets of a step, as far as they are full.
#[derive(Debug)]
struct Filling {
    layout: BucketLayout,
    buckets: Vec<Bucket>,
    /// The next bucket to be summed.
    next: usize,
    send: Option<Sender<BucketValues>>,
}

#[derive(Debug)]
struct Bucket {
    numbers: BucketValues,
    /// Parameters whose gradients are still to come.
    missing: usize,
}

/// The numbers of a bucket.
#[derive(Debug, Clone, PartialEq)]
enum BucketValues {
    Single(Vec<f32>),
    Double(Vec<f64>),
}

/// Which part of which bucket belongs to each parameter.
#[derive(Debug, Clone)]
pub(super) struct BucketLayout {
    kind: Kind,
    /// By parameter: the bucket, and where in it.
    places: Vec<(usize, usize, usize)>,
    /// By bucket: its numbers, and how many parameters share it.
    sizes: Vec<(usize, usize)>,
}

impl BucketLayout {
    pub(super) fn new(kind: Kind, counts: &[usize], bucket_bytes: usize) -> Self {
        let most = bucket_bytes / if kind == Kind::Double { 8 } else { 4 };
        let (mut places, mut sizes) = (vec![(0, 0, 0); counts.len()], vec![(0, 0)]);
        for (place, &count) in places.iter_mut().zip(counts).rev() {
            let last = sizes.len() - 1;
            if sizes[last].0 > 0 && sizes[last].0 + count > most {
                sizes.push((0, 0));
            }
            let last = sizes.len() - 1;
            *place = (last, sizes[last].0, count);
            sizes[last] = (sizes[last].0 + count, sizes[last].1 + 1);
        }
        Self { kind, places, sizes }
    }

    /// How many buckets there are.
    pub(super) fn buckets(&self) -> usize {
        self.sizes.len()
    }

    /// The bucket of a parameter, where it begins in it, and its numbers.
    pub(super) fn place(&self, parameter: usize) -> (usize, usize, usize) {
        self.places[parameter]
    }

    /// The parameters of a bucket, in their order there.
    pub(super) fn members(&self, bucket: usize) -> Vec<usize> {
        (0..self.places.len()).rev().filter(|&parameter| self.places[parameter].0 == bucket).collect()
    }

    /// Buckets of zeros.
    fn empty(&self) -> Vec<Bucket> {
        let numbers = |count| match self.kind {
            Kind::Double => BucketValues::Double(vec![0.0; count]),
            _ => BucketValues::Single(vec![0.0; count]),
        };
        self.sizes.iter().map(|&(count, missing)| Bucket { numbers: numbers(count), missing }).collect()
    }
}

impl Filling {
    /// Empty buckets in the memory of those that were summed.
    fn begin_again(&mut self, mut used: Vec<BucketValues>) {
        for numbers in &mut used {
            match numbers {
                BucketValues::Single(numbers) => numbers.fill(0.0),
                BucketValues::Double(numbers) => numbers.fill(0.0),
            }
        }
        let buckets = used.into_iter().zip(&self.layout.sizes);
        self.buckets = buckets.map(|(numbers, &(_, missing))| Bucket { numbers, missing }).collect();
        self.next = 0;
    }

    /// Takes the gradient of a parameter, and hands on what is full.
    fn take(&mut self, parameter: usize, gradient: &Tensor) -> Result<()> {
        let (bucket, start, count) = self.layout.places[parameter];
        let gradient = gradient.f_to_device(tch::Device::Cpu)?.f_to_kind(self.layout.kind)?.f_contiguous()?;
        let bucket = &mut self.buckets[bucket];
        match &mut bucket.numbers {
            BucketValues::Single(numbers) => {
                gradient.f_copy_data(&mut numbers[start..start + count], count)?
            }
            BucketValues::Double(numbers) => {
                gradient.f_copy_data(&mut numbers[start..start + count], count)?
            }
        }
        bucket.missing = bucket.missing.saturating_sub(1);
        self.hand_on(false)
    }

    /// Hands on the buckets that are full, in order; with `all`, those with gradients that will not come as well.
    fn hand_on(&mut self, all: bool) -> Result<()> {
        while self.next < self.buckets.len() && (all || self.buckets[self.next].missing == 0) {
            let numbers =
                std::mem::replace(&mut self.buckets[self.next].numbers, BucketValues::Single(vec![]));
            let sent = self.send.as_ref().map(|send| send.send(numbers));
            if !matches!(sent, Some(Ok(()))) {
                return Err(ended());
            }
            self.next += 1;
        }
        Ok(())
    }
}

/// Registers a hook on every tensor that hands its gradient, with its index, to the buckets, for as long as they live.
pub(super) fn register_hooks<F: Send + 'static>(
    tensors: &[Tensor],
    filling: &Arc<Mutex<F>>,
    take: fn(&mut F, usize, &Tensor) -> Result<()>,
) -> Result<()> {
    for (place, tensor) in tensors.iter().enumerate() {
        let filling = Arc::downgrade(filling);
        ssn_cuda::autograd::register_hook(tensor, move |gradient| match filling.upgrade() {
            Some(filling) => {
                let mut filling = filling.lock().unwrap_or_else(PoisonError::into_inner);
                take(&mut filling, place, gradient).map_err(|error| error.to_string())
            }
            None => Ok(()),
        })?;
    }
    Ok(())
}

fn ended() -> NnError {
    NnError::Communicator { reason: "the thread that sums gradients has ended".to_owned() }
}

impl GradientReducer {
    /// Watches the gradients of parameters from now on, and starts the thread that sums them.
    pub fn new(comm: &dyn Communicator, parameters: Vec<Tensor>) -> Result<Self> {
        Self::with_buckets(comm, parameters, BUCKET_BYTES)
    }

    fn with_buckets(comm: &dyn Communicator, parameters: Vec<Tensor>, bucket_bytes: usize) -> Result<Self> {
        // Working copies on GPUs have less than single precision; sums do not.
        let is_double = parameters.first().is_some_and(|parameter| parameter.kind() == Kind::Double);
        let kind = if is_double { Kind::Double } else { Kind::Float };
        let counts: Vec<usize> = parameters.iter().map(Tensor::numel).collect();
        let layout = BucketLayout::new(kind, &counts, bucket_bytes);
        let (send, receive) = channel::<BucketValues>();
        let (give, summed) = channel();
        let comm = comm.duplicate()?;
        let work = move || {
            for mut numbers in receive {
                let result = match &mut numbers {
                    BucketValues::Single(numbers) => comm.all_reduce_f32(numbers),
                    BucketValues::Double(numbers) => comm.all_reduce_f64(numbers),
                };
                let failed = result.is_err();
                if give.send(result.map(|()| numbers)).is_err() || failed {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("gradients".to_owned()).spawn(work);
        let thread = thread.map_err(|error| NnError::Communicator { reason: error.to_string() })?;
        let buckets = layout.empty();
        let filling = Arc::new(Mutex::new(Filling { layout, buckets, next: 0, send: Some(send) }));
        register_hooks(&parameters, &filling, Filling::take)?;
        Ok(Self { parameters, filling, summed, thread: Some(thread) })
    }

    /// Waits for the sums after a backward pass, and makes them the gradients of the parameters.
    pub fn finish(&self) -> Result<()> {
        let _guard = tch::no_grad_guard();
        let mut filling = self.filling.lock().unwrap_or_else(PoisonError::into_inner);
        filling.hand_on(true)?;
        let sums: Vec<BucketValues> = (0..filling.buckets.len())
            .map(|_| self.summed.recv().unwrap_or_else(|_| Err(ended())))
            .collect::<Result<_>>()?;
        for (parameter, &(bucket, start, count)) in self.parameters.iter().zip(&filling.layout.places) {
            let mut gradient = parameter.f_grad()?;
            if !gradient.defined() {
                continue;
            }
            let part = match &sums[bucket] {
                BucketValues::Single(numbers) => Tensor::f_from_slice(&numbers[start..start + count])?,
                BucketValues::Double(numbers) => Tensor::f_from_slice(&numbers[start..start + count])?,
            };
            gradient.f_copy_(&part.f_view_as(&gradient)?)?;
        }
        filling.begin_again(sums);
        Ok(())
    }
}

impl Drop for GradientReducer {
    fn drop(&mut self) {
        let mut filling = self.filling.lock().unwrap_or_else(PoisonError::into_inner);
        filling.send = None;
        // Within a step that failed here, the thread may wait for other ranks for ever: who ends them ends it, too.
        let is_between_steps = filling.next == 0;
        if let Some(thread) = self.thread.take().filter(|_| is_between_steps) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ssn_nn::communicator::ThreadCommunicator;

    #[test]
    fn buckets_are_filled_from_the_last_parameter_on() {
        let layout = BucketLayout::new(Kind::Float, &[5, 3, 20, 2], 40);
        assert_eq!(layout.sizes, [(2, 1), (20, 1), (8, 2)]);
        assert_eq!(layout.places, [(2, 3, 5), (2, 0, 3), (1, 0, 20), (0, 0, 2)]);
        assert_eq!([0, 1, 2].map(|bucket| layout.members(bucket)), [vec![3], vec![2], vec![1, 0]]);
    }

    #[test]
    fn gradients_become_the_sums_of_those_of_all_ranks() {
        let found: Vec<Vec<Vec<f64>>> = std::thread::scope(|scope| {
            let run = |comm: Arc<ThreadCommunicator>| {
                let leaf = |count: i64| {
                    Tensor::ones([count], (Kind::Double, tch::Device::Cpu)).set_requires_grad(true)
                };
                let (a, b, unused) = (leaf(3), leaf(4), leaf(2));
                let all = [&a, &b, &unused].map(Tensor::shallow_clone).into();
                let gradients = GradientReducer::with_buckets(&*comm, all, 32).unwrap();
                let mut found = vec![];
                for step in 0..3 {
                    [&a, &b].iter().for_each(|leaf| {
                        let mut gradient = leaf.grad();
                        if gradient.defined() {
                            let _ = gradient.zero_();
                        }
                    });
                    let weight = 1.0 + step as f64 + comm.rank() as f64;
                    ((&a * &a).sum(Kind::Double) * weight + b.sum(Kind::Double) * weight).backward();
                    gradients.finish().unwrap();
                    found.push(Vec::try_from(a.grad()).unwrap());
                    found.push(Vec::try_from(b.grad()).unwrap());
                    assert!(!unused.grad().defined());
                }
                found
            };
            let threads: Vec<_> =
                ThreadCommunicator::new(2).into_iter().map(|comm| scope.spawn(move || run(comm))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(found[0], found[1]);
        assert_eq!(found[0][0], [6.0; 3]);
        assert_eq!(found[0][1], [3.0; 4]);
        assert_eq!(found[0][4], [14.0; 3]);
    }
}
