//! Which launches are sampled, and why others run whole.

use gpumodel_core::isa::{Effect, Space};
use gpumodel_core::units::{to_u64, to_usize};
use gpumodel_sim::{Need, Program};
use gpumodel_trace::TraceError;

use super::draw::{Draw, SETS};
use super::scale::Scale;
use super::strata::Strata;
use super::wish::SampleRequest;
use gpumodel_feed::StoreFeed;

/// A launch to be sampled.
#[derive(Debug)]
pub(super) struct Sampling {
    pub(super) strata: Strata,
    pub(super) draw: Draw,
    /// CTAs that are resident on an SM.
    pub(super) per_sm: u32,
}

/// What becomes of a launch.
#[derive(Debug)]
pub(super) enum Choice {
    /// It runs whole, for this reason.
    Whole(&'static str),
    /// Samples of it run.
    Sample(Box<Sampling>),
}

impl Choice {
    /// The choice for the launch at `place` of `feed`. `wish` is what is asked of the sample.
    ///
    /// # Errors
    /// [`TraceError::Store`] when a block is damaged.
    pub(super) fn of(
        feed: &StoreFeed<'_>,
        place: usize,
        scale: &Scale,
        wish: SampleRequest,
        seed: u64,
    ) -> Result<Self, TraceError> {
        let program = &feed.programs()[place];
        if program.ctas < u64::from(scale.whole_sms) {
            return Ok(Self::Whole("fewer CTAs than SMs"));
        }
        if feed.warp_instructions(place) < wish.fewest_instructions {
            return Ok(Self::Whole("too few instructions to be worth it"));
        }
        if has_global_atomics(program) {
            return Ok(Self::Whole("atomics may meet in one place, which no part of them shows"));
        }
        let sms = u64::from(scale.whole_sms);
        let fits = u64::from(Need::of(&program.launch, &scale.machine).fits(&scale.machine).0);
        let strata = Strata::of(feed.store(), feed.kernel(place), sms, fits)?;
        let port = scale.machine.interconnect.sms_per_port;
        let draw = Draw::new(&strata, scale.whole_sms, scale.sms(), port, seed);
        let per_sm = u32::try_from(fits.min(strata.ctas().div_ceil(sms))).unwrap_or(u32::MAX);
        if straggles(&strata, &draw, per_sm, scale.whole_sms) > wish.half_width {
            return Ok(Self::Whole("single CTAs are so long that no sample tells the end"));
        }
        Ok(Self::Sample(Box::new(Sampling { strata, draw, per_sm })))
    }
}

fn has_global_atomics(program: &Program) -> bool {
    program.code.instructions.iter().any(|instruction| {
        matches!(
            program.opcodes[to_usize(instruction.opcode)].effect,
            Effect::Atomic(Space::Global | Space::Generic)
                | Effect::Reduction(Space::Global | Space::Generic)
        )
    })
}

/// By which share of the run a CTA that is in no set may end later than those in one.
#[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
fn straggles(strata: &Strata, draw: &Draw, per_sm: u32, sms: u32) -> f64 {
    let (mut longest, mut drawn) = (0, 0);
    for (ordinal, &work) in strata.work.iter().enumerate() {
        longest = longest.max(work);
        if usize::from(draw.set(to_u64(ordinal))) < SETS {
            drawn = drawn.max(work);
        }
    }
    let beyond = (longest - drawn) as f64;
    beyond * f64::from(per_sm) * f64::from(sms) / strata.total_work().max(1) as f64
}
