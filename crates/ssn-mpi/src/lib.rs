//! Ranks that are processes of MPI, if this crate is built with its feature `mpi`; without it, nothing.

#[cfg(feature = "mpi")]
mod world;

#[cfg(feature = "mpi")]
pub use world::World;
