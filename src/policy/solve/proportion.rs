//! A whole number of things divided in proportion.

/// Divides `total` in proportion to `wants` by largest remainders, at least 1 for
/// each. Where the lowest shares are raised to 1, who has most above its exact share
/// pays for it. Ties go to the lowest index.
///
/// # Panics
/// When there is not 1 for each, or a want is 0.
#[must_use]
pub fn proportion(total: u64, wants: &[u64]) -> Vec<u64> {
    let all: u128 = wants.iter().map(|&want| u128::from(want)).sum();
    assert!(u128::from(total) >= wants.len() as u128, "one for each is there");
    assert!(wants.iter().all(|&want| want > 0), "everybody wants some");
    // In units of 1 / all, so that everything is whole.
    let exact: Vec<u128> = wants.iter().map(|&want| u128::from(want) * u128::from(total)).collect();
    let mut parts: Vec<u128> = exact.iter().map(|&exact| (exact / all).max(1)).collect();
    let given = |parts: &[u128]| parts.iter().sum::<u128>();
    while given(&parts) < u128::from(total) {
        let lacks =
            |&place: &usize| (std::cmp::Reverse(lack(exact[place], parts[place], all)), place);
        let place = (0..parts.len()).min_by_key(lacks).expect("somebody lacks something");
        parts[place] += 1;
    }
    while given(&parts) > u128::from(total) {
        let rich = (0..parts.len()).filter(|&place| parts[place] > 1);
        let place = rich.min_by_key(|&place| (lack(exact[place], parts[place], all), place));
        parts[place.expect("there is more than one for each")] -= 1;
    }
    let narrow = |part| u64::try_from(part).expect("a part is at most the total");
    parts.into_iter().map(narrow).collect()
}

/// What a part lacks of its exact share, in units of 1 / `all`; less than 0: it has more.
fn lack(exact: u128, part: u128, all: u128) -> i128 {
    let signed = |value: u128| i128::try_from(value).unwrap_or(i128::MAX);
    signed(exact).saturating_sub(signed(part * all))
}

#[cfg(test)]
mod tests {
    use super::proportion;

    #[test]
    fn what_fits_stays_and_what_does_not_is_scaled() {
        assert_eq!(proportion(60, &[36, 24]), [36, 24]);
        assert_eq!(proportion(60, &[12, 12]), [30, 30]);
        assert_eq!(proportion(60, &[60, 30]), [40, 20]);
        assert_eq!(proportion(60, &[60, 60, 54]), [21, 21, 18], "20.7, 20.7 and 18.6");
        assert_eq!(proportion(5, &[1, 1]), [3, 2], "of equals the first");
    }

    #[test]
    fn everybody_has_one() {
        assert_eq!(proportion(4, &[100, 1, 1, 1]), [1, 1, 1, 1]);
        assert_eq!(proportion(10, &[100, 1, 1]), [8, 1, 1]);
        assert_eq!(proportion(6, &[100, 50, 1]), [3, 2, 1], "3.97, 1.99 and 0.04");
        assert_eq!(proportion(1, &[7]), [1]);
    }
}
