//! What each scheme of a sweep gained over all mixes of a machine, from the table `cells.csv`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::statistics::{geometric_mean, mean};
use crate::group_by;

/// The cells of one scheme on one machine that have a record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchemeMeans {
    /// The machine, with the keys that the plan sets: `v100:l1.latency_cycles=20`.
    pub machine: String,
    /// The scheme.
    pub scheme: String,
    /// Its parameters, defaults included.
    pub parameters: BTreeMap<String, String>,
    /// Mixes, each with how many cells it has: of several seeds more than one.
    pub mixes: BTreeMap<String, usize>,
    /// System throughput over the cells.
    pub stp: Means,
    /// Average normalised turnaround time over the cells.
    pub antt: Means,
}

/// Means of the same values; `None` where a value is missing or has no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Means {
    /// Arithmetic.
    pub arithmetic: Option<f64>,
    /// Geometric; `None` also where a value is 0.
    pub geometric: Option<f64>,
}

/// A row of the table, as far as means need it.
#[derive(Debug, Deserialize)]
struct Line {
    machine: String,
    overrides: String,
    mix: String,
    scheme: String,
    parameters: String,
    status: String,
    stp: Option<f64>,
    antt: Option<f64>,
}

impl Means {
    fn of(values: impl Iterator<Item = Option<f64>>) -> Self {
        let values: Option<Vec<f64>> = values.collect();
        let values = values.unwrap_or_default();
        Self { arithmetic: mean(&values), geometric: geometric_mean(&values) }
    }
}

/// The means of the schemes in `cells`, the content of a `cells.csv`: machines and schemes in
/// the order of the table. Cells without a record are left out.
///
/// # Errors
/// When it is no such table.
pub fn scheme_means(cells: &[u8]) -> Result<Vec<SchemeMeans>, csv::Error> {
    let lines = csv::Reader::from_reader(cells).into_deserialize();
    let lines: Vec<Line> = lines.collect::<Result<_, _>>()?;
    let done = lines.iter().filter(|line| line.status == "done");
    let machines = group_by(done.map(|line| ((&line.machine, &line.overrides), line)));
    let schemes = machines.into_iter().flat_map(|(_, lines)| {
        group_by(lines.into_iter().map(|line| ((&line.scheme, &line.parameters), line)))
    });
    Ok(schemes.map(|(_, lines)| SchemeMeans::of(&lines)).collect())
}

impl SchemeMeans {
    /// Of `lines`, at least one, which are of one machine and scheme.
    fn of(lines: &[&Line]) -> Self {
        let Line { machine, overrides, scheme, parameters, .. } = lines[0];
        let set = if overrides.is_empty() { String::new() } else { format!(":{overrides}") };
        let settings = parameters.split(':').filter_map(|word| word.split_once('='));
        let mut mixes = BTreeMap::new();
        for line in lines {
            *mixes.entry(line.mix.clone()).or_default() += 1;
        }
        Self {
            machine: format!("{machine}{set}"),
            scheme: scheme.clone(),
            parameters: settings.map(|(key, value)| (key.into(), value.into())).collect(),
            mixes,
            stp: Means::of(lines.iter().map(|line| line.stp)),
            antt: Means::of(lines.iter().map(|line| line.antt)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::scheme_means;

    const CELLS: &str = "machine,overrides,mix,scheme,parameters,status,stp,antt\n\
        v100,,a + b,even,,done,1.0,2.0\n\
        v100,,a + b,ws,k=1:w=5,done,1.2,1.5\n\
        v100,,a + c,even,,done,4.0,8.0\n\
        v100,,a + c,ws,k=1:w=5,failed,,\n\
        v100,x=1,a + b,even,,done,1.5,\n";

    #[test]
    fn means_are_of_one_machine_and_of_cells_with_a_record() {
        let found = scheme_means(CELLS.as_bytes()).unwrap();
        let names: Vec<(&str, &str, usize)> =
            found.iter().map(|m| (&*m.machine, &*m.scheme, m.mixes.len())).collect();
        assert_eq!(names, [("v100", "even", 2), ("v100", "ws", 1), ("v100:x=1", "even", 1)]);
        assert_eq!(found[0].stp.arithmetic, Some(2.5));
        assert!((found[0].stp.geometric.unwrap() - 2.0).abs() < 1e-12);
        assert!((found[0].antt.geometric.unwrap() - 4.0).abs() < 1e-12);
        assert_eq!(found[1].parameters["w"], "5");
        // No bound.
        assert_eq!((found[2].antt.arithmetic, found[2].antt.geometric), (None, None));
    }

    #[test]
    fn what_is_no_table_of_cells_is_refused() {
        assert!(scheme_means(b"a,b\n1,2\n").is_err());
    }
}
