//! Table features: reports what tables can do, and restricts them on request (OpenFlow 1.3.5, 7.3.5.5). Without
//! restrictions all tables are equal, except that goto leads only to later tables.
use super::FlowTables;
use crate::flow_mod::InvalidEntries;
use crate::table::{TableRestrictions, TableSettings};
use std::collections::BTreeMap;
use weir_openflow::Version;
use weir_openflow::model::error::TableFeaturesFailed;
use weir_openflow::model::multipart::TableFeaturesCommand::{Disable, Enable, Modify, Replace};
use weir_openflow::model::multipart::{FeatureTypeId, OxmId, TableFeatures, TableFeaturesCommand, TableProperty};
use weir_openflow::model::{ActionType, ErrorType, InstructionType, TableId};
use weir_packet::Field;

/// Instructions of table features. The last table has no goto, and 1.5 has an action in place of the meter.
const INSTRUCTIONS: [InstructionType; 6] = [
    InstructionType::GotoTable,
    InstructionType::WriteMetadata,
    InstructionType::WriteActions,
    InstructionType::ApplyActions,
    InstructionType::ClearActions,
    InstructionType::Meter,
];
/// Actions that 1.5 adds.
const ACTIONS_OF_15: [ActionType; 2] = [ActionType::CopyField, ActionType::Meter];
/// Bits of a table's configuration that formerly chose the handling of misses (`OFPTC_DEPRECATED_MASK`): accepted
/// without effect.
pub(super) const CONFIG_DEPRECATED: u32 = 3;

/// Feature flags `OFPTFF_*` of 1.5 (OpenFlow 1.5.1, 7.3.5.18.1).
mod feature {
    pub(super) const INGRESS: u32 = 1 << 0;
    pub(super) const EGRESS: u32 = 1 << 1;
    pub(super) const FIRST_EGRESS: u32 = 1 << 4;
    pub(super) const ALL: u32 = INGRESS | EGRESS | FIRST_EGRESS;
}

/// Returns the command of a request, which must be equal for all its tables.
fn command_of(wanted: &[TableFeatures]) -> Result<TableFeaturesCommand, ErrorType> {
    let command = wanted.first().map_or(Replace, |features| features.command);
    let is_one = wanted.iter().all(|features| features.command == command);
    match command {
        Replace | Modify | Enable | Disable if is_one => Ok(command),
        _ => Err(TableFeaturesFailed::BadCommand.into()),
    }
}

impl FlowTables {
    /// Sets the pipeline as a request describes it. Tables that it does not name leave the pipeline (in 1.5 only if
    /// it replaces the whole pipeline). Returns the entries to remove without a message: those of tables whose
    /// features changed, and those whose goto became invalid (OpenFlow 1.3.5, 7.3.5.5.1; 1.5.1, 7.3.5.18).
    ///
    /// # Errors
    /// The request asks for a feature that does not exist; nothing has changed.
    pub(crate) fn set_features(
        &mut self,
        wanted: &[TableFeatures],
        version: Version,
    ) -> Result<InvalidEntries, ErrorType> {
        let command = command_of(wanted)?;
        let mut asked: BTreeMap<u8, TableSettings> = BTreeMap::new();
        for features in wanted {
            let settings = match command {
                Enable | Disable => {
                    TableSettings { is_there: command == Enable, ..self.former(features.table)?.clone() }
                }
                _ => self.settings_of(features, version)?,
            };
            if asked.insert(features.table.0, settings).is_some() {
                return Err(TableFeaturesFailed::BadTable.into());
            }
        }
        // Table 0 must stay, because packets begin there.
        if asked.get(&0).map_or(command == Replace, |first| !first.is_there) {
            return Err(TableFeaturesFailed::BadTable.into());
        }
        let names_tables = matches!(command, Replace | Modify) && version >= Version::V15;
        let egress = if names_tables { self.asked_egress(wanted, command)? } else { self.first_egress };
        let mut all_of = self.changes_sides(egress);
        for (table, former) in (0..).zip(&mut self.settings) {
            let left_out = TableSettings { is_there: former.is_there && command != Replace, ..former.clone() };
            let new = asked.remove(&table).unwrap_or(left_out);
            all_of[usize::from(table)] |= !new.can_what(former);
            *former = new;
        }
        self.first_egress = egress;
        Ok(InvalidEntries { all_of, dead_ends: self.dead_ends() })
    }

    /// Returns the first egress table after a request of 1.5: the flagged table, or none if the request replaces the
    /// pipeline without one.
    fn asked_egress(&self, wanted: &[TableFeatures], command: TableFeaturesCommand) -> Result<Option<u8>, ErrorType> {
        let mut flagged = wanted.iter().filter(|features| features.features & feature::FIRST_EGRESS != 0);
        let first = flagged.next().map(|features| features.table.0);
        if wanted.iter().any(|features| features.features & !feature::ALL != 0)
            || flagged.next().is_some()
            || first == Some(0)
        {
            return Err(TableFeaturesFailed::BadFeatures.into());
        }
        Ok(first.or(self.first_egress.filter(|_| command == Modify)))
    }

    /// Returns for each table whether it becomes an egress or ingress table when the first egress table changes to
    /// `first`.
    fn changes_sides(&self, first: Option<u8>) -> Vec<bool> {
        let n_tables = self.n_tables();
        let (old, new) = (self.first_egress.unwrap_or(n_tables), first.unwrap_or(n_tables));
        (0..n_tables).map(|table| (old.min(new)..old.max(new)).contains(&table)).collect()
    }

    fn former(&self, table: TableId) -> Result<&TableSettings, ErrorType> {
        self.settings.get(usize::from(table.0)).ok_or(TableFeaturesFailed::BadTable.into())
    }

    /// Returns a table's settings after a request.
    fn settings_of(&self, features: &TableFeatures, version: Version) -> Result<TableSettings, ErrorType> {
        let table = features.table;
        let former = self.former(table)?;
        if features.config & !CONFIG_DEPRECATED != 0 || features.max_entries > self.max_entries {
            return Err(TableFeaturesFailed::BadArgument.into());
        }
        // `all` has every version's features, because a request of another version may set them.
        let all = self.properties(table.0, None);
        let limits = TableRestrictions::new(features.properties.clone(), &all)?;
        let is_all = limits == TableRestrictions::new(self.properties(table.0, Some(version)), &all)?;
        Ok(TableSettings {
            is_there: true,
            name: features.name.clone(),
            max_entries: features.max_entries,
            metadata_match: features.metadata_match,
            metadata_write: features.metadata_write,
            limits: (!is_all).then(|| Box::new(limits)),
            ..former.clone()
        })
    }

    /// Returns for each pair of tables whether a goto from the first to the second is invalid: because the second
    /// left the pipeline, or because it is an egress table and the first is not.
    fn dead_ends(&self) -> Vec<Vec<bool>> {
        let (n_tables, settings) = (self.n_tables(), &self.settings);
        let egress = self.first_egress.unwrap_or(n_tables);
        let is_dead = |from: u8, to: u8| !settings[usize::from(to)].is_there || from < egress && to >= egress;
        (0..n_tables).map(|from| (0..n_tables).map(|to| is_dead(from, to)).collect()).collect()
    }

    /// Returns the features of the tables in the pipeline.
    pub(crate) fn features(&self, version: Version) -> Vec<TableFeatures> {
        self.numbers().map(|table| self.features_of(table, version)).collect()
    }

    fn features_of(&self, table: u8, version: Version) -> TableFeatures {
        let settings = &self.settings[usize::from(table)];
        let limited = settings.limits.as_ref().map(|limits| limits.properties().to_vec());
        TableFeatures {
            table: TableId(table),
            command: Replace,
            features: self.sides_of(table),
            name: settings.name.clone(),
            metadata_match: settings.metadata_match,
            metadata_write: settings.metadata_write,
            config: settings.config(),
            max_entries: settings.max_entries,
            properties: limited.unwrap_or_else(|| self.properties(table, Some(version))),
        }
    }

    /// Returns whether a table is, or may become, an ingress or egress table (`OFPTFF_*`).
    fn sides_of(&self, table: u8) -> u32 {
        match self.first_egress {
            None if table == 0 => feature::INGRESS,
            None => feature::INGRESS | feature::EGRESS,
            Some(first) if table < first => feature::INGRESS,
            Some(first) if table == first => feature::EGRESS | feature::FIRST_EGRESS,
            Some(_) => feature::EGRESS,
        }
    }

    /// Returns the features of a table without restrictions: those a version can express, or those of all versions.
    fn properties(&self, table: u8, version: Option<Version>) -> Vec<TableProperty> {
        let has_next = table + 1 < self.n_tables();
        let next = (table + 1..self.n_tables()).map(TableId).collect();
        let has_meter = version != Some(Version::V15);
        let has = |kind: &InstructionType| match kind {
            InstructionType::GotoTable => has_next,
            InstructionType::Meter => has_meter,
            _ => true,
        };
        let instructions = INSTRUCTIONS.into_iter().filter(has);
        let actions = || actions_of(version).map(FeatureTypeId::Standard).collect();
        // Properties for misses are left out, which means that they equal the ordinary ones.
        let miss = false;
        vec![
            TableProperty::Instructions { miss, ids: instructions.map(FeatureTypeId::Standard).collect() },
            TableProperty::NextTables { miss, tables: next },
            TableProperty::WriteActions { miss, ids: actions() },
            TableProperty::ApplyActions { miss, ids: actions() },
            TableProperty::Match(fields(|_| true, Field::is_maskable)),
            TableProperty::Wildcards(fields(|_| true, |_| false)),
            TableProperty::WriteSetField { miss, fields: fields(Field::is_settable, |_| false) },
            TableProperty::ApplySetField { miss, fields: fields(Field::is_settable, |_| false) },
        ]
    }
}

/// Returns the action types (`OFPAT_*`) of a version, or of all versions.
pub(crate) fn actions_of(version: Option<Version>) -> impl Iterator<Item = ActionType> {
    let is_new = version.is_none_or(|version| version >= Version::V15);
    ActionType::NAMED.iter().copied().filter(move |kind| is_new || !ACTIONS_OF_15.contains(kind))
}

/// Returns the headers of the fields that `wanted` picks. A mask is stated only for matching. Elsewhere it has no
/// meaning, and Open vSwitch refuses the whole reply.
fn fields(wanted: fn(Field) -> bool, masked: fn(Field) -> bool) -> Vec<OxmId> {
    let wanted = Field::ALL.into_iter().filter(|field| wanted(*field));
    let ids = wanted.filter_map(|field| Some((field, OxmId::of(field, masked(field))?)));
    // Leaves out headers from which the field cannot be derived.
    ids.filter(|(field, id)| id.field() == Some(*field)).map(|(_, id)| id).collect()
}
