//! Draws substrates with virtual links whose minima fit.
use crate::oracle::OracleLink;
use weir_units::Bps;
use weir_vnet::allocation::{SubstrateLink, VirtualLink};

/// A substrate with virtual links.
#[derive(Debug, Clone)]
pub(crate) struct DrawnCase {
    pub(crate) links: Vec<SubstrateLink>,
    pub(crate) virtual_links: Vec<VirtualLink>,
}

/// Returns a drawn case of at most this many links, virtual links, and links of a path. Virtual links may have
/// minima, maxima, both or neither, and may be static.
pub(crate) fn draw(random: &mut fastrand::Rng, links: usize, virtual_links: usize, longest: usize) -> DrawnCase {
    let links = random.usize(1..=links);
    let unit = 10_u64.pow(random.u32(0..9));
    let capacities: Vec<u64> = (0..links).map(|_| random.u64(10..=1000) * unit).collect();
    let mut room = capacities.clone();
    let weights = [1.0, 1.0, 1.0, 2.0, 3.0, 0.5, 0.37];
    let virtual_links = (0..random.usize(1..=virtual_links)).map(|index| {
        let mut path: Vec<usize> = (0..links).collect();
        random.shuffle(&mut path);
        path.truncate(random.usize(1..=longest.min(links)));
        let least = |rates: &[u64]| path.iter().map(|link| rates[*link]).min().expect("a path has a link");
        // Some minima take all that is left.
        let (widest, left) = (least(&capacities), least(&room));
        let minimum = [0, 0, random.u64(0..=left / 2), random.u64(0..=left / 8 * 8)][random.usize(0..4)];
        path.iter().for_each(|link| room[*link] -= minimum);
        let maximum =
            [None, Some(widest), Some(random.u64(minimum..=widest.max(minimum))), Some(minimum)][random.usize(0..4)];
        VirtualLink {
            name: format!("v{index:03}"),
            path: path.iter().map(|link| format!("l{link:03}")).collect(),
            minimum: Bps(minimum),
            maximum: maximum.map(|maximum| Bps(maximum.max(1))),
            weight: weights[random.usize(0..weights.len())],
        }
    });
    let virtual_links = virtual_links.collect();
    let link = |(index, capacity): (usize, u64)| SubstrateLink::new(format!("l{index:03}"), Bps(capacity));
    DrawnCase { links: capacities.into_iter().enumerate().map(link).collect(), virtual_links }
}

impl DrawnCase {
    pub(crate) fn capacities(&self) -> Vec<f64> {
        self.links.iter().map(|link| link.capacity.0 as f64).collect()
    }

    /// Returns the virtual links as numbers.
    pub(crate) fn numbers(&self) -> Vec<OracleLink> {
        let place = |name: &String| self.links.iter().position(|link| link.name == *name).expect("a link of the case");
        let numbers = |one: &VirtualLink| {
            let path: Vec<usize> = one.path.iter().map(place).collect();
            let widest = path.iter().map(|link| self.links[*link].capacity).min().expect("a path has a link");
            let hi = one.maximum.unwrap_or(widest).min(widest);
            OracleLink { lo: one.minimum.0 as f64, hi: hi.0 as f64, weight: one.weight, path }
        };
        self.virtual_links.iter().map(numbers).collect()
    }

    /// Returns true if each link has more capacity than the minima.
    pub(crate) fn has_room_everywhere(&self) -> bool {
        self.links.iter().all(|link| {
            let through = self.virtual_links.iter().filter(|one| one.path.contains(&link.name));
            through.map(|one| one.minimum.0).sum::<u64>() < link.capacity.0
        })
    }
}
