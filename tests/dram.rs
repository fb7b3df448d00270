//! Does the DRAM send the commands that other simulators send, when they do?

mod micro;
