//! The order of launches: streams, copies, and which launch may begin.

use std::collections::VecDeque;

use gpumodel_core::units::KernelId;

/// One command of an application's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// A host-to-device copy.
    Copy {
        /// First byte in device memory.
        destination: u64,
        /// Length.
        bytes: u64,
    },
    /// A launch into a stream.
    Launch {
        /// Which launch.
        kernel: KernelId,
        /// Its CUDA stream.
        stream: u64,
    },
}

/// Commands that are looked at for one that may begin: the hardware's work
/// queues hold no more (CUDA programming guide, 128 resident grids).
const WINDOW: usize = 128;

/// The commands of one application that have not begun, by stream.
///
/// A launch begins when the one before it in its stream has ended and every
/// copy before it in the list is done. A copy waits for all launches before it
/// (a synchronous copy on the default stream).
#[derive(Debug)]
pub(crate) struct Launches {
    commands: VecDeque<Command>,
    running: Vec<(KernelId, u64)>,
    /// One kernel at a time, whatever the streams.
    serial: bool,
}

impl Launches {
    /// The list of one application.
    pub(crate) fn new(commands: impl IntoIterator<Item = Command>, serial: bool) -> Self {
        Self { commands: commands.into_iter().collect(), running: Vec::new(), serial }
    }

    /// Takes the next command that may begin now.
    pub(crate) fn next(&mut self) -> Option<Command> {
        let mut busy: Vec<u64> = self.running.iter().map(|&(_, stream)| stream).collect();
        for place in 0..self.commands.len().min(WINDOW) {
            match self.commands[place] {
                Command::Copy { .. } => {
                    let first = place == 0 && self.running.is_empty();
                    return if first { self.commands.pop_front() } else { None };
                }
                Command::Launch { kernel, stream } => {
                    let free = !busy.contains(&stream) && (!self.serial || busy.is_empty());
                    if free {
                        self.commands.remove(place);
                        self.running.push((kernel, stream));
                        return Some(Command::Launch { kernel, stream });
                    }
                    if self.serial {
                        return None;
                    }
                    busy.push(stream);
                }
            }
        }
        None
    }

    /// Notes that a launch has ended.
    pub(crate) fn ended(&mut self, kernel: KernelId) {
        self.running.retain(|&(running, _)| running != kernel);
    }

    /// True when every command is done.
    pub(crate) fn is_done(&self) -> bool {
        self.commands.is_empty() && self.running.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{Command, Launches};
    use gpumodel_core::units::KernelId;

    fn launch(kernel: u32, stream: u64) -> Command {
        Command::Launch { kernel: KernelId(kernel), stream }
    }

    #[test]
    fn streams_overlap_and_keep_their_own_order() {
        let list = [launch(0, 1), launch(1, 1), launch(2, 2)];
        let mut launches = Launches::new(list, false);
        assert_eq!(launches.next(), Some(launch(0, 1)));
        assert_eq!(launches.next(), Some(launch(2, 2)));
        assert_eq!(launches.next(), None);
        launches.ended(KernelId(0));
        assert_eq!(launches.next(), Some(launch(1, 1)));
        launches.ended(KernelId(1));
        assert!(!launches.is_done());
        launches.ended(KernelId(2));
        assert!(launches.is_done());
    }

    #[test]
    fn a_copy_waits_for_what_is_before_it_and_holds_what_is_behind() {
        let copy = Command::Copy { destination: 0, bytes: 4 };
        let mut launches = Launches::new([launch(0, 0), copy, launch(1, 5)], false);
        assert_eq!(launches.next(), Some(launch(0, 0)));
        assert_eq!(launches.next(), None);
        launches.ended(KernelId(0));
        assert_eq!(launches.next(), Some(copy));
        assert_eq!(launches.next(), Some(launch(1, 5)));
    }

    #[test]
    fn a_serial_machine_runs_one_kernel_at_a_time() {
        let mut launches = Launches::new([launch(0, 1), launch(1, 2)], true);
        assert_eq!(launches.next(), Some(launch(0, 1)));
        assert_eq!(launches.next(), None);
    }
}
