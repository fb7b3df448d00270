//! The parts that figures are made of: a sheet with a title, a legend, plot
//! areas with axes, and a footer. Text never covers text, legends lie outside
//! the plot areas, and the same input gives the same bytes.
//!
//! Knows no record: only shapes, text and numbers.

mod area;
mod axis;
mod bar_row;
mod bars;
mod canvas;
mod cluster;
mod colour;
mod curve;
mod dash;
mod hatch;
mod heat;
mod marker;
mod names;
mod panels;
mod placement;
mod ranks;
mod scale;
mod shade;
mod sheet;
mod text;
mod width;

pub use area::Area;
pub use sheet::Drawing;
pub use width::Width;

pub(crate) use axis::{across, counts, down, outline};
pub(crate) use bar_row::BarRow;
pub(crate) use bars::{Bars, highest};
pub(crate) use canvas::Label;
pub(crate) use cluster::Cluster;
pub(crate) use colour::{Colour, Fill, INK, PAPER, REST, SOFT_INK};
pub(crate) use curve::LINES;
pub(crate) use hatch::HATCHED;
pub(crate) use heat::{explain, heads, shaded};
pub(crate) use names::beside;
pub(crate) use panels::{Panel, panels};
pub(crate) use placement::Placement;
pub(crate) use ranks::{RANKED, Ranks};
pub(crate) use scale::Scale;
pub(crate) use shade::Shades;
pub(crate) use sheet::{Entry, LABEL, NOTE, Sheet, Swatch};
pub(crate) use text::{Anchor, fit, fit_heavy, heavy_width, name_room, text_width};
