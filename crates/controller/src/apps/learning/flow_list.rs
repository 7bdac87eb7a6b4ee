//! Lists the flow entries that were sent to a switch and not yet removed by it.
use super::entries::EthernetFlow;
use foldhash::fast::RandomState;
use std::collections::HashSet;
use std::hash::BuildHasher;

/// Most flow entries listed, as a multiple of the most addresses.
const FLOWS_PER_ADDRESS: usize = 4;

/// Flow entries in a switch, bounded in number.
#[derive(Debug)]
pub(super) struct FlowList {
    /// Hashes of the entries. A list of the entries themselves would be three times as long, and most of the time of a
    /// packet went into looking it up. Two entries with one hash of 64 bits are not to be expected.
    hashes: HashSet<u64, RandomState>,
    state: RandomState,
    max: usize,
}

impl FlowList {
    /// Returns an empty list for the entries of at most `max_addresses` addresses.
    pub(super) fn new(max_addresses: usize) -> FlowList {
        let max = max_addresses.saturating_mul(FLOWS_PER_ADDRESS);
        FlowList { hashes: HashSet::default(), state: RandomState::default(), max }
    }

    /// Adds an entry. Returns false if it is listed or there is no room.
    pub(super) fn insert(&mut self, flow: &EthernetFlow) -> bool {
        self.hashes.len() < self.max && self.hashes.insert(self.state.hash_one(flow))
    }

    /// Removes an entry. Returns false if it is not listed.
    pub(super) fn remove(&mut self, flow: &EthernetFlow) -> bool {
        self.hashes.remove(&self.state.hash_one(flow))
    }

    /// Returns the number of entries.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.hashes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_openflow::model::PortNo;
    use weir_packet::MacAddr;

    #[test]
    fn the_list_is_bounded_and_has_room_again() {
        let (mut list, src) = (FlowList::new(2), MacAddr([2, 0, 0, 0, 0, 1]));
        let flow = |number| {
            let dst = MacAddr::from_bits(number);
            EthernetFlow { in_port: PortNo(1), tag: None, vlan: 0, src, dst }
        };
        let listed = (0..100).filter(|number| list.insert(&flow(*number))).count();
        assert_eq!((listed, list.len()), (8, 8));
        assert!(list.remove(&flow(0)) && !list.remove(&flow(0)) && !list.remove(&flow(99)));
        assert!(list.insert(&flow(0)) && !list.insert(&flow(0)));
    }
}
