//! The processor cores of this process, which ranks of one machine share.

use std::fs;

use rustix::thread::{CpuSet, sched_getaffinity};
use serde::{Deserialize, Serialize};
use ssn_cli::Failure;
use ssn_net::ranks::{Ranks, gather_values};

use crate::failure::failure;

/// Variables by which users choose the number of threads themselves.
const CHOICES: [&str; 2] = ["OMP_NUM_THREADS", "MKL_NUM_THREADS"];

/// Where a rank computes.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Place {
    machine: String,
    cores: Vec<usize>,
}

/// How many cores this process may count on. As one of several ranks it also computes with that many threads, unless the
/// environment chooses: launchers that bind no ranks to cores let each of them see all, and threads that wait for each
/// other's cores make steps many times slower.
pub fn cores(ranks: Option<&dyn Ranks>) -> Result<usize, Failure> {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let Some(ranks) = ranks else { return Ok(all) };
    let places = gather_values(ranks, &Place::here(ranks.rank())).map_err(failure)?;
    let share = share(&places, ranks.rank()).min(all);
    if CHOICES.iter().all(|name| std::env::var_os(name).is_none()) {
        tch::set_num_threads(share as i32);
    }
    Ok(share)
}

impl Place {
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

/// A rank's part of its cores: a core that n ranks may use counts 1/n for each of them.
fn share(places: &[Place], rank: usize) -> usize {
    let here = &places[rank];
    let users = |core: &usize| {
        places.iter().filter(|place| place.machine == here.machine && place.cores.contains(core)).count()
    };
    let share: f64 = here.cores.iter().map(|core| 1.0 / users(core) as f64).sum();
    // Thirds may add up to a little less than a whole.
    ((share + 1e-6) as usize).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(machine: &str, cores: std::ops::Range<usize>) -> Place {
        Place { machine: machine.to_owned(), cores: cores.collect() }
    }

    #[test]
    fn ranks_of_a_machine_share_the_cores_that_they_have_in_common() {
        // Nobody is bound: six cores for three, and another machine for itself.
        let free = [place("a", 0..6), place("a", 0..6), place("b", 0..6), place("a", 0..6)];
        assert_eq!([0, 1, 2, 3].map(|rank| share(&free, rank)), [2, 2, 6, 2]);
        // Each has cores of its own.
        let bound = [place("a", 0..4), place("a", 4..8)];
        assert_eq!([0, 1].map(|rank| share(&bound, rank)), [4, 4]);
        // Two of three are bound to one socket.
        let sockets = [place("a", 0..8), place("a", 0..8), place("a", 8..16)];
        assert_eq!([0, 1, 2].map(|rank| share(&sockets, rank)), [4, 4, 8]);
        // More ranks than cores, and a system that does not tell.
        assert_eq!(share(&[place("a", 0..1), place("a", 0..1)], 1), 1);
        assert_eq!(share(&[place("that of rank 0", 0..0)], 0), 1);
    }
}
