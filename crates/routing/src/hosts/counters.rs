//! Counters of the host tracker.

/// Names of the counters, by [`HostCounter`].
const NAMES: [&str; 22] = [
    "hosts_added",
    "hosts_moved",
    "hosts_removed",
    "hosts_probes",
    "hosts_answers",
    "hosts_late_answers",
    "hosts_forged_answers",
    "hosts_checks",
    "hosts_refused_claims",
    "hosts_alarms",
    "hosts_drop_malformed",
    "hosts_drop_reserved",
    "hosts_drop_contradiction",
    "hosts_drop_blocked",
    "hosts_drop_port_down",
    "hosts_drop_former_trunk",
    "hosts_drop_waiting",
    "hosts_drop_table_full",
    "hosts_drop_port_full",
    "hosts_drop_checks_full",
    "hosts_ips_replaced",
    "hosts_names_taken",
];

/// Number of a counter.
#[derive(Debug, Clone, Copy)]
pub(super) enum HostCounter {
    Added,
    Moved,
    Removed,
    Probes,
    Answers,
    LateAnswers,
    ForgedAnswers,
    Checks,
    RefusedClaims,
    Alarms,
    Malformed,
    Reserved,
    Contradiction,
    Blocked,
    PortDown,
    FormerTrunk,
    Waiting,
    TableFull,
    PortFull,
    ChecksFull,
    IpsReplaced,
    NamesTaken,
}

/// Counters of the host tracker.
#[derive(Debug, Default)]
pub(super) struct HostCounters([u64; NAMES.len()]);

impl HostCounters {
    pub(super) fn count(&mut self, counter: HostCounter) {
        if let Some(count) = self.0.get_mut(counter as usize) {
            *count += 1;
        }
    }

    pub(super) fn named(&self) -> Vec<(&'static str, u64)> {
        NAMES.into_iter().zip(self.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_has_its_name() {
        assert_eq!(HostCounter::NamesTaken as usize + 1, NAMES.len());
        let mut counters = HostCounters::default();
        counters.count(HostCounter::Checks);
        let counted: Vec<_> = counters.named().into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counted, [("hosts_checks", 1)]);
    }
}
