//! Is the memory right: its files, its mappings, its rules, and does the channel
//! send the commands that other simulators send, when they do?

mod files;
mod mappings;
mod micro;
mod rules;
mod traffic;
