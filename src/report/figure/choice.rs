//! What can be chosen of a figure, beside the records that it is drawn from.

use super::{FIGURES, Figure, ReportError};

/// Something that some figures let choose and others do not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// One application of the records.
    App,
    /// A reference table beside the records.
    Reference,
    /// The scheme that others are divided by.
    Baseline,
    /// What is compared.
    Metric,
    /// The queue that is shown.
    Queue,
}

impl Choice {
    /// The option that makes the choice.
    #[must_use]
    pub fn option(self) -> &'static str {
        match self {
            Self::App => "--app",
            Self::Reference => "--reference",
            Self::Baseline => "--baseline",
            Self::Metric => "--metric",
            Self::Queue => "--queue",
        }
    }
}

impl Figure {
    /// Refuses a choice that changes nothing of the figure.
    ///
    /// # Errors
    /// [`ReportError::Unused`] with the figures that it is for.
    pub fn check(&self, choice: Choice) -> Result<(), ReportError> {
        let takes = |figure: &&Self| figure.takes.contains(&choice);
        if takes(&self) {
            return Ok(());
        }
        let known: Vec<&str> = FIGURES.iter().filter(takes).map(|figure| figure.name).collect();
        let (figure, option) = (self.name, choice.option());
        Err(ReportError::Unused { figure, option, known: known.join(", ") })
    }
}
