//! What tables can do, and asking them for less (OpenFlow 1.3.5, 7.3.5.5). Left alone every table is the same, but that goto
//! leads only to later ones.
use super::Request;
use crate::Datapath;
use crate::table::{Limits, TableSettings};
use std::collections::BTreeMap;
use weir_openflow::codec;
use weir_openflow::model::error::TableFeaturesFailed;
use weir_openflow::model::multipart::{OxmId, ReplyBody, TableFeatures, TableProperty, TypeId};
use weir_openflow::model::{Body, ErrorType, TableId};
use weir_packet::Field;

/// `OFPIT_*`: goto, write-metadata, write-, apply-, clear-actions, meter.
const INSTRUCTIONS: [u16; 6] = [1, 2, 3, 4, 5, 6];
/// `OFPIT_GOTO_TABLE`, which the last table has not.
const GOTO: u16 = 1;
/// `OFPAT_*`: output, copy TTL out and in, set and decrement MPLS TTL, push and pop VLAN and MPLS, set queue, group, set and decrement
/// IP TTL, set field, push and pop PBB.
pub(super) const ACTIONS: [u16; 16] = [0, 11, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27];
/// Bits of a table's configuration that once said what a miss does (`OFPTC_DEPRECATED_MASK`): accepted, without effect.
pub(super) const CONFIG_DEPRECATED: u32 = 3;

impl Datapath {
    /// Answers a request: without tables what they can do, with tables what they can do from now on.
    ///
    /// # Errors
    /// Something is asked for that there is not; nothing changed.
    pub(super) fn table_features(
        &mut self,
        wanted: &[TableFeatures],
        request: &mut Request<'_>,
    ) -> Result<(), ErrorType> {
        if !wanted.is_empty() {
            self.set_table_features(wanted)?;
        }
        let tables = (0..self.config.n_tables).filter(|table| self.has_table(TableId(*table)));
        let body = ReplyBody::TableFeatures(tables.map(|table| self.features_of(table)).collect());
        for part in codec::split_reply(body, request.version) {
            request.reply(Body::MultipartReply(part));
        }
        Ok(())
    }

    /// Whether a table is part of the pipeline.
    pub(crate) fn has_table(&self, table: TableId) -> bool {
        self.settings.get(usize::from(table.0)).is_some_and(|table| table.is_there)
    }

    /// Makes the pipeline what a request says: tables that it does not name leave it, entries of tables that change go, without
    /// a message (OpenFlow 1.3.5, 7.3.5.5.1).
    fn set_table_features(&mut self, wanted: &[TableFeatures]) -> Result<(), ErrorType> {
        let mut asked: BTreeMap<u8, TableSettings> = BTreeMap::new();
        for features in wanted {
            if asked.insert(features.table.0, self.settings_of(features)?).is_some() {
                return Err(TableFeaturesFailed::BadTable.into());
            }
        }
        // Packets begin in the first.
        if !asked.contains_key(&0) {
            return Err(TableFeaturesFailed::BadTable.into());
        }
        for (table, former) in (0..).zip(&mut self.settings) {
            let new = asked.remove(&table).unwrap_or_else(|| TableSettings { is_there: false, ..former.clone() });
            if !new.can_what(former) {
                self.tables[usize::from(table)].clear();
            }
            *former = new;
        }
        self.remove_dead_ends();
        Ok(())
    }

    /// A table's settings as a request wants them.
    fn settings_of(&self, features: &TableFeatures) -> Result<TableSettings, ErrorType> {
        let table = features.table;
        let former = self.settings.get(usize::from(table.0)).ok_or(TableFeaturesFailed::BadTable)?;
        if features.config & !CONFIG_DEPRECATED != 0 || features.max_entries > self.config.max_entries {
            return Err(TableFeaturesFailed::BadArgument.into());
        }
        let all = self.properties(table.0);
        let limits = Limits::new(features.properties.clone(), &all)?;
        let is_all = limits == Limits::new(all.clone(), &all)?;
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

    /// Removes entries that go to a table that left the pipeline.
    fn remove_dead_ends(&mut self) {
        let settings = &self.settings;
        let leads_nowhere = |next: Option<u8>| next.is_some_and(|next| !settings[usize::from(next)].is_there);
        for table in &mut self.tables {
            let dead = table.iter().filter(|(_, entry)| leads_nowhere(entry.program.goto)).map(|(id, _)| id);
            for id in dead.collect::<Vec<_>>() {
                table.remove(id);
            }
        }
        let tables = &*self.tables;
        self.timers.sweep(|timer| crate::flow_mod::is_live(tables, timer));
    }

    fn features_of(&self, table: u8) -> TableFeatures {
        let settings = &self.settings[usize::from(table)];
        let limited = settings.limits.as_ref().map(|limits| limits.properties().to_vec());
        TableFeatures {
            table: TableId(table),
            command: 0,
            features: 0,
            name: settings.name.clone(),
            metadata_match: settings.metadata_match,
            metadata_write: settings.metadata_write,
            config: settings.config(),
            max_entries: settings.max_entries,
            properties: limited.unwrap_or_else(|| self.properties(table)),
        }
    }

    /// What a table can do if nobody asks for less.
    fn properties(&self, table: u8) -> Vec<TableProperty> {
        let has_next = table + 1 < self.config.n_tables;
        let next = (table + 1..self.config.n_tables).map(TableId).collect();
        let instructions = INSTRUCTIONS.into_iter().filter(|kind| has_next || *kind != GOTO);
        let actions = || ACTIONS.map(TypeId::Standard).to_vec();
        // A property for misses that is left out is as the ordinary one.
        let miss = false;
        vec![
            TableProperty::Instructions { miss, ids: instructions.map(TypeId::Standard).collect() },
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

/// The headers of the fields that `wanted` picks. A mask is said only where one is matched on: elsewhere it means nothing, and
/// Open vSwitch refuses the whole reply.
fn fields(wanted: fn(Field) -> bool, masked: fn(Field) -> bool) -> Vec<OxmId> {
    let wanted = Field::ALL.into_iter().filter(|field| wanted(*field));
    let ids = wanted.filter_map(|field| Some((field, OxmId::of(field, masked(field))?)));
    // A header that does not tell its field says nothing.
    ids.filter(|(field, id)| id.field() == Some(*field)).map(|(_, id)| id).collect()
}
