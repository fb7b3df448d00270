//! How many mixes a printed value is about, where the paper's file or the plan says.

use std::collections::BTreeSet;

use gpumodel_core::units::sorted_mix;

/// Mixes of `mixes` where orders of the same applications are one.
pub(super) fn distinct(mixes: &[Vec<String>]) -> usize {
    mixes.iter().map(sorted_mix).collect::<BTreeSet<_>>().len()
}

/// The same of the plan that `text` is; `None`: it does not list its mixes.
pub(super) fn listed(text: &str) -> Option<usize> {
    let plan: toml::Table = toml::from_str(text).ok()?;
    let mixes = plan.get("mixes")?.as_table()?;
    let lists = mixes.get("lists").filter(|_| mixes.len() == 1)?.as_array()?;
    let names = |list: &toml::Value| -> Option<Vec<String>> {
        list.as_array()?.iter().map(|name| Some(name.as_str()?.to_owned())).collect()
    };
    let lists: Option<Vec<Vec<String>>> = lists.iter().map(names).collect();
    lists.map(|lists| distinct(&lists))
}

#[cfg(test)]
mod tests {
    use super::listed;

    #[test]
    fn orders_of_the_same_applications_are_counted_once() {
        let plan = "[mixes]\nlists = [['a', 'b'], ['b', 'a'], ['a', 'c'], ['a', 'a']]\n";
        assert_eq!(listed(plan), Some(3));
    }

    #[test]
    fn mixes_that_a_plan_does_not_list_are_not_counted() {
        assert_eq!(listed("[mixes]\nlists = [['a', 'b']]\nall = 2\n"), None);
        assert_eq!(listed("[mixes]\nall = 2\n"), None);
        assert_eq!(listed("[mixes]\nlists = ['a']\n"), None);
    }
}
