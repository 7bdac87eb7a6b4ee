//! Configures tables by table-mods, describes them, and sends table-status messages when a table's vacancy crosses a
//! threshold (OpenFlow 1.4.1, 7.3.4.1, 7.3.5.16 and 7.4.5).
use super::FlowTables;
use super::features::CONFIG_DEPRECATED;
use crate::DatapathOutput;
use crate::channels::DatapathChannels;
use crate::journal::{Journal, UndoRecord};
use crate::table::{TableSettings, VacancyEvents, percent};
use weir_openflow::Version;
use weir_openflow::model::config::{TableMod, eviction, table_config};
use weir_openflow::model::error::{BadProperty, TableModFailed};
use weir_openflow::model::multipart::TableStats;
use weir_openflow::model::status::TableStatus;
use weir_openflow::model::{Body, ErrorType, TableId};

/// All wildcards of 1.0 (`OFPFW_ALL`).
const V10_WILDCARDS: u32 = (1 << 22) - 1;

/// Properties of entries that eviction considers.
const EVICTS_BY: u32 = eviction::IMPORTANCE | eviction::LIFETIME;

impl FlowTables {
    /// Applies a table-mod.
    ///
    /// # Errors
    /// The error to reply with; nothing has changed.
    pub(crate) fn table_mod(
        &mut self,
        change: &TableMod,
        version: Version,
        journal: &mut Journal,
    ) -> Result<(), ErrorType> {
        if change.table != TableId::ALL && !self.has_table(change.table) {
            return Err(TableModFailed::BadTable.into());
        }
        let has_config = version >= Version::V14;
        let later = if has_config { table_config::EVICTION | table_config::VACANCY_EVENTS } else { 0 };
        if change.config & !(CONFIG_DEPRECATED | later) != 0 {
            return Err(TableModFailed::BadConfig.into());
        }
        check_properties(change)?;
        let wants_vacancy = change.config & table_config::VACANCY_EVENTS != 0;
        let is_named = |table: &u8| has_config && [TableId(*table), TableId::ALL].contains(&change.table);
        let tables: Vec<u8> = self.numbers().filter(is_named).collect();
        let lacks_thresholds = |table: &u8| self.settings[usize::from(*table)].vacancy.is_none();
        if wants_vacancy && change.vacancy.is_none() && tables.iter().any(lacks_thresholds) {
            return Err(TableModFailed::BadConfig.into());
        }
        for table in tables {
            let mut settings = self.settings[usize::from(table)].clone();
            settings.evicts = change.config & table_config::EVICTION != 0;
            let now = self.vacancy_of(table);
            let new = change.vacancy.map(|wanted| VacancyEvents::new(wanted.down, wanted.up, now));
            settings.vacancy = new.or(settings.vacancy).filter(|_| wants_vacancy);
            let former = self.configure(table, settings);
            journal.note(|| UndoRecord::Table(table, Box::new(former)));
        }
        Ok(())
    }

    /// Replaces a table's settings and returns the former ones.
    pub(crate) fn configure(&mut self, table: u8, settings: TableSettings) -> TableSettings {
        self.tables[usize::from(table)].set_eviction(settings.evicts);
        let former = std::mem::replace(&mut self.settings[usize::from(table)], settings);
        self.watches_vacancy = self.settings.iter().any(|table| table.vacancy.is_some());
        former
    }

    /// Returns the configuration of all tables in the pipeline.
    pub(crate) fn table_descs(&self) -> Vec<TableMod> {
        self.numbers().map(|table| self.table_desc(table)).collect()
    }

    fn table_desc(&self, table: u8) -> TableMod {
        let settings = &self.settings[usize::from(table)];
        let vacancy = settings.vacancy.map(|events| events.described(self.vacancy_of(table)));
        let eviction = settings.evicts.then_some(EVICTS_BY);
        TableMod { eviction, vacancy, ..TableMod::new(TableId(table), settings.config()) }
    }

    /// Returns the statistics of the tables in the pipeline.
    pub(crate) fn table_stats(&self) -> Vec<TableStats> {
        let tables = self.numbers().map(|table| (table, &self.tables[usize::from(table)], usize::from(table)));
        let stats = tables.map(|(table, entries, at)| TableStats {
            table: TableId(table),
            name: self.settings[at].name.clone(),
            wildcards: V10_WILDCARDS,
            max_entries: self.settings[at].max_entries,
            active_count: u32::try_from(entries.len()).unwrap_or(u32::MAX),
            lookup_count: entries.counted().0,
            matched_count: entries.counted().1,
        });
        stats.collect()
    }

    fn vacancy_of(&self, table: u8) -> u8 {
        let at = usize::from(table);
        percent(self.tables[at].len(), self.settings[at].max_entries)
    }

    /// Sends table-status messages for tables that became full or have room again.
    pub(crate) fn tell_vacancy(&mut self, channels: &DatapathChannels, out: &mut DatapathOutput) {
        if !self.watches_vacancy {
            return;
        }
        for table in 0..self.n_tables() {
            let now = self.vacancy_of(table);
            let events = &mut self.settings[usize::from(table)].vacancy;
            let Some(reason) = events.as_mut().and_then(|events| events.look(now)) else { continue };
            let body = Body::TableStatus(TableStatus { reason, table: self.table_desc(table) });
            channels.tell(|channel| channel.wants_table_status(reason), &body, out);
        }
    }
}

fn check_properties(change: &TableMod) -> Result<(), ErrorType> {
    if change.eviction.is_some_and(|flags| flags & !EVICTS_BY != 0) {
        return Err(BadProperty::BadValue.into());
    }
    if change.vacancy.is_some_and(|vacancy| vacancy.down > vacancy.up || vacancy.up > 100) {
        return Err(BadProperty::BadValue.into());
    }
    match change.properties.first() {
        None => Ok(()),
        Some(property) if property.experimenter().is_some() => Err(BadProperty::BadExperimenter.into()),
        Some(_) => Err(BadProperty::BadType.into()),
    }
}
