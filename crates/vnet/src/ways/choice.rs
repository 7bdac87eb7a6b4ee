//! Sorts ways by what they leave for others.
use super::candidates::Way;
use super::{LinkRouting, VirtualLinkRequest};

/// Price of a link that has no rate left.
const FULL: u128 = u128::MAX / (1 << 32);
/// Number that stands for all of the rate left of a link.
const WHOLE: u128 = 1_000_000_000_000;

impl LinkRouting {
    /// Sorts ways by their price, the least first; ways of equal price keep their order.
    ///
    /// A link costs its cost, times the share that the virtual link takes of the rate left of it and what a unit of
    /// cost counts as. A way costs the sum over its links.
    pub(super) fn sort_by_price(&self, request: &VirtualLinkRequest, ways: &mut [Way]) {
        if request.cost_weight < u32::MAX {
            ways.sort_by_cached_key(|way| self.price(request, way));
        }
    }

    fn price(&self, request: &VirtualLinkRequest, way: &[usize]) -> u128 {
        let shortest = u128::from(request.shortest_packet.0);
        let wire = u128::from(request.rate.0) * (shortest + u128::from(self.substrate.overhead().0)) / shortest;
        let of_cost = u128::from(request.cost_weight) * (WHOLE / 1000);
        let price = |link: &usize| {
            let link = &self.substrate.links()[*link];
            let left = self.admission.rate_left(&link.queue.name).map_or(0, |left| u128::from(left.0));
            let share = (wire * WHOLE).checked_div(left).unwrap_or(FULL);
            (share + of_cost).saturating_mul(link.cost.into())
        };
        way.iter().map(price).fold(0, u128::saturating_add)
    }
}
