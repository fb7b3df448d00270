//! The options that choose launches and CTAs, for every verb that has them.

use gpumodel_trace::{CtaChoice, Filter, KernelIds, NamePattern};

/// What to take of a trace or store.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct FilterArguments {
    /// Only launches with these ids, as `1-12,40`
    #[arg(long, value_name = "IDS")]
    kernels: Option<KernelIds>,
    /// Only launches whose name, mangled or readable, matches this regular
    /// expression somewhere
    #[arg(long, value_name = "REGEX")]
    names: Option<NamePattern>,
    /// Only these CTAs of every launch: positions in the grid, x fastest, as
    /// `0-159,320`, or `first:80` for the first 80 that the trace has
    #[arg(long, value_name = "CTAS")]
    ctas: Option<CtaChoice>,
}

impl From<FilterArguments> for Filter {
    fn from(typed: FilterArguments) -> Self {
        let FilterArguments { kernels, names, ctas } = typed;
        Self { kernels, names, ctas }
    }
}
