//! Runs the real binary as a user would, in a private folder, and holds it to what the documentation promises.
//!
//! One test binary; a module is one promise.

mod agreement;
mod arbitrary;
mod audit;
mod cache;
mod clocks;
mod command;
mod compare;
mod compress;
mod containers;
mod errors;
mod generated;
mod help;
mod local_time;
mod locating;
mod memory;
mod numbers;
mod outputs;
mod producers;
mod reading;
mod readme;
mod real_data;
mod record;
mod requests;
mod reuse;
mod settings;
mod slow;
mod sql;
mod traffic;
mod trend;
