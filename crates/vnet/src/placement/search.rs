//! Finds places for the routers of a virtual network, those with the least sum of rates times links first.
//!
//! A placement costs at least the sum over its virtual links of the rate times the fewest links between the switches.
//! This estimate only grows as more routers are placed, so that a part that costs too much is cut off: branch and bound
//! (A. H. Land and A. G. Doig, "An automatic method of solving discrete programming problems", Econometrica 28(3),
//! 1960).
use super::SwitchRoom;
use std::collections::BTreeSet;

/// Switches of the routers, in their order.
pub(super) type Places = Vec<usize>;

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
    pub(super) hops: Vec<Vec<Option<u128>>>,
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
    /// its estimate, the least first. Each begins with the first free router on another switch.
    pub(super) fn greedy(&self) -> Vec<(u128, Places)> {
        let order = self.order();
        let mut found = BTreeSet::new();
        let Some(first) = order.iter().copied().find(|router| self.may_be_on[*router].len() > 1) else {
            return self.greedy_from(&order, None).into_iter().collect();
        };
        for start in &self.may_be_on[first] {
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
                sum += rate * self.hops[from][to]?;
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
        let mut places: Places = part.places.into_iter().flatten().collect();
        let mut least = self.estimate(&places)?;
        while let Some((better, changed)) = self.improved(&places, least) {
            (least, places) = (better, changed);
        }
        Some((least, places))
    }

    /// Returns the best placement that one move or one swap makes of another, if its estimate is less.
    fn improved(&self, places: &Places, least: u128) -> Option<(u128, Places)> {
        let moves = (0..places.len()).flat_map(|router| {
            self.may_be_on[router].iter().map(move |switch| {
                let mut moved = places.clone();
                moved[router] = *switch;
                moved
            })
        });
        let swaps = (0..places.len()).flat_map(|one| (one + 1..places.len()).map(move |other| (one, other)));
        let may_swap = |(one, other): &(usize, usize)| {
            self.may_be_on[*one].contains(&places[*other]) && self.may_be_on[*other].contains(&places[*one])
        };
        let swapped = swaps.filter(may_swap).map(|(one, other)| {
            let mut swapped = places.clone();
            swapped.swap(one, other);
            swapped
        });
        let better = |places: Places| Some((self.estimate(&places).filter(|found| *found < least)?, places));
        moves.chain(swapped).filter_map(better).min()
    }

    /// Returns the estimate of a placement; `None` if a switch lacks room or there is no way.
    fn estimate(&self, places: &[usize]) -> Option<u128> {
        let mut room = self.room.clone();
        for (switch, needs) in places.iter().zip(&self.needs) {
            room[*switch] = room[*switch].without(*needs)?;
        }
        let cost = |([from, to], rate): &([usize; 2], u128)| Some(rate * self.hops[places[*from]][places[*to]]?);
        self.links.iter().map(cost).sum()
    }
}
