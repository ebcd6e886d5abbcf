//! How a launcher of parallel programs tells each process which of how many it is, in the environment.
//!
//! `mpirun` of Open MPI and of MPICH's family and Slurm's `srun` are understood. Each has names of its own, and a batch
//! script that was not started by `srun` is one process whatever it asked for.

/// Which of how many processes this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launched {
    /// The number of this process, from 0.
    pub rank: usize,
    /// How many there are.
    pub size: usize,
    /// Its number among those of the same machine, from 0; its number among all where the launcher does not tell.
    pub local: usize,
}

/// Names of the rank and of the number of ranks, launcher by launcher.
const NAMES: [[&str; 2]; 3] = [
    ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
    ["PMI_RANK", "PMI_SIZE"],
    ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS"],
];

/// Names of the rank within a machine. Slurm sets its own whatever library of MPI numbers the ranks.
const LOCAL_NAMES: [&str; 5] = [
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "PMI_LOCAL_RANK",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "SLURM_LOCALID",
];

/// What the launcher said; nothing if there was none, or if it started one process alone.
pub fn launched() -> Option<Launched> {
    from(|name| std::env::var(name).ok())
}

fn from(variable: impl Fn(&str) -> Option<String>) -> Option<Launched> {
    let number = |name| variable(name)?.parse().ok();
    let local = LOCAL_NAMES.iter().find_map(|name| number(name));
    let found = NAMES.iter().find_map(|[rank, size]| {
        let (rank, size) = (number(rank)?, number(size)?);
        Some(Launched { rank, size, local: local.unwrap_or(rank) })
    });
    found.filter(|found| found.size > 1 && found.rank < found.size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(variables: &[(&str, &str)]) -> Option<Launched> {
        from(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string()))
    }

    #[test]
    fn launchers_are_understood_and_one_process_is_none() {
        let second_of_four = Some(Launched { rank: 1, size: 4, local: 1 });
        assert_eq!(told(&[("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "4")]), second_of_four);
        assert_eq!(told(&[("PMI_RANK", "1"), ("PMI_SIZE", "4")]), second_of_four);
        assert_eq!(told(&[("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "4")]), second_of_four);
        // The script of a batch job, which starts steps itself.
        assert_eq!(told(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")]), None);
        assert_eq!(told(&[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "1")]), None);
        let third = Some(Launched { rank: 2, size: 4, local: 0 });
        assert_eq!(
            told(&[("SLURM_PROCID", "2"), ("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_LOCALID", "0")]),
            third
        );
        assert_eq!(told(&[("PMI_RANK", "2"), ("PMI_SIZE", "4"), ("SLURM_LOCALID", "0")]), third);
        assert_eq!(told(&[("PMI_RANK", "x"), ("PMI_SIZE", "4")]), None);
        assert_eq!(told(&[]), None);
    }
}
