//! Ids, and mixes of applications by their names.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! index_id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// The id as an index.
            #[must_use]
            #[inline]
            pub fn index(self) -> usize {
                usize::try_from(self.0).expect("an id is an index that was made from a usize")
            }
        }
    };
}

index_id!(
    /// An application of a run: the position in the command line, from 0.
    AppId(u16)
);
index_id!(
    /// A streaming multiprocessor, from 0.
    SmId(u16)
);
index_id!(
    /// A kernel launch of a run, over all applications, from 0 in launch-table order.
    KernelId(u32)
);
index_id!(
    /// A place in a queue of applications, from 0 in order of arrival.
    JobId(u32)
);

/// As users count them: the first is `number 1`.
impl fmt::Display for AppId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "number {}", u32::from(self.0) + 1)
    }
}

/// As users count them: the first is `number 1`.
impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "number {}", u64::from(self.0) + 1)
    }
}

/// The names of `apps`, sorted, so that all orders of the same applications are equal; one
/// that occurs twice stays twice.
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
