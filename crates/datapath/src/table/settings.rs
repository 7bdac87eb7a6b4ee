//! What a controller configures of a table, or the datapath's configuration says of it.
use super::limits::Limits;
use super::vacancy::VacancyEvents;
use weir_openflow::model::TableId;
use weir_openflow::model::config::table_config;

/// See the module's page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableSettings {
    /// Whether the table is part of the pipeline (OpenFlow 1.3.5, 7.3.5.5: a controller may leave tables out).
    pub(crate) is_there: bool,
    /// Its name, in messages.
    pub(crate) name: String,
    /// Most entries.
    pub(crate) max_entries: u32,
    /// Bits of the metadata that entries may match on.
    pub(crate) metadata_match: u64,
    /// Bits of the metadata that entries may write.
    pub(crate) metadata_write: u64,
    /// What entries may do and match on; none for all that there is.
    pub(crate) limits: Option<Box<Limits>>,
    /// Whether entries go to make room for others.
    pub(crate) evicts: bool,
    /// When controllers are told of how full it is.
    pub(crate) vacancy: Option<VacancyEvents>,
}

impl TableSettings {
    /// What holds until a controller says otherwise.
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

    /// Its configuration in messages (`OFPTC_*`).
    pub(crate) fn config(&self) -> u32 {
        let bit = |is_on: bool, bit: u32| if is_on { bit } else { 0 };
        bit(self.evicts, table_config::EVICTION) | bit(self.vacancy.is_some(), table_config::VACANCY_EVENTS)
    }

    /// Whether a table can do exactly what it could with other settings; its name does not count.
    pub(crate) fn can_what(&self, other: &TableSettings) -> bool {
        let bits = |settings: &TableSettings| (settings.metadata_match, settings.metadata_write);
        let size = |settings: &TableSettings| (settings.is_there, settings.max_entries);
        bits(self) == bits(other) && size(self) == size(other) && self.limits == other.limits
    }
}
