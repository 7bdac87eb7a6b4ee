//! Predicts what a flow-mod does, without applying it.
use super::{TableEditor, check_flags, is_delete};
use crate::entry_filter::EntryFilter;
use crate::version_semantics::FlowModSemantics;
use weir_openflow::Version;
use weir_openflow::model::{ErrorType, FlowCommand, FlowMod};

/// Effect of a flow-mod on the present entries. Entries are named by their stamps, as in
/// [`EntryChange`](crate::EntryChange).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowModEffect {
    /// An entry is added.
    Add {
        /// Priority of the entry.
        priority: u16,
    },
    /// Entries with these stamps get other instructions or are replaced.
    Modify(Vec<u64>),
    /// Entries with these stamps are deleted.
    Delete(Vec<u64>),
    /// No effect, because the message is no flow-mod or would be refused.
    Nothing,
}

impl TableEditor<'_> {
    /// Predicts what a flow-mod does. Does not check whether the table is full or whether the entry overlaps others.
    ///
    /// # Errors
    /// The error with which the flow-mod would be refused.
    pub(crate) fn subject(&self, flow: &FlowMod, manner: FlowModSemantics) -> Result<FlowModEffect, ErrorType> {
        let (key, mask) = flow.matching.key_and_mask()?;
        self.check_table(flow)?;
        check_flags(flow)?;
        let words = manner.reading.words(&key, &mask);
        if is_delete(flow) {
            return Ok(FlowModEffect::Delete(self.names(&EntryFilter::of_delete(flow, manner, words))));
        }
        self.check(flow, manner.version, key, mask)?;
        if flow.command != FlowCommand::Add {
            let names = self.names(&EntryFilter::of_flow_mod(flow, manner, words.clone()));
            // 1.0's modify adds an entry if none matches.
            if !names.is_empty() || manner.version != Version::V10 {
                return Ok(FlowModEffect::Modify(names));
            }
        }
        let table = &self.tables[usize::from(flow.table.0)];
        let same = table.find_in_any_reading(&words, manner.priority).and_then(|id| table.get(id));
        Ok(same
            .map_or(FlowModEffect::Add { priority: manner.priority }, |same| FlowModEffect::Modify(vec![same.stamp])))
    }

    /// Returns the stamps of the entries that a filter selects.
    fn names(&self, filter: &EntryFilter) -> Vec<u64> {
        let mut names = Vec::new();
        for (_, table) in (0..).zip(&*self.tables).filter(|(number, _)| filter.is_about(*number)) {
            let mut look = |id, entry: &crate::table::FlowEntry| {
                if filter.lets(entry, || table.words_of(id, entry)) {
                    names.push(entry.stamp);
                }
            };
            match filter.few(table) {
                Some(few) => few.into_iter().for_each(|id| _ = table.get(id).map(|entry| look(id, entry))),
                None => table.iter().for_each(|(id, entry)| look(id, entry)),
            }
        }
        names
    }
}
