//! Facts of the whole machine, each with a kernel made for it.

mod bandwidth;
mod bank;
mod barrier;
mod cache_facts;
mod coalescing;
mod coherence;
mod conservation;
mod constant;
mod crossbar;
mod facts;
mod fetch;
mod image;
mod isolation;
mod issue;
mod latency;
mod reallocation;
mod repeat;
mod sharing;
mod sub_core;
mod translation;
mod vacating;
mod worker;
