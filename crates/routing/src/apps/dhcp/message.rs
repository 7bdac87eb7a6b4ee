//! Messages of DHCP (RFC 2131, 2; options of RFC 2132), read and written.
use std::net::Ipv4Addr;
use weir_packet::MacAddr;

/// Bytes in front of the options (RFC 2131, 2), with the magic cookie.
const FIXED: usize = 240;
/// Value in front of the options (RFC 2131, 3).
const COOKIE: [u8; 4] = [99, 130, 83, 99];
/// Fewest bytes of a message: some hosts drop shorter ones, which BOOTP did not have (RFC 951, 3).
const LEAST: usize = 300;
/// Most bytes of options that are read, with those in the fields `file` and `sname`.
const MAX_OPTION_BYTES: usize = 1500;

/// Numbers of options (RFC 2132).
#[allow(missing_docs, reason = "named by the RFC")]
pub(super) mod option {
    pub(crate) const PAD: u8 = 0;
    pub(crate) const SUBNET_MASK: u8 = 1;
    pub(crate) const ROUTER: u8 = 3;
    pub(crate) const DNS: u8 = 6;
    pub(crate) const HOST_NAME: u8 = 12;
    pub(crate) const DOMAIN: u8 = 15;
    pub(crate) const BROADCAST: u8 = 28;
    pub(crate) const REQUESTED: u8 = 50;
    pub(crate) const LEASE_TIME: u8 = 51;
    pub(crate) const OVERLOAD: u8 = 52;
    pub(crate) const KIND: u8 = 53;
    pub(crate) const SERVER: u8 = 54;
    pub(crate) const MESSAGE: u8 = 56;
    pub(crate) const RENEWAL: u8 = 58;
    pub(crate) const REBINDING: u8 = 59;
    pub(crate) const CLIENT: u8 = 61;
    pub(crate) const END: u8 = 255;
}

/// Kind of a message, option 53 (RFC 2132, 9.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "each is named by the RFC")]
pub(super) enum DhcpKind {
    Discover = 1,
    Offer = 2,
    Request = 3,
    Decline = 4,
    Ack = 5,
    Nak = 6,
    Release = 7,
    Inform = 8,
}

impl DhcpKind {
    fn from_number(number: u8) -> Option<DhcpKind> {
        use DhcpKind::{Ack, Decline, Discover, Inform, Nak, Offer, Release, Request};
        let kinds = [Discover, Offer, Request, Decline, Ack, Nak, Release, Inform];
        kinds.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// Message of a client, as far as the server uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClientMessage {
    pub(super) kind: DhcpKind,
    /// Transaction id.
    pub(super) xid: [u8; 4],
    /// Flags; the highest bit asks for answers to all.
    pub(super) flags: [u8; 2],
    /// Address that the client has, or zero.
    pub(super) ciaddr: Ipv4Addr,
    /// Address of the relay, or zero.
    pub(super) giaddr: Ipv4Addr,
    /// Ethernet address of the client.
    pub(super) mac: MacAddr,
    /// Server that the client means, option 54.
    pub(super) server: Option<Ipv4Addr>,
    /// Address that the client asks for, option 50.
    pub(super) requested: Option<Ipv4Addr>,
    /// Client identifier, option 61; empty if there is none.
    pub(super) client: Vec<u8>,
    /// Name of the host, option 12.
    pub(super) host_name: Option<String>,
}

/// Error of a message that is not one of a client over Ethernet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DhcpMessageError {
    /// The message is cut, has another form, or lacks its kind.
    Malformed,
    /// The message is one of a server.
    FromServer,
}

impl ClientMessage {
    /// Reads a message, the payload of a UDP datagram.
    ///
    /// # Errors
    /// See [`DhcpMessageError`].
    pub(super) fn read(bytes: &[u8]) -> Result<ClientMessage, DhcpMessageError> {
        let (fixed, options) = bytes.split_at_checked(FIXED).ok_or(DhcpMessageError::Malformed)?;
        let field = |at: usize| <[u8; 4]>::try_from(&fixed[at..at + 4]).unwrap_or_default();
        if fixed[0] == 2 {
            return Err(DhcpMessageError::FromServer);
        }
        // Operation 1 is a request; hardware type 1 with 6 bytes of address is Ethernet.
        if fixed[..3] != [1, 1, 6] || field(236) != COOKIE {
            return Err(DhcpMessageError::Malformed);
        }
        let mac = MacAddr([fixed[28], fixed[29], fixed[30], fixed[31], fixed[32], fixed[33]]);
        let mut message = ClientMessage {
            kind: DhcpKind::Discover,
            xid: field(4),
            flags: [fixed[10], fixed[11]],
            ciaddr: field(12).into(),
            giaddr: field(24).into(),
            mac,
            server: None,
            requested: None,
            client: Vec::new(),
            host_name: None,
        };
        let (mut kind, mut overload) = (None, 0);
        read_options(options, |number, value| match (number, value) {
            (option::KIND, [number]) => kind = DhcpKind::from_number(*number),
            (option::OVERLOAD, [which]) => overload = *which,
            (number, value) => message.take_option(number, value),
        })?;
        // Options continue in the fields `file` (1), `sname` (2) or both (RFC 2131, 4.1).
        for (bit, range) in [(1, 108..236), (2, 44..108)] {
            if overload & bit != 0 {
                read_options(&fixed[range], |number, value| message.take_option(number, value))?;
            }
        }
        message.kind = kind.ok_or(DhcpMessageError::Malformed)?;
        Ok(message)
    }

    fn take_option(&mut self, number: u8, value: &[u8]) {
        let address = || <[u8; 4]>::try_from(value).ok().map(Ipv4Addr::from);
        match number {
            option::SERVER => self.server = address(),
            option::REQUESTED => self.requested = address(),
            option::CLIENT => self.client = value.to_vec(),
            option::HOST_NAME => {
                // Some clients send a zero at the end (RFC 2132, 2: it must be removed).
                let text = value.split(|byte| *byte == 0).next().unwrap_or_default();
                let name = std::str::from_utf8(text).ok().filter(|name| weir_units::is_host_name(name));
                self.host_name = name.map(str::to_owned);
            }
            _ => {}
        }
    }

    /// Returns true if the client asks for answers that go to all hosts.
    pub(super) fn wants_broadcast(&self) -> bool {
        self.flags[0] & 0x80 != 0
    }
}

/// Gives each option, its number and value, to `take`.
fn read_options(bytes: &[u8], mut take: impl FnMut(u8, &[u8])) -> Result<(), DhcpMessageError> {
    let mut rest = bytes.get(..MAX_OPTION_BYTES).unwrap_or(bytes);
    while let [number, after @ ..] = rest {
        match (*number, after) {
            (option::END, _) => return Ok(()),
            (option::PAD, _) => rest = after,
            (number, [length, after @ ..]) => {
                let (value, next) = after.split_at_checked((*length).into()).ok_or(DhcpMessageError::Malformed)?;
                take(number, value);
                rest = next;
            }
            _ => return Err(DhcpMessageError::Malformed),
        }
    }
    Ok(())
}

/// Answer of the server, being written.
#[derive(Debug, Clone)]
pub(super) struct ServerMessage(Vec<u8>);

impl ServerMessage {
    /// Begins the answer to a client, with the address that it gets, or zero.
    pub(super) fn new(kind: DhcpKind, to: &ClientMessage, address: Ipv4Addr, server: Ipv4Addr) -> ServerMessage {
        let mut bytes = vec![2, 1, 6, 0];
        bytes.extend(to.xid);
        bytes.extend([0, 0]);
        bytes.extend(to.flags);
        let ciaddr = if kind == DhcpKind::Ack { to.ciaddr } else { Ipv4Addr::UNSPECIFIED };
        for ip in [ciaddr, address, Ipv4Addr::UNSPECIFIED, to.giaddr] {
            bytes.extend(ip.octets());
        }
        bytes.extend(to.mac.0);
        bytes.resize(FIXED - COOKIE.len(), 0);
        bytes.extend(COOKIE);
        let mut message = ServerMessage(bytes).with(option::KIND, &[kind as u8]).with(option::SERVER, &server.octets());
        if !to.client.is_empty() {
            // RFC 6842, 3: the identifier is returned.
            message = message.with(option::CLIENT, &to.client);
        }
        message
    }

    /// Adds an option; a value of more than 255 bytes is cut.
    pub(super) fn with(mut self, number: u8, value: &[u8]) -> ServerMessage {
        let value = &value[..value.len().min(u8::MAX.into())];
        self.0.extend([number, u8::try_from(value.len()).unwrap_or(u8::MAX)]);
        self.0.extend(value);
        self
    }

    /// Adds an option that is a number of seconds.
    pub(super) fn with_seconds(self, number: u8, seconds: u64) -> ServerMessage {
        self.with(number, &u32::try_from(seconds).unwrap_or(u32::MAX).to_be_bytes())
    }

    /// Adds an option that is a list of addresses, unless it is empty.
    pub(super) fn with_addresses(self, number: u8, addresses: &[Ipv4Addr]) -> ServerMessage {
        let bytes: Vec<u8> = addresses.iter().flat_map(|ip| ip.octets()).collect();
        if bytes.is_empty() { self } else { self.with(number, &bytes) }
    }

    /// Returns the bytes of the message.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.0.push(option::END);
        let length = self.0.len().max(LEAST);
        self.0.resize(length, 0);
        self.0
    }
}
