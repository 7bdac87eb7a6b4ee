//! A burst's frames, sorted by the virtual switch that they are for.
use super::first_lookup::{FirstLookup, Target, Way};
use weir_openflow::model::PortNo;
use weir_packet::{Frame, Parsed};
use weir_scenario::VirtualSwitch;

/// The first lookup with what it works on.
#[derive(Debug, Default)]
pub struct Sorter {
    lookup: FirstLookup,
    /// A burst's frames, by where they go; lists that are used again.
    pub lists: Vec<(Target, Vec<Frame>)>,
    /// Room for the first lookup.
    room: Parsed,
}

impl Sorter {
    /// Compiles the selectors of virtual switches, given with their places, in the order in which they are asked.
    pub fn compile<'a>(&mut self, switches: impl Iterator<Item = (u16, &'a VirtualSwitch)> + Clone) {
        self.lookup = FirstLookup::new(switches);
    }

    /// Whom all packets of a port are for, if there is one.
    pub(crate) fn only(&self, port: PortNo) -> Option<Target> {
        match self.lookup.at(port) {
            Some(Way::One(target)) => Some(*target),
            _ => None,
        }
    }

    /// Sorts frames that came in on a port into [`Sorter::lists`] by where they go; gives the number of lists. Those of no virtual switch
    /// stay.
    pub fn sort(&mut self, port: PortNo, batch: &mut Vec<Frame>) -> usize {
        let Some(way) = self.lookup.at(port) else { return 0 };
        if let Way::One(target) = way {
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

/// The list at a place, for this target.
fn list(lists: &mut Vec<(Target, Vec<Frame>)>, place: usize, target: Target) -> &mut Vec<Frame> {
    if lists.len() <= place {
        lists.push((target, Vec::new()));
    }
    lists[place].0 = target;
    &mut lists[place].1
}
