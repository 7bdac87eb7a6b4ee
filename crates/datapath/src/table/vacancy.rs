//! Telling controllers that a table fills up, and that it has room again (OpenFlow 1.4.1, 7.3.4.1 and 7.4.5).
use weir_openflow::model::config;
use weir_openflow::model::status::TableReason;

/// When that is told. The two thresholds keep a table on one of them from being told again and again: after a "down" only an "up"
/// follows, and the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VacancyEvents {
    /// Percent of room below which "down" is told.
    down: u8,
    /// Percent of room above which "up" is told.
    up: u8,
    /// Whether "up" is what is told next.
    is_low: bool,
}

impl VacancyEvents {
    /// Begins with a table that has so much room.
    pub(crate) fn new(down: u8, up: u8, now: u8) -> VacancyEvents {
        VacancyEvents { down, up, is_low: now < up }
    }

    /// What is to be told of a table that has so much room now.
    pub(crate) fn look(&mut self, now: u8) -> Option<TableReason> {
        if !self.is_low && now < self.down {
            self.is_low = true;
            return Some(TableReason::VacancyDown);
        }
        if self.is_low && now > self.up {
            self.is_low = false;
            return Some(TableReason::VacancyUp);
        }
        None
    }

    /// The thresholds as messages carry them.
    pub(crate) fn described(self, now: u8) -> config::Vacancy {
        config::Vacancy { down: self.down, up: self.up, now }
    }
}

/// Room of a table in percent, rounded down.
pub(crate) fn percent(entries: usize, max_entries: u32) -> u8 {
    let free = (max_entries as usize).saturating_sub(entries);
    u8::try_from(free * 100 / (max_entries as usize).max(1)).unwrap_or(100)
}
