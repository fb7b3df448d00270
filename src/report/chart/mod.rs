//! The parts that figures are made of: a layout with a legend, plot areas with axes, notes
//! and, where it is asked for, a title. Text never covers text, legends lie outside
//! the plot areas, and the same input gives the same bytes.
//!
//! Knows no record: only shapes, text and numbers.

mod area;
mod axis;
mod bars;
mod canvas;
mod export;
mod heat;
mod layout;
mod panels;
mod style;
mod text;

pub use area::Area;
pub use export::Format;
pub use layout::{Drawing, Sheet, Width};

pub(crate) use area::Placement;
pub(crate) use axis::{AXIS_HEIGHT, Scale, across, counts, down, outline, ticks};
pub(crate) use bars::{BarRow, Bars, Cluster, highest};
pub(crate) use canvas::{LINES, Label, LineLook};
pub(crate) use heat::{Shades, explain, heads, shaded};
pub(crate) use layout::{Entry, LABEL, Layout, NOTE, Swatch};
pub(crate) use panels::{CountPlot, Panel, RANKED, Ranks, panels};
pub(crate) use style::{
    Colour, Fill, HATCHED, INK, LOOKS, Marker, PAPER, POINT_LOOKS, REST, SOFT_INK, look,
};
pub(crate) use text::{
    Anchor, fit, fit_heavy, heavy_width, left_of, lines_height, lines_of, name_room, text_width,
    write_left,
};
