//! Leases: which host has which address until when.
use crate::map::SwitchPort;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use weir_packet::MacAddr;
use weir_units::Instant;

/// Identity of a client: its client identifier, or its Ethernet address if it sends none (RFC 2131, 4.2).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ClientKey {
    Identifier(Vec<u8>),
    Mac(MacAddr),
}

/// State of an address that is not free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeaseState {
    /// Offered to a client that has not asked for it yet.
    Offered,
    /// In use.
    Bound,
    /// Another host uses it, says a client.
    Declined,
}

/// Lease of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lease {
    pub(super) client: ClientKey,
    pub(super) state: LeaseState,
    /// Port from which the client asked.
    pub(super) at: SwitchPort,
    /// End of the lease. Afterwards the address may be given to other clients.
    pub(super) until: Instant,
}

/// Leases by address and by client. The number of addresses in pools bounds them: each address has at most one lease,
/// each client one address.
#[derive(Debug, Default)]
pub(super) struct LeaseTable {
    by_ip: BTreeMap<Ipv4Addr, Lease>,
    by_client: BTreeMap<ClientKey, Ipv4Addr>,
    /// Leases that have not ended, by port; those that ended may be in it until they are replaced.
    by_port: BTreeMap<SwitchPort, u32>,
    /// Number of changes of leases; offers do not count.
    changes: u64,
}

impl LeaseTable {
    /// Returns the address that a client has, had or was offered.
    pub(super) fn address_of(&self, client: &ClientKey) -> Option<Ipv4Addr> {
        self.by_client.get(client).copied()
    }

    /// Returns the lease of an address, also one that has ended.
    pub(super) fn get(&self, ip: Ipv4Addr) -> Option<&Lease> {
        self.by_ip.get(&ip)
    }

    /// Returns true if a client may have an address: it is free or its lease has ended, or it is the client's own and
    /// not declined.
    pub(super) fn is_open(&self, ip: Ipv4Addr, client: &ClientKey, now: Instant) -> bool {
        self.get(ip)
            .is_none_or(|lease| lease.until <= now || (lease.client == *client && lease.state != LeaseState::Declined))
    }

    /// Returns all leases by their addresses, also those that have ended.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, &Lease)> {
        self.by_ip.iter().map(|(ip, lease)| (*ip, lease))
    }

    /// Returns a number that changes with the leases.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// Takes back a lease from before a restart. Neither its address nor its client has one yet.
    pub(super) fn restore(&mut self, ip: Ipv4Addr, lease: Lease) {
        *self.by_port.entry(lease.at).or_insert(0) += 1;
        if lease.state != LeaseState::Declined {
            self.by_client.insert(lease.client.clone(), ip);
        }
        self.by_ip.insert(ip, lease);
    }

    /// Gives an address to a client, in place of the one that it had.
    pub(super) fn set(&mut self, ip: Ipv4Addr, lease: Lease) {
        let was_bound = self.get(ip).is_some_and(|former| former.state != LeaseState::Offered);
        self.changes += u64::from(was_bound || lease.state != LeaseState::Offered);
        if let Some(former) = self.by_client.get(&lease.client).copied().filter(|former| *former != ip) {
            self.remove(former);
        }
        self.remove(ip);
        *self.by_port.entry(lease.at).or_insert(0) += 1;
        self.by_client.insert(lease.client.clone(), ip);
        self.by_ip.insert(ip, lease);
    }

    /// Ends a lease now. The client gets the address again if it returns before others have it.
    pub(super) fn end(&mut self, ip: Ipv4Addr, now: Instant) {
        if let Some(lease) = self.by_ip.get_mut(&ip) {
            lease.until = now;
            self.changes += 1;
        }
    }

    /// Keeps an address from all clients for a while: another host uses it.
    pub(super) fn decline(&mut self, ip: Ipv4Addr, until: Instant) {
        if let Some(lease) = self.by_ip.get_mut(&ip) {
            (lease.state, lease.until) = (LeaseState::Declined, until);
            self.by_client.remove(&lease.client);
            self.changes += 1;
        }
    }

    /// Returns the number of leases of clients at a port, also those that have ended.
    pub(super) fn of_port(&self, at: SwitchPort) -> u32 {
        self.by_port.get(&at).copied().unwrap_or(0)
    }

    /// Removes the leases of a port that have ended.
    pub(super) fn forget_ended(&mut self, at: SwitchPort, now: Instant) {
        let ended = self.by_ip.iter().filter(|(_, lease)| lease.at == at && lease.until <= now);
        for ip in ended.map(|(ip, _)| *ip).collect::<Vec<_>>() {
            self.remove(ip);
        }
    }

    /// Returns the leases that are in use, and the addresses that are offered or declined.
    pub(super) fn count(&self, now: Instant) -> (u64, u64) {
        let current = self.by_ip.values().filter(|lease| lease.until > now);
        current.fold((0, 0), |(bound, held), lease| match lease.state {
            LeaseState::Bound => (bound + 1, held),
            LeaseState::Offered | LeaseState::Declined => (bound, held + 1),
        })
    }

    fn remove(&mut self, ip: Ipv4Addr) {
        let Some(lease) = self.by_ip.remove(&ip) else { return };
        if self.by_client.get(&lease.client) == Some(&ip) {
            self.by_client.remove(&lease.client);
        }
        let place = lease.at;
        if let Some(count) = self.by_port.get_mut(&place) {
            *count -= 1;
            if *count == 0 {
                self.by_port.remove(&place);
            }
        }
    }
}
