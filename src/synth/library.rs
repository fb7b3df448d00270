//! The workloads that come with the program. To add one: a file in
//! `models/workloads` and a row here.

/// Name and text of every workload in `models/workloads`, by name.
const WORKLOADS: &[(&str, &str)] = &[
    ("compute", include_str!("../../models/workloads/compute.toml")),
    ("gather", include_str!("../../models/workloads/gather.toml")),
    ("histogram", include_str!("../../models/workloads/histogram.toml")),
    ("matmul-tiled", include_str!("../../models/workloads/matmul-tiled.toml")),
    ("reduce", include_str!("../../models/workloads/reduce.toml")),
    ("saxpy", include_str!("../../models/workloads/saxpy.toml")),
    ("stencil5", include_str!("../../models/workloads/stencil5.toml")),
    ("transpose", include_str!("../../models/workloads/transpose.toml")),
    ("two-streams", include_str!("../../models/workloads/two-streams.toml")),
];

/// The names of the workloads that come with the program.
pub fn names() -> impl Iterator<Item = &'static str> {
    WORKLOADS.iter().map(|(name, _)| *name)
}

/// The text of the workload of that name.
pub(super) fn text(name: &str) -> Option<&'static str> {
    WORKLOADS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
