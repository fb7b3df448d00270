//! Max-min split by raising the lowest: Warped-Slicer's Algorithm 1.

use super::{Amount, Demand, Split, Unsolved};

/// The result of [`water_filling`].
#[derive(Clone, Debug, PartialEq)]
pub struct Filling {
    /// The split.
    pub split: Split,
    /// Picks of a kernel: each gives it CTAs or finds it full, so K kernels of at most N CTAs
    /// take at most K N picks.
    pub picks: u32,
}

/// Splits an SM that has `total` between `demands`.
///
/// Each kernel begins with one CTA. Then the kernel of lowest performance (the first of
/// equals) gets the fewest CTAs that improve it, or is full when they do not fit or none
/// improve it; until all are full.
///
/// No split has a higher minimum. Let `t` be the best minimum and `m_i` the fewest CTAs with
/// which kernel `i` reaches it: all `m_i` fit together. As long as the lowest kernel is below
/// `t`, it has fewer than `m_i`, and its next step, the next entry of Q, is at most `m_i`. So
/// every kernel stays within its `m_i`, each step fits, and none is full before all have
/// reached `t`. This needs only that Q rises and that a CTA costs the same everywhere; steps
/// of several CTAs (a peaked curve) are allowed. The use of the rest of the SM is not always
/// the best: `reports/WATER_FILLING.md` measures both.
///
/// Corrections of the paper's text: Q begins at its first entry, which is one CTA; each
/// resource is compared separately; a kernel at its last entry of Q is full.
///
/// # Errors
/// [`Unsolved::DoesNotFit`] when one CTA of each does not fit.
pub fn water_filling(total: Amount, demands: &[Demand]) -> Result<Filling, Unsolved> {
    let mut places = vec![0; demands.len()];
    let mut full = vec![false; demands.len()];
    let first = Split::at(demands, &places);
    let mut left = first.leaves(total, demands).ok_or(Unsolved::DoesNotFit)?;
    let mut picks = 0;
    while let Some(picked) = lowest(demands, &places, &full) {
        picks += 1;
        let Demand { need, curve } = &demands[picked];
        let place = places[picked];
        let more = curve.steps().get(place + 1).map(|next| next.ctas - curve.steps()[place].ctas);
        match more.and_then(|more| left.minus(need.times(more))) {
            Some(rest) => {
                left = rest;
                places[picked] += 1;
            }
            None => full[picked] = true,
        }
    }
    Ok(Filling { split: Split::at(demands, &places), picks })
}

/// The kernel of lowest performance that is not full, the first of equals.
fn lowest(demands: &[Demand], places: &[usize], full: &[bool]) -> Option<usize> {
    let mut found: Option<(usize, f64)> = None;
    for (index, demand) in demands.iter().enumerate().filter(|&(index, _)| !full[index]) {
        let performance = demand.curve.steps()[places[index]].performance;
        if found.is_none_or(|(_, least)| performance < least) {
            found = Some((index, performance));
        }
    }
    found.map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::super::{Amount, Curve, Demand, Sample, Unsolved};
    use super::water_filling;

    fn demand(registers: u64, shared_bytes: u64, speeds: &[f64]) -> Demand {
        let samples = (1..).zip(speeds).map(|(ctas, &speed)| Sample { ctas, speed });
        let need = Amount { registers, shared_bytes, threads: 64, warps: 2, cta_slots: 1 };
        Demand { need, curve: Curve::new(&samples.collect::<Vec<_>>()).unwrap() }
    }

    /// An SM of the paper's Table I.
    const SM: Amount =
        Amount { registers: 32_768, shared_bytes: 49_152, threads: 1536, warps: 48, cta_slots: 8 };

    fn ctas(demands: &[Demand]) -> Vec<u32> {
        water_filling(SM, demands).unwrap().split.ctas
    }

    #[test]
    fn equals_share_and_the_first_of_equals_goes_first() {
        let line = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        assert_eq!(ctas(&[demand(1024, 0, &line), demand(1024, 0, &line)]), [4, 4]);
        let three: Vec<_> = (0..3).map(|_| demand(1024, 0, &line)).collect();
        assert_eq!(ctas(&three), [3, 3, 2]);
    }

    #[test]
    fn a_kernel_that_saturates_leaves_the_rest_to_the_other() {
        let line = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        let flat = [9.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0];
        let split = water_filling(SM, &[demand(1024, 0, &line), demand(1024, 0, &flat)]).unwrap();
        assert_eq!(split.split.ctas, [7, 1]);
        assert_eq!(split.split.performance, [0.875, 0.9]);
    }

    #[test]
    fn a_thrashing_kernel_gets_at_most_its_peak() {
        let peak = [1.0, 4.0, 3.0, 2.0, 1.0, 1.0, 1.0, 1.0];
        assert_eq!(ctas(&[demand(1024, 0, &peak), demand(1024, 0, &peak)]), [2, 2]);
    }

    #[test]
    fn each_resource_counts_separately() {
        let line = [1.0, 2.0, 3.0];
        let (registers, shared) = (demand(10_500, 0, &line), demand(1024, 16_000, &line));
        assert_eq!(ctas(&[registers, shared]), [2, 3], "registers end first, shared bytes last");
    }

    #[test]
    fn a_step_of_several_ctas_that_does_not_fit_makes_its_kernel_full_only() {
        let stair = [1.0, 1.0, 1.0, 1.0, 2.0];
        let line = [1.0, 2.0, 3.0];
        assert_eq!(ctas(&[demand(9000, 0, &stair), demand(5000, 0, &line)]), [1, 3]);
    }

    #[test]
    fn where_one_of_each_does_not_fit_there_is_no_split() {
        let wide = demand(20_000, 0, &[1.0]);
        assert_eq!(water_filling(SM, &[wide.clone(), wide.clone()]), Err(Unsolved::DoesNotFit));
        assert_eq!(ctas(&[wide]), [1]);
        assert_eq!(
            water_filling(SM, &[]).unwrap().split.minimum(),
            1.0,
            "no kernel loses anything"
        );
    }
}
