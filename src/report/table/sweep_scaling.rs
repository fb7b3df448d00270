//! A sweep on many nodes.

use std::fmt::Write as _;

use super::words;
use crate::number::{percent, short};
use crate::results::{NodesEstimate, SweepScaling};

const COLUMNS: [&str; 5] = ["nodes", "makespan", "speed-up", "efficiency", "bottleneck"];

/// What a sweep is thought to take on numbers of nodes, one per line, then what that rests
/// on.
#[must_use]
pub fn scaling(scaling: &SweepScaling) -> String {
    let rows = scaling.nodes.iter().map(row).collect();
    let mut said = words(COLUMNS.map(String::from).into(), rows, |column| column == 4) + "\n";
    let _ = writeln!(
        said,
        "An estimate for {} cells, were none done, on nodes of {} threads, a cell on each.\n\
         It rests on {} measured cells, which a log-normal distribution fits with median {} and \
         95 % below {}, from which the others are drawn with seed {}; on {} of {} applications \
         alone, which run first and for which cells wait; and on {} to claim and keep a cell. \
         The longest cells go first, and nodes are as fast as where cells were measured. \
         Speed-up is over one node.",
        scaling.cells,
        scaling.threads,
        scaling.measured_cells,
        time(scaling.median_seconds),
        time(scaling.high_seconds),
        scaling.seed,
        scaling.measured_shared_runs,
        scaling.shared_runs,
        time(scaling.overhead_seconds),
    );
    said
}

fn row(one: &NodesEstimate) -> Vec<String> {
    vec![
        one.nodes.to_string(),
        time(one.seconds),
        short(one.speedup),
        percent(Some(one.efficiency)),
        one.bottleneck.to_string(),
    ]
}

/// A time from microseconds to days.
fn time(seconds: f64) -> String {
    let units = [(172_800.0, 86_400.0, "d"), (7200.0, 3600.0, "h"), (120.0, 60.0, "min")];
    let unit = units.into_iter().find(|&(from, _, _)| seconds >= from);
    let (unit, name) = match unit {
        Some((_, unit, name)) => (unit, name),
        None if seconds >= 0.1 => (1.0, "s"),
        None => (1e-3, "ms"),
    };
    format!("{} {name}", short(seconds / unit))
}

#[cfg(test)]
mod tests {
    use super::{scaling, time};
    use crate::results::{Bottleneck, NodesEstimate, SweepScaling};

    #[test]
    fn a_row_names_its_bottleneck_and_the_rest_says_it_is_an_estimate() {
        let bottleneck = Bottleneck::LongestCell;
        let row = NodesEstimate {
            nodes: 1000,
            seconds: 90.0,
            speedup: 250.0,
            efficiency: 0.25,
            bottleneck,
        };
        let text = scaling(&SweepScaling {
            cells: 8,
            measured_cells: 3,
            nodes: vec![row],
            ..SweepScaling::default()
        });
        let line: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(line.join(" "), "1000 90 s 250 25 % the longest cell");
        assert!(text.contains("An estimate for 8 cells") && text.contains("3 measured"), "{text}");
    }

    #[test]
    fn times_have_few_digits() {
        let told = [0.0004, 0.25, 119.0, 600.0, 7200.0, 864_000.0].map(time);
        assert_eq!(told, ["0.4 ms", "0.25 s", "119 s", "10 min", "2 h", "10 d"]);
    }
}
