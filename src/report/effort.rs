//! What a solo run took of the machine, in one sentence.

use crate::results::AppRecord;

use super::number::{energy, percent};

/// Energy, and how busy units and stores were; `None` where the record says neither.
pub(super) fn effort(app: &AppRecord) -> Option<String> {
    let joules = app.energy_joules.map(|joules| format!("energy {}", energy(joules)));
    let busy = app.utilization.map(|busy| {
        let shares = [
            ("ALU", busy.alu),
            ("SFU", busy.sfu),
            ("LD/ST", busy.load_store),
            ("registers", busy.registers),
            ("shared memory", busy.shared),
        ];
        let words = shares.map(|(name, share)| format!("{name} {}", percent(Some(share))));
        format!("in use: {}", words.join(", "))
    });
    let said: Vec<String> = [joules, busy].into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join("; "))
}

#[cfg(test)]
mod tests {
    use super::effort;
    use crate::results::{AppRecord, UtilizationRecord};

    #[test]
    fn only_what_is_recorded_is_said() {
        let mut app = AppRecord::default();
        assert_eq!(effort(&app), None);
        app.energy_joules = Some(0.004_86);
        assert_eq!(effort(&app).unwrap(), "energy 4.86 mJ");
        app.utilization = Some(UtilizationRecord { alu: 0.5, ..UtilizationRecord::default() });
        let said = effort(&app).unwrap();
        assert!(said.starts_with("energy 4.86 mJ; in use: ALU 50 %, SFU 0 %,"), "{said}");
    }
}
