//! Describes the tables' classifiers and measures what lookups in them cost.
use super::FlowTables;
use crate::{LookupCost, TableShape};
use weir_packet::FlowKey;

impl FlowTables {
    /// Describes the tables that hold entries or had lookups: the classifier, and the cost of looking up the packets
    /// in `samples`.
    pub(crate) fn shapes(&self, samples: &[FlowKey]) -> Vec<TableShape> {
        let costs = self.costs(samples);
        let tables = (0_u8..=254).zip(&self.tables).zip(&costs);
        let shapes = tables.map(|((number, table), costs)| {
            let described = table.describe();
            let (lookups, matches) = table.counted();
            TableShape {
                table: number,
                shape: described.shape.to_owned(),
                entries: table.len(),
                masks: described.masks,
                bytes: described.bytes.map(|bytes| bytes + table.counters_held()),
                lookups,
                matches,
                probes: LookupCost::of(costs),
            }
        });
        shapes.filter(|shape| shape.entries > 0 || shape.lookups > 0).collect()
    }

    /// Returns the lookup costs of packets by table. Each packet follows its gotos through the tables. Changes that
    /// entries make to packets on the way are ignored, so the costs in tables after such an entry are approximate.
    fn costs(&self, samples: &[FlowKey]) -> Vec<Vec<u32>> {
        let mut costs = vec![Vec::new(); self.tables.len()];
        for key in samples {
            let mut next = Some(0);
            while let Some((table, at)) = next.and_then(|at| Some((self.tables.get(at)?, at))) {
                costs[at].extend(table.probes(key));
                // The loop ends because goto leads only to later tables, which compiling has checked.
                next = table.lookup(key).and_then(|(_, entry)| entry.program.goto).map(usize::from);
            }
        }
        costs
    }
}
