//! Finds places for the routers of a virtual network, those with the least sum of rates times links first.
//!
//! A placement costs at least the sum over its virtual links of the rate times the fewest links between the switches.
//! This estimate only grows as more routers are placed, so that a part that costs too much is cut off: branch and bound
//! (A. H. Land and A. G. Doig, "An automatic method of solving discrete programming problems", Econometrica 28(3),
//! 1960).
use super::SwitchRoom;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Switches of the routers, in their order.
pub(super) type Places = Vec<usize>;

/// Most switches with which greedy choices begin.
const MOST_STARTS: usize = 100;

/// Routers, their links and the room of switches as numbers.
pub(super) struct PlacementInput {
    /// Room that is left of each switch.
    pub(super) room: Vec<SwitchRoom>,
    /// Room that each router needs.
    pub(super) needs: Vec<SwitchRoom>,
    /// Switches that each router may be on by itself.
    pub(super) may_be_on: Vec<Vec<usize>>,
    /// Links between routers, with their rates.
    pub(super) links: Vec<([usize; 2], u128)>,
    /// Fewest links from one switch to another; `None` if there is no way.
    pub(super) hops: Arc<Vec<Vec<Option<u16>>>>,
}

/// Routers that are placed so far.
struct PartialPlacement {
    places: Vec<Option<usize>>,
    room: Vec<SwitchRoom>,
}

impl PlacementInput {
    /// Returns the number of placements, as far as routers do not compete for room.
    pub(super) fn size(&self) -> usize {
        self.may_be_on.iter().fold(1, |size: usize, switches| size.saturating_mul(switches.len()))
    }

    /// Calls `examine` with placements and their estimates. It returns the largest estimate that is still of use, which
    /// placements with a larger one do not have. All others are examined.
    pub(super) fn branch_and_bound(&self, examine: &mut dyn FnMut(&Places, u128) -> u128) {
        let mut part = PartialPlacement { places: vec![None; self.needs.len()], room: self.room.clone() };
        let mut most = u128::MAX;
        self.extend(&self.order(), &mut part, 0, &mut most, examine);
    }

    /// Returns placements for greedy choices, improved as long as a move or a swap makes the estimate less, each with
    /// its estimate, the least first. Each begins with the first free router on another switch, at most [`MOST_STARTS`]
    /// of them.
    pub(super) fn greedy(&self) -> Vec<(u128, Places)> {
        let order = self.order();
        let mut found = BTreeSet::new();
        let Some(first) = order.iter().copied().find(|router| self.may_be_on[*router].len() > 1) else {
            return self.greedy_from(&order, None).into_iter().collect();
        };
        let starts = &self.may_be_on[first];
        for start in starts.iter().step_by(starts.len().div_ceil(MOST_STARTS)) {
            found.extend(self.greedy_from(&order, Some((first, *start))));
        }
        found.into_iter().collect()
    }

    /// Returns the routers in the order in which they are placed: those with the fewest switches first, then those with
    /// the most rate to others.
    fn order(&self) -> Vec<usize> {
        let rate = |router: usize| -> u128 {
            self.links.iter().filter(|(ends, _)| ends.contains(&router)).map(|(_, rate)| *rate).sum()
        };
        let mut order: Vec<usize> = (0..self.needs.len()).collect();
        order.sort_by_key(|router| (self.may_be_on[*router].len() > 1, std::cmp::Reverse(rate(*router)), *router));
        order
    }

    /// Returns what a router at a switch adds to the estimate of a part; `None` if there is no way.
    fn added(&self, places: &[Option<usize>], router: usize, switch: usize) -> Option<u128> {
        let mut sum = 0;
        for ([from, to], rate) in self.links.iter().filter(|(ends, _)| ends.contains(&router)) {
            let place = |end: usize| if end == router { Some(switch) } else { places[end] };
            if let (Some(from), Some(to)) = (place(*from), place(*to)) {
                sum += rate * u128::from(self.hops[from][to]?);
            }
        }
        Some(sum)
    }

    /// Returns the switches for a router beside those that are placed, with what each adds, the least first.
    fn choices(&self, part: &PartialPlacement, router: usize) -> Vec<(u128, usize)> {
        let fits = |switch: &&usize| part.room[**switch].without(self.needs[router]).is_some();
        let switches = self.may_be_on[router].iter().filter(fits);
        let mut choices: Vec<(u128, usize)> =
            switches.filter_map(|switch| Some((self.added(&part.places, router, *switch)?, *switch))).collect();
        choices.sort_unstable();
        choices
    }

    fn extend(
        &self,
        order: &[usize],
        part: &mut PartialPlacement,
        estimate: u128,
        most: &mut u128,
        examine: &mut dyn FnMut(&Places, u128) -> u128,
    ) {
        let Some((router, others)) = order.split_first() else {
            let places: Places = part.places.iter().copied().flatten().collect();
            *most = examine(&places, estimate);
            return;
        };
        for (added, switch) in self.choices(part, *router) {
            if estimate + added > *most {
                break;
            }
            let before = part.room[switch];
            let Some(left) = before.without(self.needs[*router]) else { continue };
            (part.room[switch], part.places[*router]) = (left, Some(switch));
            self.extend(others, part, estimate + added, most, examine);
            (part.room[switch], part.places[*router]) = (before, None);
        }
    }

    fn greedy_from(&self, order: &[usize], start: Option<(usize, usize)>) -> Option<(u128, Places)> {
        let mut part = PartialPlacement { places: vec![None; self.needs.len()], room: self.room.clone() };
        for router in order {
            let choices = self.choices(&part, *router);
            let fixed = start.filter(|(first, _)| first == router).map(|(_, switch)| switch);
            let (_, switch) = choices.into_iter().find(|(_, switch)| fixed.is_none_or(|fixed| fixed == *switch))?;
            part.room[switch] = part.room[switch].without(self.needs[*router])?;
            part.places[*router] = Some(switch);
        }
        while self.improve(&mut part) {}
        let estimate = self.of_routers(&part, &(0..self.needs.len()).collect::<Vec<usize>>())?;
        Some((estimate, part.places.into_iter().flatten().collect()))
    }

    /// Makes the move of a router, or the swap of two, that makes the estimate least. Returns false if none makes it
    /// less.
    fn improve(&self, part: &mut PartialPlacement) -> bool {
        let mut best: Option<(u128, Vec<(usize, usize)>)> = None;
        let routers = 0..self.needs.len();
        let moves = routers.clone().flat_map(|router| self.may_be_on[router].iter().map(move |to| vec![(router, *to)]));
        let pairs = routers.clone().flat_map(|one| (one + 1..routers.end).map(move |other| (one, other)));
        let swaps = pairs.filter_map(|(one, other)| {
            let (to, back) = (part.places[other]?, part.places[one]?);
            let may = self.may_be_on[one].contains(&to) && self.may_be_on[other].contains(&back);
            may.then(|| vec![(one, to), (other, back)])
        });
        let steps: Vec<Vec<(usize, usize)>> = moves.chain(swaps).collect();
        for step in steps {
            let routers: Vec<usize> = step.iter().map(|(router, _)| *router).collect();
            let Some(before) = self.of_routers(part, &routers) else { continue };
            let back: Vec<(usize, usize)> =
                routers.iter().filter_map(|router| Some((*router, part.places[*router]?))).collect();
            if !self.relocate(part, &step) {
                continue;
            }
            let gain = self.of_routers(part, &routers).and_then(|after| before.checked_sub(after));
            self.relocate(part, &back);
            if gain.is_some_and(|gain| gain > best.as_ref().map_or(0, |(most, _)| *most)) {
                best = gain.map(|gain| (gain, step));
            }
        }
        best.is_some_and(|(_, step)| self.relocate(part, &step))
    }

    /// Puts routers on other switches. Returns false, with nothing changed, if these lack room.
    fn relocate(&self, part: &mut PartialPlacement, step: &[(usize, usize)]) -> bool {
        let before: Vec<(usize, SwitchRoom)> = step
            .iter()
            .flat_map(|(router, to)| part.places[*router].into_iter().chain([*to]))
            .map(|switch| (switch, part.room[switch]))
            .collect();
        for (router, _) in step {
            if let Some(from) = part.places[*router] {
                part.room[from] = part.room[from].with(self.needs[*router]);
            }
        }
        for (router, to) in step {
            let Some(left) = part.room[*to].without(self.needs[*router]) else {
                before.into_iter().for_each(|(switch, room)| part.room[switch] = room);
                return false;
            };
            part.room[*to] = left;
        }
        step.iter().for_each(|(router, to)| part.places[*router] = Some(*to));
        true
    }

    /// Returns the estimate of the links of some routers; `None` if there is no way for one.
    fn of_routers(&self, part: &PartialPlacement, routers: &[usize]) -> Option<u128> {
        let links = self.links.iter().filter(|(ends, _)| ends.iter().any(|end| routers.contains(end)));
        let cost = |([from, to], rate): &([usize; 2], u128)| {
            Some(rate * u128::from(self.hops[part.places[*from]?][part.places[*to]?]?))
        };
        links.map(cost).sum()
    }
}
