//! What can be scheduled.

/// One event; ids index the tables of their owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// CTAs may be handed out.
    Dispatch,
    /// A launch begins its launch latency.
    Launch { kernel: u32 },
    /// A launch may start CTAs.
    Begin { kernel: u32 },
    /// A burst of a scheduler may be complete.
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
    /// A sector arrives at its slice from memory.
    Fill { transfer: u32 },
    /// The L2 TLB knows whether it has a page.
    LookUp { request: u32 },
    /// A page walk begins, goes on to its next level, or ends.
    Walk { walk: u32 },
    /// An answer arrives at its SM.
    Reply { packet: u32 },
}
