//! What can be scheduled.

/// One event; ids index the tables of their owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// CTAs may be handed out to a line of applications.
    Dispatch { group: u16 },
    /// A launch begins its launch latency.
    Launch { kernel: u32 },
    /// A launch may start CTAs.
    Begin { kernel: u32 },
    /// A further instance of a launch with workers may start them.
    Instance { kernel: u32 },
    /// An interval of a scheduler may be complete.
    Scheduler { sm: u16, scheduler: u8 },
    /// A warp's wait ends at a known time.
    Wake { sm: u16, warp: u16 },
    /// The load/store unit may go on.
    LoadStore { sm: u16 },
    /// Lines of code are there for warps, or requests for code may leave.
    Fetch { sm: u16 },
    /// A request arrives at its slice.
    Arrive { packet: u32 },
    /// A slice's answers have drained: it may go on.
    Slice { slice: u16 },
    /// A transfer arrives at its memory channel.
    ToChannel { transfer: u32 },
    /// A memory channel has something to do.
    Channel { channel: u16 },
    /// Columns of pages may go from channel to channel of a stack.
    PageCopy { stack: u16 },
    /// A page is in its new channels.
    PageCopied { token: u32 },
    /// A sector arrives at its slice from memory.
    Fill { transfer: u32 },
    /// The L2 TLB knows whether it has a page.
    LookUp { request: u32 },
    /// A page walk begins, goes on to its next level, or ends.
    Walk { walk: u32 },
    /// The driver has found a frame for a page that moves.
    PageMove { number: u32 },
    /// An answer arrives at its SM.
    Reply { packet: u32 },
    /// An application comes.
    Arrival { app: u16 },
    /// A plan takes effect; this and the next two only while it has this number.
    Effect { plan: u32 },
    /// A cycle has come at which the plan wants to be asked.
    Alarm { plan: u32 },
    /// Whether an application's IPC has moved is looked at.
    Wakeup { plan: u32 },
    /// A time slice is over.
    Turn { plan: u32 },
    /// Whether an application has reached its target is looked at.
    CountersDue,
    /// The run is over.
    Horizon,
}
