//! Decisions of the DHCP server: which address a client gets, and what it is answered (RFC 2131, 4.3).
use super::leases::{ClientKey, Lease, LeaseState};
use super::message::{ClientMessage, DhcpKind, ServerMessage, option};
use super::{CLIENT_PORT, DhcpAnswer, DhcpPool, DhcpServer, SERVER_PORT};
use crate::app::Network;
use crate::map::SwitchPort;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use weir_packet::MacAddr;

/// Time for which an offered address is kept for its client.
pub const OFFER_TIME: Duration = Duration::from_secs(30);
/// Time for which an address that another host uses is not given to clients.
pub const DECLINE_TIME: Duration = Duration::from_secs(600);
/// Most addresses that the search for a free one looks at for one request. The next request goes on behind them.
pub const MAX_PROBES: u32 = 1024;
/// Most free addresses for which the search looks on the map for a host that uses them, for one request.
pub const MAX_HOST_CHECKS: u32 = 64;
/// Shortest time between two searches for leases that have ended at a port that has its most.
const CLEAN_INTERVAL: Duration = Duration::from_secs(1);

impl DhcpServer {
    /// Returns the answer to a message, if it has one, and changes the leases. `sender` is the Ethernet source of the
    /// frame: the client, or its relay.
    pub(super) fn answer(
        &mut self,
        message: &ClientMessage,
        sender: MacAddr,
        at: SwitchPort,
        network: &mut dyn Network,
    ) -> Option<DhcpAnswer> {
        let pools = self.pools_for(message, at);
        if pools.is_empty() {
            self.counters.no_pool += 1;
            return None;
        }
        let (reply, ip) = match message.kind {
            DhcpKind::Discover => self.discover(message, at, &pools, network)?,
            DhcpKind::Request => self.request(message, at, &pools, network)?,
            DhcpKind::Decline => return self.decline(message, network),
            DhcpKind::Release => return self.release(message),
            DhcpKind::Inform => self.inform(message, &pools)?,
            DhcpKind::Offer | DhcpKind::Ack | DhcpKind::Nak => {
                self.counters.malformed += 1;
                return None;
            }
        };
        let (to_mac, to_ip, to_port) = destination(message, sender, reply.kind, ip);
        Some(DhcpAnswer { to_mac, to_ip, to_port, payload: reply.message.finish() })
    }

    fn discover(
        &mut self,
        message: &ClientMessage,
        at: SwitchPort,
        pools: &[usize],
        network: &mut dyn Network,
    ) -> Reply {
        let client = client_key(message);
        if !self.has_room(&client, at) {
            return None;
        }
        let Some((pool, ip)) = self.choose(message, &client, pools, network) else {
            self.counters.pool_empty += 1;
            if self.may_tell(1) {
                let text = format!("no DHCP address is left for host {} at {at}", message.mac);
                network.report("dhcp-pool-empty", text, true);
            }
            return None;
        };
        let is_bound = self
            .leases
            .get(ip)
            .is_some_and(|lease| lease.client == client && lease.state == LeaseState::Bound && lease.until > self.now);
        if !is_bound {
            let until = self.now + OFFER_TIME;
            self.leases.set(ip, Lease { client, state: LeaseState::Offered, at, until });
        }
        self.counters.offers += 1;
        Some((self.grant(DhcpKind::Offer, message, pool, ip), ip))
    }

    fn request(
        &mut self,
        message: &ClientMessage,
        at: SwitchPort,
        pools: &[usize],
        network: &mut dyn Network,
    ) -> Reply {
        let client = client_key(message);
        if message.server.is_some_and(|server| server != self.config.address) {
            // The client has chosen another server.
            if let Some(ip) = self.leases.address_of(&client) {
                self.leases.end(ip, self.now);
            }
            return None;
        }
        // Without a server and with an address of its own, the client renews its lease (RFC 2131, 4.3.2).
        let renewed = Some(message.ciaddr).filter(|ip| message.server.is_none() && !ip.is_unspecified());
        let Some(ip) = renewed.or(message.requested) else {
            self.counters.malformed += 1;
            return None;
        };
        let pool = pools.iter().copied().find(|pool| self.is_acceptable(*pool, ip, message, &client, network));
        let Some(pool) = pool else {
            self.counters.naks += 1;
            let text = b"the address is not for this host here";
            let nak = ServerMessage::new(DhcpKind::Nak, message, Ipv4Addr::UNSPECIFIED, self.config.address);
            let message = nak.with(option::MESSAGE, text);
            return Some((ReplyMessage { kind: DhcpKind::Nak, message }, Ipv4Addr::UNSPECIFIED));
        };
        if !self.has_room(&client, at) {
            return None;
        }
        let until = self.now + self.pool(pool)?.lease_time.0;
        self.leases.set(ip, Lease { client, state: LeaseState::Bound, at, until });
        if let Some(name) = &message.host_name {
            network.name_host(message.mac, name);
        }
        self.counters.acks += 1;
        Some((self.grant(DhcpKind::Ack, message, pool, ip), ip))
    }

    fn decline(&mut self, message: &ClientMessage, network: &mut dyn Network) -> Option<DhcpAnswer> {
        self.counters.declines += 1;
        let ip = message.requested?;
        let is_own = self.leases.address_of(&client_key(message)) == Some(ip);
        if is_own {
            self.leases.decline(ip, self.now + DECLINE_TIME);
            let text = format!("host {} found that another host uses {ip}", message.mac);
            network.report("address-in-use", text, true);
        }
        None
    }

    fn release(&mut self, message: &ClientMessage) -> Option<DhcpAnswer> {
        self.counters.releases += 1;
        if self.leases.address_of(&client_key(message)) == Some(message.ciaddr) {
            self.leases.end(message.ciaddr, self.now);
        }
        None
    }

    fn inform(&mut self, message: &ClientMessage, pools: &[usize]) -> Reply {
        self.counters.informs += 1;
        let in_subnet = |pool: &usize| self.pool(*pool).is_some_and(|pool| pool.subnet.contains(message.ciaddr.into()));
        let pool = pools.iter().copied().find(in_subnet)?;
        let ack = ServerMessage::new(DhcpKind::Ack, message, Ipv4Addr::UNSPECIFIED, self.config.address);
        let message_with_options = self.with_settings(ack, pool);
        Some((ReplyMessage { kind: DhcpKind::Ack, message: message_with_options }, message.ciaddr))
    }

    /// Returns the pools from which a client gets an address, by their numbers.
    fn pools_for(&self, message: &ClientMessage, at: SwitchPort) -> Vec<usize> {
        let with = |choose: &dyn Fn(&DhcpPool) -> bool| -> Vec<usize> {
            self.config.pools.iter().enumerate().filter(|(_, pool)| choose(pool)).map(|(index, _)| index).collect()
        };
        if !message.giaddr.is_unspecified() {
            return with(&|pool| pool.subnet.contains(message.giaddr.into()));
        }
        let named = with(&|pool| pool.names(at));
        if named.is_empty() { with(&|pool| pool.at.is_empty()) } else { named }
    }

    fn pool(&self, index: usize) -> Option<&DhcpPool> {
        self.config.pools.get(index)
    }

    /// Returns the address for a client and its pool: the reserved one, the one that it had, the one that it asks for,
    /// or a free one.
    fn choose(
        &mut self,
        message: &ClientMessage,
        client: &ClientKey,
        pools: &[usize],
        network: &dyn Network,
    ) -> Option<(usize, Ipv4Addr)> {
        let former = self.leases.address_of(client);
        for pool in pools {
            let reserved = self.pool(*pool).and_then(|pool| pool.reserved_for(message.mac));
            let wanted = [reserved, former, message.requested].into_iter().flatten();
            let mut acceptable = wanted.filter(|ip| self.is_acceptable(*pool, *ip, message, client, network));
            if let Some(ip) = acceptable.next() {
                return Some((*pool, ip));
            }
        }
        pools.iter().find_map(|pool| Some((*pool, self.search(*pool, message, client, network)?)))
    }

    /// Returns a free address of a pool's range, from the one behind the last that was given.
    fn search(
        &mut self,
        pool: usize,
        message: &ClientMessage,
        client: &ClientKey,
        network: &dyn Network,
    ) -> Option<Ipv4Addr> {
        let range = self.pool(pool)?.range;
        let start = self.cursors.get(pool).copied()?;
        let mut checks = 0;
        for step in 0..range.len().min(MAX_PROBES) {
            let number = (start + step) % range.len();
            let ip = Ipv4Addr::from_bits(range.first.to_bits() + number);
            *self.cursors.get_mut(pool)? = (number + 1) % range.len();
            if !self.leases.is_open(ip, client, self.now) {
                continue;
            }
            if self.is_acceptable(pool, ip, message, client, network) {
                return Some(ip);
            }
            checks += 1;
            if checks == MAX_HOST_CHECKS {
                return None;
            }
        }
        None
    }

    /// Returns true if a client may have an address of a pool: it is in the range or reserved for the client, not
    /// taken by the network, by another client, or by a host of the map.
    fn is_acceptable(
        &self,
        pool: usize,
        ip: Ipv4Addr,
        message: &ClientMessage,
        client: &ClientKey,
        network: &dyn Network,
    ) -> bool {
        let Some(pool) = self.pool(pool) else { return false };
        let is_given = match pool.reservations.iter().find(|reservation| reservation.ip == ip) {
            Some(reservation) => reservation.mac == message.mac,
            None => pool.range.contains(ip) && pool.reserved_for(message.mac).is_none(),
        };
        let is_taken = ip == self.config.address || pool.router == Some(ip) || pool.dns.contains(&ip);
        is_given
            && !is_taken
            && self.leases.is_open(ip, client, self.now)
            && network.map().host_of_ip(IpAddr::V4(ip)).is_none_or(|host| host.mac == message.mac)
    }

    /// Returns true if a client may have a lease at a port: it has one already, or the port has not its most.
    fn has_room(&mut self, client: &ClientKey, at: SwitchPort) -> bool {
        let is_full = |server: &DhcpServer| server.leases.of_port(at) >= server.config.max_leases_per_port;
        let has_lease = self.leases.address_of(client).is_some();
        if !has_lease && is_full(self) && self.cleaned.is_none_or(|last| last + CLEAN_INTERVAL <= self.now) {
            self.cleaned = Some(self.now);
            self.leases.forget_ended(at, self.now);
        }
        let has_room = has_lease || !is_full(self);
        self.counters.port_full += u64::from(!has_room);
        has_room
    }

    /// Returns an offer or an acknowledgement of an address.
    fn grant(&self, kind: DhcpKind, message: &ClientMessage, pool: usize, ip: Ipv4Addr) -> ReplyMessage {
        let reply = ServerMessage::new(kind, message, ip, self.config.address);
        let seconds = self.pool(pool).map_or(0, |pool| pool.lease_time.0.as_secs());
        // The times at which the client asks again are RFC 2131's, 4.4.5: a half and seven eighths of the lease's.
        let reply = reply
            .with_seconds(option::LEASE_TIME, seconds)
            .with_seconds(option::RENEWAL, seconds / 2)
            .with_seconds(option::REBINDING, seconds * 7 / 8);
        ReplyMessage { kind, message: self.with_settings(reply, pool) }
    }

    /// Adds what a pool tells its hosts. The mask comes before the router (RFC 2132, 3.3).
    fn with_settings(&self, reply: ServerMessage, pool: usize) -> ServerMessage {
        let Some(pool) = self.pool(pool) else { return reply };
        let router: Vec<Ipv4Addr> = pool.router.into_iter().collect();
        let reply = reply
            .with_addresses(option::SUBNET_MASK, &[pool.mask()])
            .with_addresses(option::ROUTER, &router)
            .with_addresses(option::DNS, &pool.dns)
            .with_addresses(option::BROADCAST, &[pool.broadcast()]);
        match &pool.domain {
            Some(domain) => reply.with(option::DOMAIN, domain.as_bytes()),
            None => reply,
        }
    }
}

/// Reply being written, and its kind.
struct ReplyMessage {
    kind: DhcpKind,
    message: ServerMessage,
}

/// Reply and the address of the client, if there is a reply.
type Reply = Option<(ReplyMessage, Ipv4Addr)>;

/// Returns a client's identity.
fn client_key(message: &ClientMessage) -> ClientKey {
    if message.client.is_empty() { ClientKey::Mac(message.mac) } else { ClientKey::Identifier(message.client.clone()) }
}

/// Returns where a reply goes: Ethernet address, IP address, UDP port (RFC 2131, 4.1).
fn destination(message: &ClientMessage, sender: MacAddr, kind: DhcpKind, ip: Ipv4Addr) -> (MacAddr, Ipv4Addr, u16) {
    if !message.giaddr.is_unspecified() {
        return (sender, message.giaddr, SERVER_PORT);
    }
    if kind == DhcpKind::Nak {
        return (MacAddr::BROADCAST, Ipv4Addr::BROADCAST, CLIENT_PORT);
    }
    if !message.ciaddr.is_unspecified() {
        return (message.mac, message.ciaddr, CLIENT_PORT);
    }
    if message.wants_broadcast() {
        return (MacAddr::BROADCAST, Ipv4Addr::BROADCAST, CLIENT_PORT);
    }
    (message.mac, ip, CLIENT_PORT)
}
