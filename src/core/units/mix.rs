//! Mixes of applications by their names.

/// `apps` in an order of its own, so that orders of the same applications are equal; one
/// that is there twice stays twice.
#[must_use]
pub fn sorted_mix<'a, S>(apps: impl IntoIterator<Item = &'a S>) -> Vec<&'a str>
where
    S: AsRef<str> + ?Sized + 'a,
{
    let mut names: Vec<&str> = apps.into_iter().map(AsRef::as_ref).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::sorted_mix;

    #[test]
    fn orders_of_the_same_applications_are_one_mix() {
        let other = [String::from("b"), String::from("a")];
        assert_eq!(sorted_mix(["a", "b"]), sorted_mix(&other));
        assert_ne!(sorted_mix(["a", "b"]), sorted_mix(["a", "b", "b"]));
    }
}
