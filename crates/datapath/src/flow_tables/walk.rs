//! Visits the flow entries that a request selects, in parts of a bounded number of places.
//!
//! A walk visits the places of entries in order, and an entry keeps its place as long as it exists. So an entry that
//! exists from the walk's start to its end is visited exactly once, whatever changes in between.
use super::FlowTables;
use crate::entry_filter::EntryFilter;
use crate::shape::EntryId;
use crate::table::{EthTypeReading, FlowCounter, FlowEntry};
use weir_openflow::Version;
use weir_openflow::model::error::BadRequest;
use weir_openflow::model::multipart::{AggregateStats, FlowCounters, FlowRequest, FlowStats};
use weir_openflow::model::{ErrorType, TableId};
use weir_units::Instant;

/// Position of a walk over the flow entries that a request selects; see [`crate::Datapath::walk_flows`].
#[derive(Debug)]
pub struct FlowWalk {
    filter: EntryFilter,
    table: usize,
    place: usize,
}

impl FlowTables {
    /// Begins a walk; `reading` is how the request's message reads a match on the EtherType.
    ///
    /// # Errors
    /// The error to reply with: the table does not exist, or the match is invalid.
    pub(crate) fn flow_walk(&self, asked: &FlowRequest, reading: EthTypeReading) -> Result<FlowWalk, ErrorType> {
        if asked.table != TableId::ALL && !self.has_table(asked.table) {
            return Err(BadRequest::BadTableId.into());
        }
        Ok(FlowWalk { filter: EntryFilter::of_request(asked, reading)?, table: 0, place: 0 })
    }

    /// Continues a walk over at most `most` places. Appends the entries found to `found`, described as channels of
    /// `version` see them. Returns true if places remain.
    pub(crate) fn flow_stats(
        &self,
        now: Instant,
        version: Version,
        walk: &mut FlowWalk,
        most: usize,
        found: &mut Vec<FlowStats>,
    ) -> bool {
        self.walk(walk, most, |table, counter, entry| found.push(entry.stats(now, version, table, counter)))
    }

    /// Continues a walk like [`FlowTables::flow_stats`], with statistics that lack the instructions.
    pub(crate) fn flow_counters(&self, now: Instant, walk: &mut FlowWalk, most: usize) -> (Vec<FlowCounters>, bool) {
        let mut found = Vec::with_capacity(most);
        let more = self.walk(walk, most, |table, counter, entry| found.push(entry.counters(now, table, counter)));
        (found, more)
    }

    /// Continues a walk and adds the entries found to a sum. Returns true if places remain.
    pub(crate) fn sum_flows(&self, walk: &mut FlowWalk, most: usize, sum: &mut AggregateStats) -> bool {
        self.walk(walk, most, |_, counter, _| {
            sum.packet_count += counter.packets;
            sum.byte_count += counter.bytes;
            sum.flow_count += 1;
        })
    }

    fn walk(&self, walk: &mut FlowWalk, most: usize, mut meet: impl FnMut(u8, FlowCounter, &FlowEntry)) -> bool {
        let mut left = most;
        for (number, table) in (0_u8..).zip(&self.tables).skip(walk.table) {
            if walk.filter.is_about(number) {
                let places = table.places(walk.place, left);
                let lets = |id: EntryId, entry: &FlowEntry| walk.filter.lets(entry, || table.words_of(id, entry));
                for (id, entry) in places.filter(|(id, entry)| lets(*id, entry)) {
                    meet(number, table.counter_of(id), entry);
                }
                // The table may have shrunk since the last part.
                let end = table.n_places().min(walk.place + left);
                left -= end.saturating_sub(walk.place);
                walk.place = end;
                if end < table.n_places() {
                    return true;
                }
            }
            (walk.table, walk.place) = (walk.table + 1, 0);
        }
        false
    }
}
