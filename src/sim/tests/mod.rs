//! Facts of the whole machine, each with a kernel made for it.

mod bandwidth;
mod barrier;
mod cache_facts;
mod cluster;
mod coalescing;
mod constant;
mod crossbar;
mod facts;
mod fast_forward;
mod fetch;
mod hot;
mod interval;
mod issue;
mod latency;
mod link;
mod reallocation;
mod sharing;
mod translation;
mod vacating;
mod worker;
