//! Settings of a table, from controllers and from the datapath's configuration.
use super::limits::TableRestrictions;
use super::vacancy::VacancyEvents;
use weir_openflow::model::TableId;
use weir_openflow::model::config::table_config;

/// Settings of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableSettings {
    /// True if the table is part of the pipeline. A controller may leave tables out (OpenFlow 1.3.5, 7.3.5.5).
    pub(crate) is_there: bool,
    /// Name in messages.
    pub(crate) name: String,
    /// Maximum number of entries.
    pub(crate) max_entries: u32,
    /// Bits of the metadata that entries may match on.
    pub(crate) metadata_match: u64,
    /// Bits of the metadata that entries may write.
    pub(crate) metadata_write: u64,
    /// Restrictions on entries' matches and instructions; `None` if there are none.
    pub(crate) limits: Option<Box<TableRestrictions>>,
    /// True if entries may be evicted for others.
    pub(crate) evicts: bool,
    /// Thresholds for vacancy events, if controllers are informed.
    pub(crate) vacancy: Option<VacancyEvents>,
}

impl TableSettings {
    /// Returns the default settings.
    pub(crate) fn new(table: TableId, max_entries: u32) -> TableSettings {
        TableSettings {
            is_there: true,
            name: format!("table{table}"),
            max_entries,
            metadata_match: u64::MAX,
            metadata_write: u64::MAX,
            limits: None,
            evicts: false,
            vacancy: None,
        }
    }

    /// Returns the configuration in messages (`OFPTC_*`).
    pub(crate) fn config(&self) -> u32 {
        let bit = |is_on: bool, bit: u32| if is_on { bit } else { 0 };
        bit(self.evicts, table_config::EVICTION) | bit(self.vacancy.is_some(), table_config::VACANCY_EVENTS)
    }

    /// Returns true if both settings have the same capabilities; the name is ignored.
    pub(crate) fn can_what(&self, other: &TableSettings) -> bool {
        let bits = |settings: &TableSettings| (settings.metadata_match, settings.metadata_write);
        let size = |settings: &TableSettings| (settings.is_there, settings.max_entries);
        bits(self) == bits(other) && size(self) == size(other) && self.limits == other.limits
    }
}
