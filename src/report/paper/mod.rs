//! Papers: what their files in `models/papers` print and ask for, what our runs give of it,
//! and the report that compares both.

mod columns;
mod file;
mod headline;
mod published_lookup;
mod published_table;
mod report;

pub use file::{Paper, PaperError, Part, PartFigure, RunSelection, Set, Silence};
pub use headline::{ALONE, Headline, HeadlineRow, MixGain, Side, Verdict, judge};
pub use published_lookup::{PublishedLookup, PublishedSlowdowns};
pub use published_table::{Compared, PublishedApp, PublishedTable, PublishedValue, TableEntry};
pub use report::{
    REPRODUCTION_SCHEMA, ReproducedFigure, ReproducedPaper, ReproducedPart, Reproduction,
    headlines, headlines_csv, write_reproduction,
};
