//! The reduction of gradients over ranks while the backward pass goes on, in buckets, as PyTorch's
//! `DistributedDataParallel` does it.
//!
//! Parameters are put into buckets from the last to the first, which is about the order in which their gradients are
//! computed. A bucket that is full is summed over the ranks beside the backward pass, one bucket after the other in a
//! fixed order, so that ranks agree about it whatever the order in which theirs become full.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use ssn_cuda::Nccl;
use ssn_nn::error::{NnError, Result};
use tch::{Device, Kind, Tensor};

use super::{GpuAllReduce, sum_through_host};
use ssn_nn::communicator::Communicator;

/// The bytes of a bucket: large enough that sending it is not mostly waiting, small enough to begin early.
const BUCKET_BYTES: usize = 4 << 20;

/// Reduces the gradients of parameters over ranks, while the backward pass goes on.
#[derive(Debug)]
pub struct GradientReducer(Arc<Mutex<Buckets>>);

/// The buckets of a step, as far as they are full.
#[derive(Debug)]
struct Buckets {
    parameters: Vec<Tensor>,
    /// By bucket: its parameters, in their order there.
    members: Vec<Vec<usize>>,
    /// Of the numbers in a bucket.
    kind: Kind,
    /// By parameter: its gradient, `[n]`, until its bucket is full.
    gradients: Vec<Option<Tensor>>,
    /// The buckets whose sums have begun.
    begun: usize,
    /// Nothing when the reducer has ended.
    summing: Option<Summing>,
}

/// What sums buckets over ranks, one after the other.
#[derive(Debug)]
enum Summing {
    /// NCCL, in place, on a side stream.
    Nccl { nccl: Arc<Nccl>, begun: Vec<Tensor> },
    /// A thread, in host memory.
    Thread { send: Sender<Tensor>, summed: Receiver<Result<Tensor>>, thread: JoinHandle<()> },
}

impl Summing {
    /// Starts a thread with a communicator of its own.
    fn thread(comm: &dyn Communicator) -> Result<Self> {
        let (send, buckets) = channel::<Tensor>();
        let (give, summed) = channel();
        let comm = comm.duplicate()?;
        let work = move || {
            for bucket in buckets {
                let sums = sum_through_host(&*comm, &bucket);
                let failed = sums.is_err();
                if give.send(sums).is_err() || failed {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("gradients".to_owned()).spawn(work);
        let thread = thread.map_err(NnError::communicator)?;
        Ok(Self::Thread { send, summed, thread })
    }

    /// Begins to sum a bucket.
    fn begin(&mut self, bucket: Tensor) -> Result<()> {
        match self {
            Self::Nccl { nccl, begun } => {
                nccl.all_reduce_async(&bucket)?;
                begun.push(bucket);
                Ok(())
            }
            // Copied here: it is this thread's stream that computed the gradients.
            Self::Thread { send, .. } => send.send(bucket.f_to_device(Device::Cpu)?).map_err(|_| ended()),
        }
    }

    /// Waits for the sums of all buckets begun, which are so many.
    fn finish(&mut self, buckets: usize) -> Result<Vec<Tensor>> {
        match self {
            Self::Nccl { begun, .. } => {
                ssn_cuda::wait_for_all_reduce()?;
                Ok(std::mem::take(begun))
            }
            Self::Thread { summed, .. } => {
                (0..buckets).map(|_| summed.recv().unwrap_or_else(|_| Err(ended()))).collect()
            }
        }
    }
}

fn ended() -> NnError {
    NnError::communicator("the thread that sums gradients has ended")
}

/// The parameters of each bucket: of so many numbers together at most, or a single larger one.
fn members(counts: &[usize], most: usize) -> Vec<Vec<usize>> {
    let mut buckets: Vec<(usize, Vec<usize>)> = vec![];
    for (parameter, &count) in counts.iter().enumerate().rev() {
        match buckets.last_mut() {
            Some((size, members)) if *size == 0 || *size + count <= most => {
                *size += count;
                members.push(parameter);
            }
            _ => buckets.push((count, vec![parameter])),
        }
    }
    buckets.into_iter().map(|(_, members)| members).collect()
}

impl Buckets {
    /// Takes the gradient of a parameter, and begins to sum the buckets that are full.
    fn take(&mut self, parameter: usize, gradient: &Tensor) -> Result<()> {
        let _guard = tch::no_grad_guard();
        self.gradients[parameter] = Some(gradient.f_contiguous()?.f_to_kind(self.kind)?.f_view([-1])?);
        self.begin(false)
    }

    /// Begins to sum the buckets that are full, in order; with `all`, those with gradients that will not come as well.
    fn begin(&mut self, all: bool) -> Result<()> {
        while let Some(members) = self.members.get(self.begun) {
            if !all && members.iter().any(|&member| self.gradients[member].is_none()) {
                return Ok(());
            }
            let part = |&member: &usize| match self.gradients[member].take() {
                Some(gradient) => Ok(gradient),
                None => {
                    let parameter = &self.parameters[member];
                    Tensor::f_zeros([parameter.numel() as i64], (self.kind, parameter.device()))
                }
            };
            let parts = members.iter().map(part).collect::<Result<Vec<_>, _>>()?;
            let bucket = Tensor::f_cat(&parts, 0)?;
            self.summing.as_mut().ok_or_else(ended)?.begin(bucket)?;
            self.begun += 1;
        }
        Ok(())
    }

    /// Waits for the sums of all buckets, and makes them the gradients of the parameters.
    fn finish(&mut self) -> Result<()> {
        let _guard = tch::no_grad_guard();
        self.begin(true)?;
        let sums = self.summing.as_mut().ok_or_else(ended)?.finish(self.begun)?;
        self.begun = 0;
        for (members, sums) in self.members.iter().zip(sums) {
            let parameters = members.iter().map(|&member| &self.parameters[member]);
            let counts: Vec<i64> = parameters.clone().map(|parameter| parameter.numel() as i64).collect();
            for (parameter, part) in parameters.zip(sums.f_split_with_sizes(counts, 0)?) {
                let mut gradient = parameter.f_grad()?;
                if gradient.defined() {
                    gradient.f_copy_(&part.f_view_as(&gradient)?)?;
                }
            }
        }
        Ok(())
    }
}

impl GradientReducer {
    /// Watches the gradients of parameters from now on, and starts a thread that sums them in host memory.
    pub fn new(comm: &dyn Communicator, parameters: Vec<Tensor>) -> Result<Self> {
        Self::with_buckets(Summing::thread(comm)?, parameters, BUCKET_BYTES)
    }

    /// Watches the gradients of parameters from now on, and sums them in the way on which the GPUs agreed.
    pub fn on_gpu(all_reduce: &GpuAllReduce, parameters: Vec<Tensor>) -> Result<Self> {
        let summing = match &all_reduce.nccl {
            Some(nccl) => Summing::Nccl { nccl: nccl.clone(), begun: vec![] },
            None => Summing::thread(&*all_reduce.comm)?,
        };
        Self::with_buckets(summing, parameters, BUCKET_BYTES)
    }

    fn with_buckets(summing: Summing, parameters: Vec<Tensor>, bucket_bytes: usize) -> Result<Self> {
        // Working copies on GPUs have less than single precision; sums do not.
        let is_double = parameters.first().is_some_and(|parameter| parameter.kind() == Kind::Double);
        let (kind, bytes) = if is_double { (Kind::Double, 8) } else { (Kind::Float, 4) };
        let counts: Vec<usize> = parameters.iter().map(Tensor::numel).collect();
        let reducer = Self(Arc::new(Mutex::new(Buckets {
            members: members(&counts, bucket_bytes / bytes),
            kind,
            gradients: parameters.iter().map(|_| None).collect(),
            begun: 0,
            summing: Some(summing),
            parameters,
        })));
        for (place, parameter) in reducer.lock().parameters.iter().enumerate() {
            let buckets = Arc::downgrade(&reducer.0);
            ssn_cuda::autograd::register_hook(parameter, move |gradient| match buckets.upgrade() {
                Some(buckets) => {
                    let mut buckets = buckets.lock().unwrap_or_else(PoisonError::into_inner);
                    buckets.take(place, gradient).map_err(|error| error.to_string())
                }
                None => Ok(()),
            })?;
        }
        Ok(reducer)
    }

    fn lock(&self) -> MutexGuard<'_, Buckets> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the sums after a backward pass, and makes them the gradients of the parameters.
    pub fn finish(&self) -> Result<()> {
        self.lock().finish()
    }
}

impl Drop for GradientReducer {
    fn drop(&mut self) {
        let mut buckets = self.lock();
        // Within a step that failed here, the thread may wait for other ranks for ever: who ends them ends it, too.
        let is_between_steps = buckets.begun == 0;
        if let Some(Summing::Thread { send, thread, .. }) = buckets.summing.take() {
            drop(send);
            if is_between_steps {
                let _ = thread.join();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ssn_nn::communicator::ThreadCommunicator;

    #[test]
    fn buckets_are_filled_from_the_last_parameter_on() {
        assert_eq!(members(&[5, 3, 20, 2], 10), [vec![3], vec![2], vec![1, 0]]);
        assert!(members(&[], 10).is_empty());
    }

    #[test]
    fn gradients_become_the_sums_of_those_of_all_ranks() {
        let found: Vec<Vec<Vec<f64>>> = std::thread::scope(|scope| {
            let run = |comm: Arc<ThreadCommunicator>| {
                let leaf =
                    |count: i64| Tensor::ones([count], (Kind::Double, Device::Cpu)).set_requires_grad(true);
                let (a, b, unused) = (leaf(3), leaf(4), leaf(2));
                let all = [&a, &b, &unused].map(Tensor::shallow_clone).into();
                let gradients =
                    GradientReducer::with_buckets(Summing::thread(&*comm).unwrap(), all, 32).unwrap();
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
