//! Groups measured delays by what differs between them.
use crate::store::PacketDelayRow;
use std::collections::BTreeMap;
use weir_profile::MatchLayers;

/// Cell of the data plane's grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ForwardingCase {
    pub(crate) level: usize,
    pub(crate) kind: MatchLayers,
    pub(crate) entries: u64,
    pub(crate) bytes: u32,
    pub(crate) gap_us: u32,
}

impl ForwardingCase {
    pub(crate) fn of(row: &PacketDelayRow) -> Option<ForwardingCase> {
        let kind = MatchLayers::ALL.into_iter().find(|kind| kind.name() == row.kind)?;
        Some(ForwardingCase { level: row.level, kind, entries: row.entries, bytes: row.bytes, gap_us: row.gap_us })
    }

    /// Returns the time between packets, in seconds.
    pub(super) fn gap_s(&self) -> f64 {
        f64::from(self.gap_us) * 1e-6
    }
}

/// Groups the delays of a level by case, in seconds.
pub(crate) fn cases(rows: &[PacketDelayRow], level: usize) -> BTreeMap<ForwardingCase, Vec<f64>> {
    let mut cases: BTreeMap<ForwardingCase, Vec<f64>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.level == level) {
        if let (Some(case), Some(delay)) = (ForwardingCase::of(row), row.delay_s) {
            cases.entry(case).or_default().push(delay);
        }
    }
    cases
}
