//! Opcodes that no table lists.

use std::collections::BTreeSet;

use gpumodel_core::isa::Unit;
use gpumodel_core::units::did_you_mean;

use super::error::SpecError;
use super::isa_table::IsaTable;
use super::models::Models;

/// An opcode that is in no table of `models/isa`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unlisted {
    /// The opcode, as dotted SASS.
    pub opcode: String,
    /// The units on which the tables put it by its first letters, with ` or ` between them.
    pub units: String,
    /// The listed one that is spelt most alike, as ` (did you mean X?)`; empty: none is.
    pub hint: String,
}

impl Models {
    /// Those of `opcodes` that no table lists, in their order.
    ///
    /// # Errors
    /// When a table cannot be read.
    pub fn unlisted<'a>(
        &self,
        opcodes: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<Unlisted>, SpecError> {
        let tables = self.names("isa").into_iter().map(|name| IsaTable::load(self, name));
        let tables: Vec<IsaTable> = tables.collect::<Result<_, _>>()?;
        let unlisted = |opcode: &str| {
            let units: Option<BTreeSet<&str>> =
                tables.iter().map(|table| table.guess(opcode).map(Unit::name)).collect();
            let root = opcode.split('.').next().unwrap_or_default();
            Some(Unlisted {
                opcode: opcode.to_owned(),
                units: units?.into_iter().collect::<Vec<_>>().join(" or "),
                hint: did_you_mean(root, tables.iter().flat_map(IsaTable::opcodes)),
            })
        };
        Ok(opcodes.into_iter().filter_map(unlisted).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::Models;

    #[test]
    fn what_one_table_lists_is_listed() {
        let unlisted = Models::builtin().unlisted(["FFMA", "FFMAA.FTZ", "HGMMA.64x8x16", "QQ"]);
        let unlisted = unlisted.unwrap();
        let told: Vec<(&str, &str)> =
            unlisted.iter().map(|one| (one.opcode.as_str(), one.hint.as_str())).collect();
        assert_eq!(told, [("FFMAA.FTZ", " (did you mean FFMA?)"), ("QQ", "")]);
        assert_eq!(unlisted[0].units, "fp32");
    }
}
