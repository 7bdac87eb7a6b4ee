//! Determines what cached verdicts depend on. A cached verdict stands for a packet's path from the first table through
//! entries whose only effect is a goto. So it depends only on the tables that such paths can reach, and on the bits of
//! the packet on which lookups in these tables depend.
use crate::shape::hash::{MergedWords, PairReader, WordMask, pair_up};
use crate::table::FlowTable;
use weir_packet::FlowMask;

/// Maximum number of tables on a path that a cached verdict stores.
pub(super) const MAX_STEPS: usize = 8;

/// Dependencies of cached verdicts: see the [module](self).
#[derive(Debug, Default)]
pub(super) struct CacheDependencies {
    /// Numbers and versions of the first table and of the tables that can be reached from it through entries whose only
    /// effect is a goto; ascending.
    tables: Vec<(u8, u64)>,
    /// Words of the flow key, with masks, on which lookups in these tables depend.
    pub(super) words: Vec<MergedWords>,
    /// Number of tables on the longest path through these tables, at most [`MAX_STEPS`].
    pub(super) steps: usize,
    /// True if lookups may be so expensive that a trial of the cache is worthwhile.
    pub(super) is_dear: bool,
}

impl CacheDependencies {
    /// Determines what cached verdicts depend on with the current tables.
    pub(super) fn of(tables: &[FlowTable]) -> CacheDependencies {
        let reached = reached(tables);
        let mut mask = FlowMask::EMPTY;
        for table in reached.iter().filter_map(|number| tables.get(usize::from(*number))) {
            mask.words.iter_mut().zip(table.reach().looks_at().words).for_each(|(word, looked_at)| *word |= looked_at);
        }
        let words: Vec<WordMask> =
            (0..).zip(mask.words).filter(|(_, mask)| *mask != 0).map(|(word, mask)| WordMask { word, mask }).collect();
        let is_dear = reached.len() > 1 || tables.first().is_some_and(|first| !first.is_cheap());
        CacheDependencies {
            steps: longest(tables, &reached).min(MAX_STEPS),
            words: pair_up(&words).0.iter().map(|pair| MergedWords::new(*pair)).collect(),
            is_dear,
            tables: reached.into_iter().map(|number| (number, tables[usize::from(number)].reach().version())).collect(),
        }
    }

    /// Returns true if the plan still holds, because none of its tables has changed. Changes of other tables do not
    /// matter: a path leads to one of them only if one of the plan's tables changes.
    pub(super) fn holds(&self, tables: &[FlowTable]) -> bool {
        let is_same = |(number, version): &(u8, u64)| {
            tables.get(usize::from(*number)).is_some_and(|table| table.reach().version() == *version)
        };
        !self.tables.is_empty() && self.tables.iter().all(is_same)
    }
}

/// Returns the numbers of the first table and of the tables that packets can reach from it through entries whose only
/// effect is a goto; ascending.
fn reached(tables: &[FlowTable]) -> Vec<u8> {
    let mut is_reached = [false; 256];
    is_reached[0] = true;
    // One pass suffices, because gotos lead only to later tables.
    for (number, table) in tables.iter().enumerate() {
        if is_reached[number] {
            table.reach().leads_to().for_each(|next| is_reached[usize::from(next)] = true);
        }
    }
    (0..).zip(is_reached).take(tables.len()).filter_map(|(number, reached)| reached.then_some(number)).collect()
}

/// Returns the number of tables on the longest path through the tables `reached`.
fn longest(tables: &[FlowTable], reached: &[u8]) -> usize {
    let mut steps = [0; 256];
    for number in reached.iter().rev() {
        let next = tables[usize::from(*number)].reach().leads_to();
        steps[usize::from(*number)] = 1 + next.map(|next| steps[usize::from(next)]).max().unwrap_or(0);
    }
    steps[0]
}
