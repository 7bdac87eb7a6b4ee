//! Packets by rule, from the statistics of the switches' entries.
use super::entries::AccessEntry;
use foldhash::{HashMap, HashMapExt};
use weir_openflow::model::multipart::FlowStats;
use weir_packet::{FlowKey, FlowMask};

/// Most entries whose counts are kept, over all switches.
const MAX_COUNTED: usize = 1 << 20;

/// Counts of packets by rule.
#[derive(Debug, Default)]
pub(super) struct RuleCounts {
    /// Index of each entry by what identifies it in a switch.
    indexes: HashMap<(u16, FlowKey, FlowMask), u32>,
    /// Rule of each entry.
    rules: Vec<usize>,
    /// Last count of each entry by switch and index.
    last: HashMap<(u64, u32), u64>,
    /// Packets of each rule.
    packets: Vec<u64>,
    /// Statistics that found no room.
    pub(super) full: u64,
}

impl RuleCounts {
    /// Returns counts of zero for `rules` rules with these entries.
    pub(super) fn new(rules: usize, entries: &[AccessEntry]) -> RuleCounts {
        let mut counts = RuleCounts { packets: vec![0; rules], indexes: HashMap::new(), ..RuleCounts::default() };
        for entry in entries {
            let index = u32::try_from(counts.rules.len()).unwrap_or(u32::MAX);
            counts.indexes.entry((entry.priority(), entry.value, entry.mask)).or_insert(index);
            counts.rules.push(entry.rule);
        }
        counts
    }

    /// Returns the packets of a rule.
    pub(super) fn of(&self, rule: usize) -> u64 {
        self.packets.get(rule).copied().unwrap_or(0)
    }

    /// Counts a packet of a rule that the controller itself has judged.
    pub(super) fn add(&mut self, rule: usize) {
        if let Some(packets) = self.packets.get_mut(rule) {
            *packets += 1;
        }
    }

    /// Notes statistics of an entry of a switch. An entry that counts less than before was added anew.
    pub(super) fn note(&mut self, dpid: u64, stats: &FlowStats) {
        let Ok((value, mask)) = stats.matching.key_and_mask() else { return };
        let Some(index) = self.indexes.get(&(stats.priority, value, mask)).copied() else { return };
        if stats.packet_count == u64::MAX {
            return;
        }
        let is_full = self.last.len() >= MAX_COUNTED;
        let last = match self.last.get_mut(&(dpid, index)) {
            Some(last) => last,
            None if is_full => {
                self.full += 1;
                return;
            }
            None => self.last.entry((dpid, index)).or_insert(0),
        };
        let new = stats.packet_count.checked_sub(*last).unwrap_or(stats.packet_count);
        *last = stats.packet_count;
        let rule = self.rules.get(usize::try_from(index).unwrap_or(usize::MAX)).copied();
        if let Some(packets) = rule.and_then(|rule| self.packets.get_mut(rule)) {
            *packets += new;
        }
    }
}
