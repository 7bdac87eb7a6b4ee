//! Selects the flow entries that a message is about: a flow-mod, a statistics request or a flow monitor.
use crate::program::EntryProgram;
use crate::shape::{EntryId, WordMatches};
use crate::table::{EthTypeReading, FlowEntry, FlowTable};
use crate::version_semantics::FlowModSemantics;
use weir_openflow::model::multipart::FlowRequest;
use weir_openflow::model::{ErrorType, FlowCommand, FlowMod, GroupId, Match, PortNo, TableId};
use weir_packet::Field;

/// Selection of the entries that a message is about.
#[derive(Debug)]
pub(crate) struct EntryFilter {
    pub(crate) table: TableId,
    words: WordMatches,
    /// True for a non-strict message that names the packet type Ethernet. `words` cannot contain this condition,
    /// because entries without a packet type are about Ethernet packets.
    is_of_ethernet: bool,
    /// With a priority: only the entry with this priority and exactly this match. Otherwise all entries with a match
    /// at least as specific.
    strict: Option<u16>,
    cookie: u64,
    cookie_mask: u64,
    out_port: PortNo,
    out_group: GroupId,
}

/// Returns the entries that a filter selects.
pub(crate) fn select<'a>(
    tables: &'a [FlowTable],
    filter: &'a EntryFilter,
) -> impl Iterator<Item = (u8, EntryId, &'a FlowEntry)> {
    let tables = (0_u8..).zip(tables).filter(move |(table, _)| filter.is_about(*table));
    tables.flat_map(move |(number, table)| {
        let by_index = filter.strict.map(|priority| table.find_in_any_reading(&filter.words, priority));
        let one = by_index.flatten().and_then(|id| Some((id, table.get(id)?)));
        let all = by_index.is_none().then(|| table.iter()).into_iter().flatten();
        one.into_iter()
            .chain(all)
            .filter(move |(id, entry)| filter.lets(entry, || table.words_of(*id, entry)))
            .map(move |(id, e)| (number, id, e))
    })
}

impl EntryFilter {
    /// Returns the filter of a modify. A delete filters further.
    pub(crate) fn of_flow_mod(flow: &FlowMod, manner: FlowModSemantics, words: WordMatches) -> EntryFilter {
        let is_strict = matches!(flow.command, FlowCommand::ModifyStrict | FlowCommand::DeleteStrict);
        let asked = if is_strict { None } else { non_strict(&flow.matching, manner.reading).ok() };
        let (words, is_of_ethernet) = asked.unwrap_or((words, false));
        EntryFilter {
            table: flow.table,
            words,
            is_of_ethernet,
            strict: is_strict.then_some(manner.priority),
            cookie: flow.cookie,
            cookie_mask: flow.cookie_mask,
            out_port: PortNo::ANY,
            out_group: GroupId::ANY,
        }
    }

    /// Returns the filter of a delete. Only deletes also filter by the entries' actions (OpenFlow 1.3.5, 6.4).
    pub(crate) fn of_delete(flow: &FlowMod, manner: FlowModSemantics, words: WordMatches) -> EntryFilter {
        EntryFilter {
            out_port: flow.out_port,
            out_group: flow.out_group,
            ..EntryFilter::of_flow_mod(flow, manner, words)
        }
    }

    /// Returns the filter of a statistics request; `reading` is how its message reads a match on the EtherType.
    ///
    /// # Errors
    /// The match is invalid.
    pub(crate) fn of_request(request: &FlowRequest, reading: EthTypeReading) -> Result<EntryFilter, ErrorType> {
        let (words, is_of_ethernet) = non_strict(&request.matching, reading)?;
        Ok(EntryFilter {
            table: request.table,
            words,
            is_of_ethernet,
            strict: None,
            cookie: request.cookie,
            cookie_mask: request.cookie_mask,
            out_port: request.out_port,
            out_group: request.out_group,
        })
    }

    /// Returns true if the filter may select entries of a table.
    pub(crate) fn is_about(&self, table: u8) -> bool {
        self.table == TableId::ALL || self.table.0 == table
    }

    /// Returns true if the filter selects an entry; `words` returns the entry's match in the form that tables
    /// compare.
    pub(crate) fn lets(&self, entry: &FlowEntry, words: impl FnOnce() -> WordMatches) -> bool {
        self.lets_doing(entry, &entry.program, words)
    }

    /// Tests an entry like [`EntryFilter::lets`], with `program` in place of the entry's own program.
    pub(crate) fn lets_doing(
        &self,
        entry: &FlowEntry,
        program: &EntryProgram,
        words: impl FnOnce() -> WordMatches,
    ) -> bool {
        (entry.cookie ^ self.cookie) & self.cookie_mask == 0
            && (self.strict.is_some() || self.takes(words))
            && (self.out_port == PortNo::ANY || program.outputs_to(self.out_port))
            && (self.out_group == GroupId::ANY || program.sends_to(self.out_group))
    }

    /// Returns the entries of a table that the filter may select, if these are known to be few.
    pub(crate) fn few(&self, table: &FlowTable) -> Option<Vec<EntryId>> {
        match self.strict {
            Some(priority) => Some(table.find_in_any_reading(&self.words, priority).into_iter().collect()),
            None => table.few_within(&self.words),
        }
    }

    /// Returns true if the match of an entry is at least as specific as that of a non-strict message.
    fn takes(&self, words: impl FnOnce() -> WordMatches) -> bool {
        if self.words.is_any() && !self.is_of_ethernet {
            return true;
        }
        let words = words();
        words.is_within(&self.words) && (!self.is_of_ethernet || words.is_of_ethernet())
    }
}

/// Returns the match of a non-strict message in the form that is compared with entries, and true if it names the packet
/// type Ethernet.
///
/// # Errors
/// The match is invalid.
fn non_strict(matching: &Match, reading: EthTypeReading) -> Result<(WordMatches, bool), ErrorType> {
    let (key, mut mask) = matching.written()?;
    let is_of_ethernet = mask.get(Field::PacketType) != 0 && key.get(Field::PacketType) == 0;
    if is_of_ethernet {
        mask.set(Field::PacketType, 0);
    }
    Ok((reading.filter_words(&key, &mask), is_of_ethernet))
}
