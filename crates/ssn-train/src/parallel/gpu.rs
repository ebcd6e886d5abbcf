//! All-reduce over the GPUs of several ranks: by NCCL where every rank has a GPU of its own, else through host memory.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use ssn_cuda::Nccl;
use ssn_nn::error::{NnError, Result};
use tch::{Device, Tensor};

use super::sum_through_host;
use ssn_nn::communicator::{Communicator, all_gather_values};

/// The environment variable that chooses how GPUs reduce, `nccl` or `host`, instead of the automatic choice.
pub const CHOICE: &str = "SSN_GPU_SUMS";

/// The all-reduce of the GPUs of several ranks.
#[derive(Debug)]
pub struct GpuAllReduce {
    pub(super) comm: Arc<dyn Communicator>,
    pub(super) nccl: Option<Arc<Nccl>>,
}

/// What a rank sends the others about its GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct GpuOffer {
    gpu: [u8; 16],
    has_nccl: bool,
    choice: Option<String>,
}

impl GpuAllReduce {
    /// Agrees with the other ranks on a way. The GPU is that of this thread.
    pub fn new(comm: Arc<dyn Communicator>, device: Device) -> Result<Self> {
        let choice = std::env::var(CHOICE).ok().filter(|choice| !choice.is_empty());
        let offer = GpuOffer {
            gpu: ssn_cuda::device_properties(device)?.identity,
            has_nccl: Nccl::is_there(),
            choice,
        };
        let nccl = match takes_nccl(&all_gather_values(&*comm, &offer)?)? {
            true => {
                // A failure is reported after all ranks know that there is no id.
                let id = if comm.rank() == 0 { Nccl::id().map(Vec::from) } else { Ok(vec![]) };
                let told = comm.all_gather(id.as_deref().unwrap_or_default())?;
                id?;
                let id = <[u8; Nccl::ID_BYTES]>::try_from(told[0].as_slice());
                let id = id.map_err(|_| NnError::communicator("rank 0 has no id of NCCL"))?;
                Some(Arc::new(Nccl::join(&id, comm.rank(), comm.world_size())?))
            }
            false => None,
        };
        Ok(Self { comm, nccl })
    }

    /// Whether sums are work of the GPU, which can be recorded.
    pub fn can_be_captured(&self) -> bool {
        self.nccl.is_some()
    }

    /// The way, in words.
    pub fn words(&self) -> &'static str {
        match self.nccl {
            Some(_) => "NCCL",
            None => "host memory",
        }
    }

    /// Sums over all ranks, in place, as work of this thread's stream.
    ///
    /// # Shapes
    /// Any, dense, in single or double precision.
    pub fn sum(&self, numbers: &Tensor) -> Result<()> {
        if let Some(nccl) = &self.nccl {
            return Ok(nccl.all_reduce(numbers)?);
        }
        let sums = sum_through_host(&*self.comm, numbers)?;
        Ok(tch::no_grad(|| numbers.f_view([-1])?.f_copy_(&sums))?)
    }
}

/// Whether all ranks sum by NCCL: where all have it, and no two share a GPU, which it refuses.
fn takes_nccl(offers: &[GpuOffer]) -> Result<bool> {
    let refused = |reason: String| Err(NnError::communicator(reason));
    let first = &offers[0].choice;
    if let Some(other) = offers.iter().find(|offer| offer.choice != *first) {
        let words = |choice: &Option<String>| choice.clone().unwrap_or("not set".to_owned());
        let (first, other) = (words(first), words(&other.choice));
        return refused(format!("{CHOICE} is {first} at rank 0 and {other} at another; give all the same"));
    }
    let can = offers.iter().all(|offer| offer.has_nccl);
    match first.as_deref() {
        Some("host") => Ok(false),
        Some("nccl") if can => Ok(true),
        Some("nccl") => refused(format!("{CHOICE} asks for NCCL, which not every rank has")),
        Some(other) => refused(format!("{CHOICE} is {other:?}; it may be nccl or host")),
        None => {
            let mut gpus: Vec<_> = offers.iter().map(|offer| offer.gpu).collect();
            gpus.sort_unstable();
            gpus.dedup();
            Ok(can && gpus.len() == offers.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(gpu: u8, has_nccl: bool, choice: Option<&str>) -> GpuOffer {
        GpuOffer { gpu: [gpu; 16], has_nccl, choice: choice.map(str::to_owned) }
    }

    #[test]
    fn nccl_is_taken_where_every_rank_has_it_and_a_gpu_of_its_own() {
        let taken = |offers: &[GpuOffer]| takes_nccl(offers).unwrap();
        assert!(taken(&[offer(1, true, None), offer(2, true, None)]));
        assert!(!taken(&[offer(1, true, None), offer(1, true, None)]));
        assert!(!taken(&[offer(1, true, None), offer(2, false, None)]));
        assert!(taken(&[offer(1, true, Some("nccl")), offer(1, true, Some("nccl"))]));
        assert!(!taken(&[offer(1, true, Some("host")), offer(2, true, Some("host"))]));
        let why = |offers: &[GpuOffer]| takes_nccl(offers).unwrap_err().to_string();
        let nccl = Some("nccl");
        assert!(why(&[offer(1, true, nccl), offer(2, false, nccl)]).contains("not every rank has"));
        assert!(why(&[offer(1, true, Some("mpi"))]).contains("nccl or host"));
        assert!(why(&[offer(1, true, nccl), offer(2, true, None)]).contains("at another"));
    }

    #[test]
    fn numbers_are_summed_through_hosts() {
        let found: Vec<Vec<f64>> = std::thread::scope(|scope| {
            let run = |comm: Arc<ssn_nn::communicator::ThreadCommunicator>| {
                let numbers = Tensor::from_slice(&[1.0f64, 2.0]) * (1.0 + comm.rank() as f64);
                GpuAllReduce { comm, nccl: None }.sum(&numbers).unwrap();
                Vec::try_from(&numbers).unwrap()
            };
            let comm = ssn_nn::communicator::ThreadCommunicator::new(2).into_iter();
            let threads: Vec<_> = comm.map(|comm| scope.spawn(move || run(comm))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(found, [[3.0, 6.0], [3.0, 6.0]]);
    }
}
