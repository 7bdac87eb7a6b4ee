//! Draws links and virtual links that share them.
use weir_traffic::RandomStream;
use weir_units::Bps;
use weir_vnet::allocation::{SubstrateLink, VirtualLink};

/// Links with the virtual links that are asked for.
#[derive(Debug, Clone)]
pub(super) struct DrawnDemand {
    pub(super) links: Vec<SubstrateLink>,
    pub(super) virtual_links: Vec<VirtualLink>,
}

/// Returns a number from 0 to below `bound`.
fn index(random: &mut RandomStream, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).unwrap_or(0)
}

/// Draws links of 0.1 to 10 Gbit/s, and two to twelve virtual links over up to three of them, one in four static. Most
/// minima ask for a share of a link that is fair on average.
pub(super) fn draw(random: &mut RandomStream, links: usize) -> DrawnDemand {
    let mbps = |rate: u64| Bps(rate * 1_000_000);
    let link = |number: usize, random: &mut RandomStream| {
        SubstrateLink::new(format!("link {number}"), mbps(100 + random.below(9900)))
    };
    let links: Vec<SubstrateLink> = (0..links).map(|number| link(number, random)).collect();
    let count = 2 + index(random, 11);
    let mut virtual_links = Vec::new();
    for number in 0..count {
        let mut rest: Vec<&SubstrateLink> = links.iter().collect();
        let hops = 1 + index(random, links.len().min(3));
        let path: Vec<&SubstrateLink> = (0..hops).map(|_| rest.swap_remove(index(random, rest.len()))).collect();
        let capacity = path.iter().map(|link| link.capacity.0).min().unwrap_or(0);
        let minimum = Bps(random.below(1 + 3 * capacity / count as u64));
        let names = path.iter().map(|link| link.name.clone());
        let asked = VirtualLink::new(format!("virtual link {number}"), names).weighing((1 + random.below(4)) as f64);
        virtual_links.push(match random.below(4) {
            0 => asked.fixed_at(Bps(minimum.0.max(1))),
            1 => asked.at_least(minimum),
            _ => asked.between(minimum, Bps(minimum.0 + 1 + random.below(capacity))),
        });
    }
    DrawnDemand { links, virtual_links }
}

impl DrawnDemand {
    /// Returns the virtual links through a link, with their indices.
    pub(super) fn through<'a>(&'a self, link: &'a str) -> impl Iterator<Item = (usize, &'a VirtualLink)> {
        self.virtual_links.iter().enumerate().filter(move |(_, one)| one.path.iter().any(|name| name == link))
    }

    /// Returns the links whose capacity is less than the minima, with what is missing.
    pub(super) fn short_links(&self) -> Vec<(String, u64)> {
        let missing = |link: &SubstrateLink| {
            let minima: u64 = self.through(&link.name).map(|(_, one)| one.minimum.0).sum();
            (minima > link.capacity.0).then(|| (link.name.clone(), minima - link.capacity.0))
        };
        self.links.iter().filter_map(missing).collect()
    }

    /// Returns the allowed maximum of a virtual link, at most the capacity of its path.
    pub(super) fn maximum(&self, index: usize) -> u64 {
        let one = &self.virtual_links[index];
        let of_path = self.links.iter().filter(|link| one.path.contains(&link.name)).map(|link| link.capacity.0);
        of_path.chain(one.maximum.map(|maximum| maximum.0)).min().unwrap_or(0)
    }
}
