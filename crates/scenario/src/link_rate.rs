//! Gives a rate to the links for which a scenario has none.
use crate::Scenario;
use weir_units::Bps;

impl Scenario {
    /// Returns the scenario with this rate for all links, of switches and of hosts, that have none.
    #[must_use]
    pub fn with_link_rate(mut self, rate: Bps) -> Scenario {
        let of_hosts = self.hosts.iter_mut().map(|host| &mut host.link);
        for spec in of_hosts.chain(self.links.iter_mut().map(|link| &mut link.spec)) {
            spec.rate.get_or_insert(rate);
        }
        self
    }
}
