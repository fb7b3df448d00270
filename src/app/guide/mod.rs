//! The user's guide: what `gpumodel guide` prints. A topic is one Markdown file and one row; a
//! page on schemes is one file in `schemes`.

/// One topic of the guide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topic {
    /// Its name on the command line.
    pub name: &'static str,
    /// What the reader will be able to do, in one line.
    pub summary: &'static str,
    /// Its text, in Markdown.
    pub text: &'static str,
}

/// One page of the topic `schemes`, on a scheme and its variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// The scheme that it is named after.
    pub name: &'static str,
    /// Its text, in Markdown.
    pub text: &'static str,
}

impl Page {
    /// The schemes that it is on: those that its heading names.
    pub fn schemes(self) -> impl Iterator<Item = &'static str> {
        let heading = self.text.lines().next().unwrap_or_default();
        heading.split('`').skip(1).step_by(2)
    }
}

/// Every page of the topic `schemes`, by name.
pub const PAGES: &[Page] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

macro_rules! topics {
    ($($name:ident, $summary:literal;)*) => {
        /// Every topic, in the order in which a newcomer needs them.
        pub const TOPICS: &[Topic] = &[$(Topic {
            name: stringify!($name),
            summary: $summary,
            text: include_str!(concat!(stringify!($name), ".md")),
        }),*];
        // Examples are tested by the crate `gpumodel`, under whose name they use the library.
        $(#[cfg_attr(not(doctest), doc = include_str!(concat!(stringify!($name), ".md")))]
        #[cfg_attr(doctest, doc = $summary)]
        pub mod $name {})*
    };
}

topics! {
    tutorial, "turn a folder of traces into a figure of two schemes, in 15 minutes";
    tracing, "trace your own programs, convert the traces, choose a part of them";
    programs, "trace a CUDA program on a computer without a GPU";
    machines, "choose a GPU, change it, write your own and check it";
    profiles, "validate a machine with your card: compare with ncu and nsys";
    sharing, "run applications together on one GPU, or work off a queue of them";
    schemes, "choose a sharing scheme: the idea, parameters and paper of each";
    sweeps, "run a whole evaluation from a plan, on one computer or with Slurm";
    figures, "draw figures from results, for screens and for papers";
    gallery, "choose a figure: what each shows, and which runs it needs";
    results, "read the record of an analysis: every key with its unit";
    hotspots, "find the instructions at which a kernel loses its time";
    papers, "repeat the evaluations of published papers";
    accuracy, "judge how far a result is from silicon, and what is not modelled";
    library, "run the model from a Rust program";
}
