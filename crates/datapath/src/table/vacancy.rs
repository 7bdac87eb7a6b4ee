//! Informs controllers that a table fills up, and that it has room again (OpenFlow 1.4.1, 7.3.4.1 and 7.4.5).
use weir_openflow::model::config;
use weir_openflow::model::status::TableReason;

/// Thresholds for vacancy events, and their state. Two thresholds prevent repeated events for a table that stays near
/// one of them: a "down" event is only followed by an "up" event, and vice versa.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VacancyEvents {
    /// Percentage of free places below which "down" is sent.
    down: u8,
    /// Percentage of free places above which "up" is sent.
    up: u8,
    /// True if "up" is the next event.
    is_low: bool,
}

impl VacancyEvents {
    /// Creates the state for a table with `now` percent of free places.
    pub(crate) fn new(down: u8, up: u8, now: u8) -> VacancyEvents {
        VacancyEvents { down, up, is_low: now < up }
    }

    /// Returns the event to send for a table with `now` percent of free places.
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

    /// Returns the thresholds and the present vacancy, as in messages.
    pub(crate) fn described(self, now: u8) -> config::VacancyThresholds {
        config::VacancyThresholds { down: self.down, up: self.up, now }
    }
}

/// Returns the percentage of free places of a table, rounded down.
pub(crate) fn percent(entries: usize, max_entries: u32) -> u8 {
    let free = (max_entries as usize).saturating_sub(entries);
    u8::try_from(free * 100 / (max_entries as usize).max(1)).unwrap_or(100)
}
