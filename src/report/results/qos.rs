//! What a scheme promised the application with the high priority (UGPU, section 6.7).

use gpumodel_core::units::to_usize;

use super::CoRun;

impl CoRun {
    /// The part of its speed alone that the scheme promised the application with the high
    /// priority; `None`: it promised nothing.
    #[must_use]
    pub fn qos_target(&self) -> Option<f64> {
        let target: f64 = self.parameters.get("target")?.parse().ok()?;
        target.is_finite().then_some(target)
    }

    /// The place of the application with the high priority that the scheme was told;
    /// `None`: it was told none, or promises nothing.
    #[must_use]
    pub fn given_priority_app(&self) -> Option<usize> {
        let place: usize = self.parameters.get("high")?.parse().ok()?;
        self.qos_target().and(place.checked_sub(1))
    }

    /// The one that the scheme put first itself.
    #[must_use]
    pub fn chosen_priority_app(&self) -> Option<usize> {
        self.parameters.get("high")?;
        let order = self.decisions.first()?.plan.get("order")?;
        Some(to_usize(order.get("priority")?.get(0)?.as_u64()?))
    }

    /// The place of the application that was promised something, told or chosen; `None`:
    /// nothing was promised, or nobody knows to whom.
    #[must_use]
    pub fn priority_app(&self) -> Option<usize> {
        self.qos_target()?;
        self.given_priority_app().or_else(|| self.chosen_priority_app())
    }

    /// Whether the application with the high priority had what it was promised; `None`:
    /// nothing was promised, or nobody knows.
    #[must_use]
    pub fn met_qos_target(&self) -> Option<bool> {
        let place = self.priority_app()?;
        let progress = self.apps.get(place)?.normalized_progress;
        progress.is_finite().then_some(progress >= self.qos_target()?)
    }
}

#[cfg(test)]
mod tests {
    use crate::results::{CoRun, CoRunApp};

    #[test]
    fn a_promise_is_kept_by_the_application_that_it_was_given_to() {
        let app = |normalized_progress| CoRunApp { normalized_progress, ..CoRunApp::default() };
        let run = |high: &str| CoRun {
            parameters: [
                ("target".to_owned(), "0.75".to_owned()),
                ("high".to_owned(), high.into()),
            ]
            .into(),
            apps: vec![app(0.5), app(0.8)],
            ..CoRun::default()
        };
        assert_eq!(run("1").met_qos_target(), Some(false));
        assert_eq!(run("2").met_qos_target(), Some(true));
        assert_eq!(run("0").met_qos_target(), None);
        assert_eq!(CoRun::default().met_qos_target(), None);
    }
}
