//! Is the memory right: its files, its mappings, its rules, and does the channel
//! send the commands that other simulators send, when they do?

mod agreement;
mod copies;
mod copy_rules;
mod files;
mod generator;
mod mappings;
mod micro;
mod rules;
mod stack;
mod traffic;
mod verb;
