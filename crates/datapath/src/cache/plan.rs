//! Which tables a packet can come to before something happens to it, and what of the packet their lookups look at: what a verdict
//! depends on, and nothing else.
use crate::shape::hash::{Double, Known, WordMask, pair_up};
use crate::table::FlowTable;
use weir_packet::FlowMask;

/// Tables on a way that is kept, at most.
pub(super) const MAX_STEPS: usize = 8;

/// See the module's page.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Tables that gotos lead to from the first on, that one included, and their versions; ascending.
    tables: Vec<(u8, u64)>,
    /// The words of a packet that count.
    pub(super) words: Vec<Double>,
    /// Tables on the longest way, or [`MAX_STEPS`].
    pub(super) steps: usize,
    /// Whether lookups may cost so much that it is worth trying to save them.
    pub(super) is_dear: bool,
}

impl Plan {
    /// The plan for tables as they are.
    pub(super) fn of(tables: &[FlowTable]) -> Plan {
        let reached = reached(tables);
        let mut mask = FlowMask::EMPTY;
        for table in reached.iter().filter_map(|number| tables.get(usize::from(*number))) {
            mask.words.iter_mut().zip(table.reach().looks_at().words).for_each(|(word, looked_at)| *word |= looked_at);
        }
        let words: Vec<WordMask> =
            (0..).zip(mask.words).filter(|(_, mask)| *mask != 0).map(|(word, mask)| WordMask { word, mask }).collect();
        let is_dear = reached.len() > 1 || tables.first().is_some_and(|first| !first.is_cheap());
        Plan {
            steps: longest(tables, &reached).min(MAX_STEPS),
            words: pair_up(&words).0.iter().map(|pair| Double::new(*pair)).collect(),
            is_dear,
            tables: reached.into_iter().map(|number| (number, tables[usize::from(number)].reach().version())).collect(),
        }
    }

    /// Whether the tables are still as they were. What is not reached from them was not before, so it does not count.
    pub(super) fn holds(&self, tables: &[FlowTable]) -> bool {
        let is_same = |(number, version): &(u8, u64)| {
            tables.get(usize::from(*number)).is_some_and(|table| table.reach().version() == *version)
        };
        !self.tables.is_empty() && self.tables.iter().all(is_same)
    }
}

/// The tables that packets can come to by entries that only lead there; ascending.
fn reached(tables: &[FlowTable]) -> Vec<u8> {
    let mut is_reached = [false; 256];
    is_reached[0] = true;
    // Gotos lead only to later tables.
    for (number, table) in tables.iter().enumerate() {
        if is_reached[number] {
            table.reach().leads_to().for_each(|next| is_reached[usize::from(next)] = true);
        }
    }
    (0..).zip(is_reached).take(tables.len()).filter_map(|(number, reached)| reached.then_some(number)).collect()
}

/// Number of tables on the longest way through these.
fn longest(tables: &[FlowTable], reached: &[u8]) -> usize {
    let mut steps = [0; 256];
    for number in reached.iter().rev() {
        let next = tables[usize::from(*number)].reach().leads_to();
        steps[usize::from(*number)] = 1 + next.map(|next| steps[usize::from(next)]).max().unwrap_or(0);
    }
    steps[0]
}
