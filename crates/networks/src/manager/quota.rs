//! Limits what each owner may have.
use super::{ManagerError, NetworkManager};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_units::Bps;
use weir_vnet::service::{Bandwidth, NetworkServiceRequest};

/// Limits of an owner's networks together; `None` for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Quota {
    /// Most networks that have not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub networks: Option<usize>,
    /// Most virtual links of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<usize>,
    /// Largest sum of their guaranteed rates, each direction and each link counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guaranteed: Option<Bps>,
}

/// Limits of all owners.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Quotas {
    /// Limits of owners without limits of their own.
    pub others: Quota,
    /// Limits by owner.
    pub by_owner: BTreeMap<String, Quota>,
}

/// Resources that the networks of an owner have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OwnerUsage {
    /// Networks that are reserved.
    pub networks: usize,
    /// Virtual links.
    pub links: usize,
    /// Sum of guaranteed rates in bit/s.
    pub guaranteed_bps: u64,
}

impl OwnerUsage {
    fn add(&mut self, request: &NetworkServiceRequest) {
        self.networks += 1;
        self.links += request.links.len();
        self.guaranteed_bps = self.guaranteed_bps.saturating_add(guaranteed(request));
    }
}

/// Returns the sum of the guaranteed rates of all links and directions, each with its largest of all stages.
fn guaranteed(request: &NetworkServiceRequest) -> u64 {
    let rates = request.links.iter().flat_map(|link| {
        let name = link.name();
        let stages = request.stages.iter().flat_map(|stage| &stage.links).filter(move |change| change.name == name);
        let mut most = link.bandwidths().map(|bandwidth| bandwidth.minimum().0);
        for change in stages {
            let changed: [Bandwidth; 2] = [change.bandwidth, change.backward.unwrap_or(change.bandwidth)];
            for (most, changed) in most.iter_mut().zip(changed) {
                *most = changed.minimum().0.max(*most);
            }
        }
        most
    });
    rates.fold(0, u64::saturating_add)
}

impl NetworkManager {
    /// Returns what the networks of an owner have.
    pub fn usage(&self, owner: &str) -> OwnerUsage {
        let mut usage = OwnerUsage::default();
        let own = self.networks.values().filter(|record| record.request.owner == owner && record.state.is_reserved());
        own.for_each(|record| usage.add(&record.request));
        usage
    }

    /// Checks that an owner may have one more network.
    pub(super) fn check_quota(&self, request: &NetworkServiceRequest) -> Result<(), ManagerError> {
        let reserved = self.networks.values().filter(|record| record.state.is_reserved()).count();
        if reserved >= self.settings.most_networks {
            return Err(ManagerError::Full { most: self.settings.most_networks });
        }
        let quotas = &self.settings.quotas;
        let quota = quotas.by_owner.get(&request.owner).unwrap_or(&quotas.others);
        let mut usage = self.usage(&request.owner);
        usage.add(request);
        let over = |what: &str, asked: String, most: String| ManagerError::Quota {
            owner: request.owner.clone(),
            problem: format!("{what}: with this network {asked}, expected at most {most}"),
        };
        if let Some(most) = quota.networks.filter(|most| usage.networks > *most) {
            return Err(over("networks", usage.networks.to_string(), most.to_string()));
        }
        if let Some(most) = quota.links.filter(|most| usage.links > *most) {
            return Err(over("links", usage.links.to_string(), most.to_string()));
        }
        if let Some(most) = quota.guaranteed.filter(|most| usage.guaranteed_bps > most.0) {
            return Err(over("guaranteed rate", Bps(usage.guaranteed_bps).exact(), most.exact()));
        }
        Ok(())
    }
}
