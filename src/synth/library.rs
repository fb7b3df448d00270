//! The workloads that come with the program. To add one: a file in
//! `models/workloads` and a row here.

/// Name and text of every workload in `models/workloads`, by name.
const WORKLOADS: &[(&str, &str)] = &[
    ("binomial-options", include_str!("../../models/workloads/binomial-options.toml")),
    ("black-scholes", include_str!("../../models/workloads/black-scholes.toml")),
    ("bodies", include_str!("../../models/workloads/bodies.toml")),
    ("butterfly", include_str!("../../models/workloads/butterfly.toml")),
    ("compute", include_str!("../../models/workloads/compute.toml")),
    ("expand", include_str!("../../models/workloads/expand.toml")),
    ("fdtd3d", include_str!("../../models/workloads/fdtd3d.toml")),
    ("gather", include_str!("../../models/workloads/gather.toml")),
    ("gaussian", include_str!("../../models/workloads/gaussian.toml")),
    ("histogram", include_str!("../../models/workloads/histogram.toml")),
    ("lavamd", include_str!("../../models/workloads/lavamd.toml")),
    ("layers", include_str!("../../models/workloads/layers.toml")),
    ("lookup", include_str!("../../models/workloads/lookup.toml")),
    ("matmul-tiled", include_str!("../../models/workloads/matmul-tiled.toml")),
    ("matrix-transpose", include_str!("../../models/workloads/matrix-transpose.toml")),
    ("md5hash", include_str!("../../models/workloads/md5hash.toml")),
    ("nbody", include_str!("../../models/workloads/nbody.toml")),
    ("particle-filter", include_str!("../../models/workloads/particle-filter.toml")),
    ("polynomial", include_str!("../../models/workloads/polynomial.toml")),
    ("quasirandom", include_str!("../../models/workloads/quasirandom.toml")),
    ("reduce", include_str!("../../models/workloads/reduce.toml")),
    ("saxpy", include_str!("../../models/workloads/saxpy.toml")),
    ("sgemm", include_str!("../../models/workloads/sgemm.toml")),
    ("sparse-rows", include_str!("../../models/workloads/sparse-rows.toml")),
    ("stencil5", include_str!("../../models/workloads/stencil5.toml")),
    ("stream", include_str!("../../models/workloads/stream.toml")),
    ("stream-copy", include_str!("../../models/workloads/stream-copy.toml")),
    ("tpacf", include_str!("../../models/workloads/tpacf.toml")),
    ("transpose", include_str!("../../models/workloads/transpose.toml")),
    ("two-streams", include_str!("../../models/workloads/two-streams.toml")),
    ("ugpu-alexnet", include_str!("../../models/workloads/ugpu-alexnet.toml")),
    ("ugpu-bh", include_str!("../../models/workloads/ugpu-bh.toml")),
    ("ugpu-convs", include_str!("../../models/workloads/ugpu-convs.toml")),
    ("ugpu-cp", include_str!("../../models/workloads/ugpu-cp.toml")),
    ("ugpu-dwt2d", include_str!("../../models/workloads/ugpu-dwt2d.toml")),
    ("ugpu-dxtc", include_str!("../../models/workloads/ugpu-dxtc.toml")),
    ("ugpu-euler3d", include_str!("../../models/workloads/ugpu-euler3d.toml")),
    ("ugpu-fwt", include_str!("../../models/workloads/ugpu-fwt.toml")),
    ("ugpu-gru", include_str!("../../models/workloads/ugpu-gru.toml")),
    ("ugpu-hotspot", include_str!("../../models/workloads/ugpu-hotspot.toml")),
    ("ugpu-lavamd", include_str!("../../models/workloads/ugpu-lavamd.toml")),
    ("ugpu-lbm", include_str!("../../models/workloads/ugpu-lbm.toml")),
    ("ugpu-lstm", include_str!("../../models/workloads/ugpu-lstm.toml")),
    ("ugpu-mriq", include_str!("../../models/workloads/ugpu-mriq.toml")),
    ("ugpu-pf", include_str!("../../models/workloads/ugpu-pf.toml")),
    ("ugpu-pvc", include_str!("../../models/workloads/ugpu-pvc.toml")),
    ("ugpu-resnet", include_str!("../../models/workloads/ugpu-resnet.toml")),
    ("ugpu-sc", include_str!("../../models/workloads/ugpu-sc.toml")),
    ("ugpu-squeezenet", include_str!("../../models/workloads/ugpu-squeezenet.toml")),
    ("ugpu-srad", include_str!("../../models/workloads/ugpu-srad.toml")),
    ("update-random", include_str!("../../models/workloads/update-random.toml")),
];

/// The names of the workloads that come with the program.
pub fn names() -> impl Iterator<Item = &'static str> {
    WORKLOADS.iter().map(|(name, _)| *name)
}

/// The text of the workload of that name.
pub(super) fn text(name: &str) -> Option<&'static str> {
    WORKLOADS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
