//! Which share of the cases this process works on: what `--shard` says, or else the launcher of parallel programs.

use ssn_data::{Launched, Shard, launched};

use crate::exit::tell;

/// The share that is asked for, or that of this process among those of a launcher, which is told unless `quiet`.
pub fn choose(asked: Option<Shard>, quiet: bool) -> Shard {
    asked.or_else(|| of_launcher(launched()?, quiet)).unwrap_or(Shard::WHOLE)
}

fn of_launcher(Launched { rank, size, .. }: Launched, quiet: bool) -> Option<Shard> {
    let shard = Shard::new(rank + 1, size)?;
    if !quiet {
        tell(&format!(
            "this is process {} of the {size} that were launched and works on shard {shard}; --shard 1/1 would be all",
            rank + 1
        ));
    }
    Some(shard)
}
