//! What most figures use: the marks of charts, words for values, and names of runs.

pub(super) use super::{
    Drawn, FigureInput, MORE_APPS, MORE_KERNELS, MORE_MIXES, Missing, NO_CORUN, NO_QUEUE, NO_SOLO,
    app_entries, baseline, chosen, decision_ticks, ensure, means, metric, partial, repeated,
};
pub(super) use crate::chart::{
    AXIS_HEIGHT, Anchor, Area, BarRow, Bars, Cluster, Colour, CountPlot, Entry, Fill, HATCHED, INK,
    LABEL, LINES, Label, Layout, Marker, NOTE, PAPER, POINT_LOOKS, Panel, Placement, RANKED, REST,
    Ranks, SOFT_INK, Scale, Shades, Sheet, Swatch, across, counts, down, explain, fit, fit_heavy,
    heads, heavy_width, highest, left_of, lines_height, lines_of, name_room, outline, panels,
    shaded, text_width, ticks, write_left,
};
pub(super) use crate::format::{
    bytes, csv, decimals, float, grouped, percent, plain_name, precise, ratio, row, short,
    time_unit,
};
pub(super) use crate::kernels::{Group, Profile, groups, title_room};
pub(super) use crate::machine::{MachinePanel, machine_panels};
pub(super) use crate::mix::{
    Mix, MixesByScheme, apart, machine_words, mix_labels, mix_name, mix_names, scheme_names,
};
pub(super) use crate::results::last_component;
pub(super) use crate::results::statistics::{geometric_mean, mean};
pub(super) use crate::results::{
    Analysis, AppRecord, CoRun, CoRunApp, DecisionRecord, GroupRecord, JobRecord, KernelRecord,
    MachineRecord, QueueRun,
};
pub(super) use crate::solo_run::{SoloRun, Subject, Sweep, subjects, sweeps};
pub(super) use crate::{distinct, group_by};
pub(super) use std::collections::{BTreeMap, BTreeSet};
