//! Sorts the frames of a burst by their virtual switch.
use crate::VirtualSwitch;
use crate::first_lookup::{FirstLookup, PortFirstLookup, VirtualInputPort};
use weir_openflow::model::PortNo;
use weir_packet::{Frame, ParsedHeaders};

/// First lookup with its working memory.
#[derive(Debug, Default)]
pub struct TenantClassifier {
    lookup: FirstLookup,
    /// Frames of a burst by target; only the first lists, as many as [`TenantClassifier::sort`] returned, are in use.
    /// The lists are reused.
    pub lists: Vec<(VirtualInputPort, Vec<Frame>)>,
    /// Working memory of the first lookup.
    room: ParsedHeaders,
}

impl TenantClassifier {
    /// Compiles the selectors of virtual switches, given with their fabric indices, in the order of precedence.
    pub fn compile<'a>(&mut self, switches: impl Iterator<Item = (u16, &'a VirtualSwitch)> + Clone) {
        self.lookup = FirstLookup::new(switches);
    }

    /// Returns the target of all packets of a port, if they have only one.
    pub fn only(&self, port: PortNo) -> Option<VirtualInputPort> {
        match self.lookup.at(port) {
            Some(PortFirstLookup::One(target)) => Some(*target),
            _ => None,
        }
    }

    /// Sorts the frames received on a port into [`TenantClassifier::lists`] by target, and returns the number of lists.
    /// Frames of no virtual switch stay in `batch`.
    pub fn sort(&mut self, port: PortNo, batch: &mut Vec<Frame>) -> usize {
        let Some(way) = self.lookup.at(port) else { return 0 };
        if let PortFirstLookup::One(target) = way {
            list(&mut self.lists, 0, *target).append(batch);
            return 1;
        }
        let (mut count, mut kept) = (0, 0);
        for at in 0..batch.len() {
            let Some(target) = way.target(&batch[at], &mut self.room) else {
                batch.swap(kept, at);
                kept += 1;
                continue;
            };
            let known = self.lists[..count.min(self.lists.len())].iter().rposition(|(other, _)| *other == target);
            let place = known.unwrap_or(count);
            count = count.max(place + 1);
            list(&mut self.lists, place, target).push(std::mem::take(&mut batch[at]));
        }
        batch.truncate(kept);
        count
    }
}

/// Returns the list at index `place`, assigned to `target`.
fn list(lists: &mut Vec<(VirtualInputPort, Vec<Frame>)>, place: usize, target: VirtualInputPort) -> &mut Vec<Frame> {
    if lists.len() <= place {
        lists.push((target, Vec::new()));
    }
    lists[place].0 = target;
    &mut lists[place].1
}
