//! The share of the cases that this process works on: that of `--shard`, or else that of a launcher of parallel programs.

use ssn_data::{Launched, Shard, launched};

use crate::exit::tell;

/// Returns the share that is asked for, or that of this process among those of a launcher, which is reported unless
/// `quiet`. With `json`, the first process of a launcher waits for the others and prints the result of all.
pub fn choose(asked: Option<Shard>, quiet: bool, json: bool) -> Shard {
    asked.or_else(|| of_launcher(launched()?, quiet, json)).unwrap_or(Shard::WHOLE)
}

/// Returns `true` if this process prints the result as JSON: of those of a launcher, only the first does.
pub fn prints_json(asked: Option<Shard>) -> bool {
    asked.is_some() || launched().is_none_or(|launched| launched.rank == 0)
}

fn of_launcher(Launched { rank, size, .. }: Launched, quiet: bool, json: bool) -> Option<Shard> {
    let shard = Shard::new(rank + 1, size)?;
    if !quiet {
        tell(&format!(
            "this is process {} of the {size} that were launched and works on shard {shard}; --shard 1/1 would be all",
            rank + 1
        ));
    }
    Some(if rank == 0 && json { shard.that_waits() } else { shard })
}
