//! Tunnel ports over IPv4, through the host's own network stack.
//!
//! * `vxlan:NAME,remote=ADDRESS`: Ethernet frames in UDP (RFC 7348);
//! * `vxlan-gpe:NAME,remote=ADDRESS`: also packets without Ethernet header: IPv4, IPv6, MPLS, network service
//!   headers;
//! * `gre:NAME,remote=ADDRESS`: Ethernet frames in GRE (RFC 2784, RFC 2890), with `packet_type=ptap` also other
//!   packets.
//!
//! | option | what | default |
//! |---|---|---|
//! | `remote` | address of the other end, or `flow`: sends to each packet's `tun_dst`, receives from any | required |
//! | `local` | local address, for sending and receiving | any of the machine's |
//! | `key` | network identifier (24 bits) or GRE key (32 bits), or `flow`: sends `tun_id`, takes any | 0; GRE: none |
//! | `port` | UDP port, at both ends | 4789; GPE: 4790 |
//! | `packet_type` | `legacy_l2`: Ethernet frames only; `ptap`: any packet | `legacy_l2`; GPE: `ptap` |
//! | `df` | whether routers may not fragment sent datagrams | on |
//! | `csum` | whether sent datagrams carry a UDP or GRE checksum | off |
//! | `ttl` | time to live of sent datagrams | 64 |
//!
//! `tun_id`, `tun_src` and `tun_dst` of a received packet describe its tunnel. A datagram that is damaged, of an
//! unknown kind, from an unknown sender or with a key of no port counts as a receive error of one of the ports that
//! share the socket. The outer checksum is verified if there is one. Super-frames are cut before they enter the
//! tunnel, to the segment size that the sender requested: hosts behind a tunnel need an MTU that leaves room for the
//! tunnel's headers (`mtu` of the port).
mod endpoint;
mod header;

use crate::event::EventFd;
use crate::interface::refused;
use crate::spec::{PortOptions, synthetic_mac};
use crate::sys::datagrams::{DatagramSendSlots, HEADER_MAX, OuterHeader};
use crate::sys::{errno, socket};
use crate::{FrameCounters, LinkState, Port, PortError, PortInfo, PortResult, ReceiveReadiness, unfinished};
use endpoint::{TunnelEndpoint, TunnelEndpointConfig, TunnelKeySelector, TunnelSelector, TunnelSendOptions};
use header::Encapsulation;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use weir_packet::{Frame, FramePool};
use weir_units::Instant;

const OPTIONS: [&str; 8] = ["remote", "local", "key", "port", "packet_type", "df", "csum", "ttl"];
/// UDP ports assigned by IANA.
const VXLAN_PORT: u16 = 4789;
const VXLAN_GPE_PORT: u16 = 4790;
/// Assumed MTU in bytes while there is no route.
const ETHERNET_MTU: u32 = 1500;
/// Length in bytes of an Ethernet header inside the tunnel.
const INNER_HEADER: u32 = 14;
/// Maximum number of consecutive retries on a full queue before the rest of the batch is dropped.
const RETRIES_MAX: u32 = 3;

/// Kind of a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the module's page says it")]
pub enum TunnelKind {
    Vxlan,
    VxlanGpe,
    Gre,
}

/// A port that sends to and receives from the other end of a tunnel.
pub struct TunnelPort {
    info: PortInfo,
    encapsulation: Encapsulation,
    endpoint: Arc<TunnelEndpoint>,
    wanted: TunnelSelector,
    udp_port: u16,
    checksum: bool,
    any_packet_type: bool,
    /// Descriptor that is readable when the socket is, or when another port read a frame for this one.
    ready: OwnedFd,
    sending: Box<DatagramSendSlots>,
    headings: Vec<OuterHeader>,
    finished: Vec<Frame>,
    counters: FrameCounters,
}

impl TunnelPort {
    /// Opens a tunnel in the calling thread's network namespace.
    ///
    /// # Errors
    /// The options are not valid, another port has the same tunnel, or the system refuses (GRE needs `CAP_NET_RAW`).
    pub fn open(kind: TunnelKind, name: &str, options: &PortOptions) -> Result<Self, PortError> {
        options.expect_only(&OPTIONS)?;
        if name.is_empty() {
            return Err(options.error("expected KIND:NAME,remote=ADDRESS with a name that controllers see"));
        }
        let (encapsulation, default_port) = match kind {
            TunnelKind::Vxlan => (Encapsulation::Vxlan, VXLAN_PORT),
            TunnelKind::VxlanGpe => (Encapsulation::VxlanGpe, VXLAN_GPE_PORT),
            TunnelKind::Gre => (Encapsulation::Gre, 0),
        };
        let udp_port = udp_port(kind, default_port, options)?;
        let wanted = TunnelSelector { remote: remote(options)?, key: key(encapsulation, options)? };
        let any_packet_type = any_packet_type(kind, options)?;
        let local = address(options, "local")?.unwrap_or(Ipv4Addr::UNSPECIFIED);
        let checksum = options.flag("csum", false)?;
        let ttl = options.get("ttl", "a number from 1 to 255")?.unwrap_or(64);
        let sending =
            TunnelSendOptions { whole: options.flag("df", true)?, checksum: checksum && kind != TunnelKind::Gre, ttl };
        let place = TunnelEndpointConfig { encapsulation, local, port: udp_port, sending };
        let needs = if kind == TunnelKind::Gre { "CAP_NET_RAW" } else { "" };
        let failed = |tried: &'static str| move |source| refused(options, tried, source, needs);
        let endpoint = TunnelEndpoint::at(&place).map_err(failed("open the tunnel's socket"))?;
        let wake = Arc::new(EventFd::new().map_err(failed("wait for frames"))?);
        let both = [endpoint.socket.as_fd(), wake.as_fd()].into_iter();
        let ready = socket::any_of(both, None).map_err(failed("wait for frames"))?;
        if !endpoint.join(wanted, any_packet_type, wake) {
            return Err(
                options.error("another port has this tunnel: the same kind, remote and key; give one another key")
            );
        }
        let spec = options.spec().to_owned();
        let mtu = route_mtu(wanted.remote).saturating_sub(encapsulation.overhead() + INNER_HEADER);
        Ok(TunnelPort {
            info: PortInfo { mac: synthetic_mac(&spec), spec, name: name.to_owned(), mtu },
            encapsulation,
            endpoint,
            wanted,
            udp_port,
            checksum,
            any_packet_type,
            ready,
            sending: DatagramSendSlots::new(),
            headings: Vec::new(),
            finished: Vec::new(),
            counters: FrameCounters::default(),
        })
    }

    /// Returns the header in front of a frame. `None` if the frame cannot be sent: the tunnel does not carry its
    /// packet type, or it has no destination.
    fn heading(&self, frame: &Frame) -> Option<OuterHeader> {
        let destination = self.wanted.remote.unwrap_or(Ipv4Addr::from_bits(frame.tunnel.dst));
        let key = match self.wanted.key {
            TunnelKeySelector::Any => Some(frame.tunnel.id),
            TunnelKeySelector::Exactly(key) => key,
        };
        let payload = (self.checksum && self.encapsulation == Encapsulation::Gre).then_some(frame.bytes());
        let mut header = [0; HEADER_MAX];
        let length = self.encapsulation.write(&mut header, key, frame.packet_type(), payload)?;
        let is_carried = frame.packet_type().is_ethernet() || self.any_packet_type;
        let heading = OuterHeader { header, length, destination, port: self.udp_port };
        (is_carried && !destination.is_unspecified()).then_some(heading)
    }

    /// Sends all frames, each after its heading, as far as possible, and counts them.
    fn send(&mut self, frames: &[Frame]) {
        let (mut sent, mut retries) = (0, 0);
        while sent < frames.len() {
            match self.sending.send(self.endpoint.socket.as_fd(), &self.headings[sent..], &frames[sent..]) {
                Ok(count) => {
                    self.counters.note_sent(&frames[sent..sent + count]);
                    sent += count;
                    retries = 0;
                }
                Err(error) => match errno(&error) {
                    libc::EINTR => {}
                    libc::ENOBUFS | libc::EAGAIN if retries < RETRIES_MAX => retries += 1,
                    libc::ENOBUFS | libc::EAGAIN => {
                        self.counters.tx_full += (frames.len() - sent) as u64;
                        return;
                    }
                    libc::EMSGSIZE => {
                        self.counters.tx_too_long += 1;
                        sent += 1;
                    }
                    // For example no route to the other end, or a firewall.
                    _ => {
                        self.counters.tx_errors += 1;
                        sent += 1;
                    }
                },
            }
        }
    }
}

impl Port for TunnelPort {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn receive(&mut self, now: Instant, pool: &mut FramePool, batch: &mut Vec<Frame>, max: usize) -> PortResult {
        let before = batch.len();
        let found = self.endpoint.receive(self.wanted, now, pool, batch, max);
        self.counters.rx_errors += found.errors;
        self.counters.rx_packets += (batch.len() - before) as u64;
        self.counters.rx_bytes += batch[before..].iter().map(|frame| frame.len() as u64).sum::<u64>();
        Ok(())
    }

    fn transmit(&mut self, _now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> PortResult {
        self.counters.tx_errors += unfinished::finish(frames, &mut self.finished, pool);
        let mut headings = std::mem::take(&mut self.headings);
        headings.clear();
        let mut at = 0;
        while at < frames.len() {
            match self.heading(&frames[at]) {
                Some(heading) => {
                    headings.push(heading);
                    at += 1;
                }
                None => {
                    self.counters.tx_errors += 1;
                    pool.give(frames.remove(at));
                }
            }
        }
        self.headings = headings;
        self.send(frames);
        pool.give_burst(frames);
        Ok(())
    }

    fn arm(&mut self) -> ReceiveReadiness {
        if self.endpoint.has_waiting(self.wanted) { ReceiveReadiness::Now } else { ReceiveReadiness::OnDescriptor }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.ready.as_fd())
    }

    fn takes_any_packet_type(&self) -> bool {
        self.any_packet_type
    }

    /// Returns a link that is up, because the other end is not queried.
    fn link(&mut self) -> LinkState {
        LinkState { up: true, speed: None }
    }

    fn counters(&self) -> FrameCounters {
        FrameCounters { rx_missed: self.endpoint.missed(self.wanted), ..self.counters }
    }
}

impl Drop for TunnelPort {
    fn drop(&mut self) {
        self.endpoint.leave(self.wanted);
    }
}

fn udp_port(kind: TunnelKind, default: u16, options: &PortOptions) -> Result<u16, PortError> {
    let expected = "a UDP port from 1 to 65535";
    let port = options.get("port", expected)?;
    match (kind, port) {
        (TunnelKind::Gre, Some(_)) => Err(options.error("option port: GRE has no ports; remove it")),
        (_, Some(0)) => Err(options.error(format!("option port: found `0`, expected {expected}"))),
        (_, port) => Ok(port.unwrap_or(default)),
    }
}

/// Parses the other end's address; `None` for `flow`.
fn remote(options: &PortOptions) -> Result<Option<Ipv4Addr>, PortError> {
    match options.text("remote") {
        None => {
            Err(options.error("option remote is missing: add remote=ADDRESS, or remote=flow to set tun_dst per packet"))
        }
        Some("flow") => Ok(None),
        Some(_) => address(options, "remote"),
    }
}

fn address(options: &PortOptions, name: &str) -> Result<Option<Ipv4Addr>, PortError> {
    let address = options.get::<Ipv4Addr>(name, "an IPv4 address such as 192.0.2.1")?;
    match address.filter(|address| address.is_unspecified() || address.is_multicast() || address.is_broadcast()) {
        Some(wrong) => {
            Err(options.error(format!("option {name}: found `{wrong}`, expected the address of one machine")))
        }
        None => Ok(address),
    }
}

fn key(encapsulation: Encapsulation, options: &PortOptions) -> Result<TunnelKeySelector, PortError> {
    let absent = if encapsulation == Encapsulation::Gre { None } else { Some(0) };
    if options.text("key") == Some("flow") {
        return Ok(TunnelKeySelector::Any);
    }
    let bits = encapsulation.key_bits();
    let most = u32::MAX >> (32 - bits);
    let expected = format!("a number from 0 to {most}, or flow");
    match options.get::<u32>("key", &expected)? {
        None => Ok(TunnelKeySelector::Exactly(absent)),
        Some(key) if key <= most => Ok(TunnelKeySelector::Exactly(Some(key))),
        Some(key) => Err(options.error(format!("option key: found `{key}`, expected {expected}"))),
    }
}

fn any_packet_type(kind: TunnelKind, options: &PortOptions) -> Result<bool, PortError> {
    match (options.text("packet_type"), kind) {
        (None, kind) => Ok(kind == TunnelKind::VxlanGpe),
        (Some("legacy_l2"), _) => Ok(false),
        (Some("ptap"), TunnelKind::Vxlan) => {
            Err(options.error("option packet_type: VXLAN carries Ethernet frames only; use vxlan-gpe"))
        }
        (Some("ptap"), _) => Ok(true),
        (Some(found), _) => {
            Err(options.error(format!("option packet_type: found `{found}`, expected legacy_l2 or ptap")))
        }
    }
}

/// Returns the MTU of the route to the other end in bytes; 1500 if there is no route.
fn route_mtu(remote: Option<Ipv4Addr>) -> u32 {
    let ask = |remote| -> io::Result<i32> {
        let probe = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        probe.connect((remote, VXLAN_PORT))?;
        socket::get(probe.as_fd(), libc::IPPROTO_IP, libc::IP_MTU)
    };
    remote.and_then(|remote| ask(remote).ok()).and_then(|mtu| u32::try_from(mtu).ok()).unwrap_or(ETHERNET_MTU)
}

#[cfg(test)]
mod tests;
