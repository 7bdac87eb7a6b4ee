//! What a flow-mod is about, told without carrying it out.
use super::{Filter, Manner, Tables, check_flags, is_delete};
use weir_openflow::Version;
use weir_openflow::model::{ErrorType, FlowCommand, FlowMod};

/// What a flow-mod would do to the entries as they are. Entries have their names of [`EntryChange`](crate::EntryChange).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// It adds an entry.
    Add {
        /// Of this priority.
        priority: u16,
    },
    /// It gives these other instructions, or puts another in the place of one.
    Modify(Vec<u64>),
    /// It deletes these.
    Delete(Vec<u64>),
    /// It is no flow-mod, or will be refused.
    Nothing,
}

impl Tables<'_> {
    /// What a flow-mod would do. That its table may be full, or that it may overlap with others, is not looked at.
    ///
    /// # Errors
    /// As when it is carried out.
    pub(crate) fn subject(&self, flow: &FlowMod, manner: Manner) -> Result<Subject, ErrorType> {
        let (key, mask) = flow.matching.key_and_mask()?;
        self.check_table(flow)?;
        check_flags(flow)?;
        let words = manner.reading.words(&key, &mask);
        if is_delete(flow) {
            return Ok(Subject::Delete(self.names(&Filter::of_delete(flow, manner, words))));
        }
        self.check(flow, manner.version, key, mask)?;
        if flow.command != FlowCommand::Add {
            let names = self.names(&Filter::of_flow_mod(flow, manner, words.clone()));
            // 1.0 adds what it does not find to modify.
            if !names.is_empty() || manner.version != Version::V10 {
                return Ok(Subject::Modify(names));
            }
        }
        let table = &self.tables[usize::from(flow.table.0)];
        let same = table.find_in_any_reading(&words, manner.priority).and_then(|id| table.get(id));
        Ok(same.map_or(Subject::Add { priority: manner.priority }, |same| Subject::Modify(vec![same.stamp])))
    }

    /// The entries that a filter lets through.
    fn names(&self, filter: &Filter) -> Vec<u64> {
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
