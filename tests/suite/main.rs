//! Runs the real binary as a user would, in a private folder, and holds it to what the documentation promises.
//!
//! One test binary; a module is one promise.

mod agreement;
mod arbitrary;
mod audit;
mod baseline;
mod cache;
mod cases;
mod causes;
mod clocks;
mod command;
mod compare;
mod compress;
mod containers;
mod drift;
mod errors;
mod forecast;
mod generated;
mod help;
mod id_clocks;
mod idle;
mod knee;
mod limits;
mod local_time;
mod locating;
mod memory;
mod numbers;
mod outputs;
mod pivot;
mod pools;
mod producers;
mod reading;
mod readme;
mod real_data;
mod record;
mod requests;
mod reuse;
mod sample;
mod settings;
mod shadow;
mod slow;
mod sql;
mod traffic;
mod trend;
