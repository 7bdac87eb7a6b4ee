//! Which meters the entries of a table use, so that neither a meter's statistics nor its end look at every entry of every table.
use crate::program::Program;
use foldhash::HashMap;
use weir_openflow::model::MeterId;

/// See the module's page. A meter that no entry uses is not in it.
#[derive(Debug, Default)]
pub(crate) struct Metered(HashMap<MeterId, u32>);

impl Metered {
    /// Number of entries that use a meter.
    pub(crate) fn by(&self, meter: MeterId) -> u32 {
        self.0.get(&meter).copied().unwrap_or(0)
    }

    /// Whether some entry uses a meter (`ALL`: any).
    pub(crate) fn is_by(&self, meter: MeterId) -> bool {
        if meter == MeterId::ALL { !self.0.is_empty() } else { self.0.contains_key(&meter) }
    }

    /// Notes that an entry with one program went and one with another came.
    pub(super) fn swap(&mut self, went: Option<&Program>, came: Option<&Program>) {
        for meter in came.iter().flat_map(|program| program.meters()) {
            *self.0.entry(*meter).or_default() += 1;
        }
        for meter in went.iter().flat_map(|program| program.meters()) {
            let Some(count) = self.0.get_mut(meter) else { continue };
            *count -= 1;
            if *count == 0 {
                self.0.remove(meter);
            }
        }
    }
}
