//! The library as its users call it: every combination of what is said to work, from training to report.

mod combinations;
mod lab;
mod matrix;
mod meetings;
