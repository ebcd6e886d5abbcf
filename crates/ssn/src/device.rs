//! Where a network computes: the device, and the CPU cores of this process.

use std::fs;
use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use rustix::thread::{CpuSet, sched_getaffinity};
use serde::{Deserialize, Serialize};
use ssn_core::Control;
use ssn_data::DeviceChoice;
use ssn_nn::communicator::{Communicator, all_gather_values};

use ssn_cuda::{CudaError, DeviceProperties};
use tch::Device;

/// What the driver makes when there is a GPU.
const DRIVER: &str = "/dev/nvidiactl";

/// The device, with what it is if it is a GPU. Processes that a launcher started on one machine take its GPUs in turn, from
/// the one that was named on.
///
/// # Errors
/// A GPU that was asked for by name and cannot be used. `auto` then takes the CPU, and says so if there is one.
pub(crate) fn device(
    choice: DeviceChoice,
    control: Control<'_>,
) -> Result<(Device, Option<DeviceProperties>)> {
    match choice {
        DeviceChoice::Cpu => Ok((Device::Cpu, None)),
        DeviceChoice::Cuda(number) => {
            let (device, description) = gpu(number).map_err(unusable)?;
            Ok((device, Some(description)))
        }
        DeviceChoice::Auto if !Path::new(DRIVER).exists() => Ok((Device::Cpu, None)),
        DeviceChoice::Auto => match gpu(0) {
            Ok((device, description)) => Ok((device, Some(description))),
            Err(reason) => {
                control
                    .message(&format!("note: there is an NVIDIA driver, but the GPU is not used: {reason}"));
                Ok((Device::Cpu, None))
            }
        },
    }
}

fn gpu(number: usize) -> Result<(Device, DeviceProperties), CudaError> {
    ssn_cuda::load()?;
    let local = ssn_data::launched().map_or(0, |launched| launched.local);
    let count = usize::try_from(tch::Cuda::device_count()).unwrap_or(0);
    // A number that this machine does not have is refused as it is. No other GPU is touched than the one that is used.
    let device = Device::Cuda(if number < count { (number + local) % count } else { number });
    Ok((device, ssn_cuda::device_properties(device)?))
}

fn unusable(error: CudaError) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        format!("the GPU cannot be used: {error}; or compute with --device cpu"),
    )
}

/// Variables by which users choose threads and their places themselves.
const CHOICES: [&str; 5] =
    ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"];

/// Where a rank computes.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Machine {
    machine: String,
    cores: Vec<usize>,
}

/// How many cores this process may count on. As one of several ranks it also computes with its part of the threads that
/// it would have alone, unless the environment chooses: launchers that bind no ranks to cores let each of them see all, and
/// threads that wait for each other's cores make steps many times slower.
pub(crate) fn cores(ranks: Option<&dyn Communicator>) -> Result<usize> {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let Some(ranks) = ranks else { return Ok(all) };
    let places = all_gather_values(ranks, &Machine::here(ranks.rank()))?;
    let share = share(&places, ranks.rank());
    if CHOICES.iter().all(|name| std::env::var_os(name).is_none()) {
        tch::set_num_threads(part(tch::get_num_threads() as usize, share) as i32);
    }
    Ok(part(all, share))
}

impl Machine {
    fn here(rank: usize) -> Self {
        // The same for all containers of a machine. Where the system does not tell, a rank counts as alone.
        let machine = fs::read_to_string("/proc/sys/kernel/random/boot_id");
        let allowed = sched_getaffinity(None).ok();
        Self {
            machine: machine.unwrap_or(format!("that of rank {rank}")),
            cores: (0..CpuSet::MAX_CPU)
                .filter(|&core| allowed.as_ref().is_some_and(|set| set.is_set(core)))
                .collect(),
        }
    }
}

/// The part of its cores that a rank has, from 0 to 1: a core that n ranks may use counts 1/n for each of them.
fn share(places: &[Machine], rank: usize) -> f64 {
    let here = &places[rank];
    if here.cores.is_empty() {
        return 1.0;
    }
    let users = |core: &usize| {
        places.iter().filter(|place| place.machine == here.machine && place.cores.contains(core)).count()
    };
    let own: f64 = here.cores.iter().map(|core| 1.0 / users(core) as f64).sum();
    own / here.cores.len() as f64
}

/// That part of a number, at least 1.
fn part(all: usize, share: f64) -> usize {
    // Thirds may add up to a little less than a whole.
    ((all as f64 * share + 1e-6) as usize).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(machine: &str, cores: std::ops::Range<usize>) -> Machine {
        Machine { machine: machine.to_owned(), cores: cores.collect() }
    }

    fn parts(places: &[Machine]) -> Vec<usize> {
        (0..places.len()).map(|rank| part(places[rank].cores.len(), share(places, rank))).collect()
    }

    #[test]
    fn ranks_of_a_machine_share_the_cores_that_they_have_in_common() {
        // Nobody is bound: six cores for three, and another machine for itself.
        assert_eq!(
            parts(&[place("a", 0..6), place("a", 0..6), place("b", 0..6), place("a", 0..6)]),
            [2, 2, 6, 2]
        );
        // Each has cores of its own.
        assert_eq!(parts(&[place("a", 0..4), place("a", 4..8)]), [4, 4]);
        // Two of three are bound to one socket.
        assert_eq!(parts(&[place("a", 0..8), place("a", 0..8), place("a", 8..16)]), [4, 4, 8]);
        // More ranks than cores.
        assert_eq!(parts(&[place("a", 0..1), place("a", 0..1)]), [1, 1]);
        // A container may use four cores' time of eight cores, which two ranks share.
        assert_eq!(part(4, share(&[place("a", 0..8), place("a", 0..8)], 1)), 2);
        // The system does not tell.
        assert_eq!(part(6, share(&[place("that of rank 0", 0..0)], 0)), 6);
    }
}
