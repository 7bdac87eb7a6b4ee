//! Leases over a restart of the controller: as JSON, with the time that is left instead of times of a clock.
use super::DhcpServer;
use super::leases::{ClientKey, Lease, LeaseState};
use crate::map::SwitchPort;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::time::Duration;
use weir_packet::MacAddr;
use weir_units::Instant;

/// Longest client identifier in bytes (RFC 2132, 2: the length is one byte).
const MAX_IDENTIFIER: usize = 255;

/// Leases of a server.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `leases`")]
struct KeptLeases {
    leases: Vec<KeptLease>,
}

/// Lease of an address.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptLease {
    ip: Ipv4Addr,
    /// Ethernet address, or `id:` and the client identifier in hexadecimal.
    client: String,
    state: KeptLeaseState,
    at: SwitchPort,
    /// Seconds until its end, rounded up; 0 for one that has ended, whose client gets the address again if it is free.
    left_s: u64,
}

/// State of a lease. Offers are not kept: their clients ask again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum KeptLeaseState {
    Bound,
    Declined,
}

impl DhcpServer {
    /// Returns the leases for [`DhcpServer::restore_leases`].
    pub(super) fn kept_leases(&self, now: Instant) -> Option<serde_json::Value> {
        let kept = |(ip, lease): (Ipv4Addr, &Lease)| {
            let state = match lease.state {
                LeaseState::Offered => return None,
                LeaseState::Bound => KeptLeaseState::Bound,
                LeaseState::Declined => KeptLeaseState::Declined,
            };
            let left_s = lease.until.since(now).as_secs_f64().ceil();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the time of a lease")]
            Some(KeptLease { ip, client: written(&lease.client), state, at: lease.at, left_s: left_s as u64 })
        };
        let leases = self.leases.iter().filter_map(kept).collect();
        serde_json::to_value(KeptLeases { leases }).ok()
    }

    /// Takes leases back that were kept `elapsed` ago. Those of addresses that no pool has now are left out.
    pub(super) fn restore_leases(
        &mut self,
        now: Instant,
        elapsed: Duration,
        kept: &serde_json::Value,
    ) -> Result<(), String> {
        let kept = KeptLeases::deserialize(kept).map_err(|error| error.to_string())?;
        self.now = now;
        for KeptLease { ip, client, state, at, left_s } in kept.leases {
            let client = read(&client)
                .ok_or_else(|| format!("lease of {ip}: found the client `{client}`, expected an address or id:HEX"))?;
            if !self.config.pools.iter().any(|pool| pool.gives(ip)) {
                continue;
            }
            let longest = super::LEASE_TIMES[1].as_secs();
            if left_s > longest {
                return Err(format!("lease of {ip}: found {left_s} s left, expected at most {longest} s"));
            }
            let until = now + Duration::from_secs(left_s).saturating_sub(elapsed);
            let (state, has_client) = match state {
                KeptLeaseState::Bound => (LeaseState::Bound, true),
                KeptLeaseState::Declined => (LeaseState::Declined, false),
            };
            let twice = self.leases.get(ip).is_some() || has_client && self.leases.address_of(&client).is_some();
            if twice {
                return Err(format!("lease of {ip}: found it or its client twice, expected each once"));
            }
            self.leases.restore(ip, Lease { client, state, at, until });
        }
        Ok(())
    }
}

fn written(client: &ClientKey) -> String {
    match client {
        ClientKey::Mac(mac) => mac.to_string(),
        ClientKey::Identifier(bytes) => {
            let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
            format!("id:{}", digits.collect::<String>())
        }
    }
}

fn read(text: &str) -> Option<ClientKey> {
    let Some(digits) = text.strip_prefix("id:") else { return text.parse::<MacAddr>().ok().map(ClientKey::Mac) };
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Vec<u8> = pairs.iter().map(byte).collect::<Option<_>>()?;
    (1..=MAX_IDENTIFIER).contains(&bytes.len()).then_some(ClientKey::Identifier(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_come_back() {
        for client in [ClientKey::Mac(MacAddr([2, 0, 0, 0, 0, 7])), ClientKey::Identifier(vec![1, 0xff, 0])] {
            assert_eq!(read(&written(&client)), Some(client));
        }
        for wrong in ["", "id:", "id:0", "id:xy", "id:+1", "02:00", "ID:00"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
