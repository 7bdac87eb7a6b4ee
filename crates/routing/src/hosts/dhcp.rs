//! Reads what DHCP messages say of a client (RFC 2131, 2; RFC 2132, 3.14 and 9.6).
use std::net::Ipv4Addr;
use weir_packet::MacAddr;

/// UDP ports of servers and clients.
pub(super) const SERVER_PORT: u16 = 67;
pub(super) const CLIENT_PORT: u16 = 68;
/// Bytes before the options, of which the last four are the magic cookie.
const FIXED_BYTES: usize = 240;
const MAGIC: [u8; 4] = [99, 130, 83, 99];
/// Operations of BOOTP.
const REQUEST_OF_CLIENT: u8 = 1;
const REPLY_OF_SERVER: u8 = 2;
/// Numbers of options: padding, host name, type of the message, end.
const PAD: u8 = 0;
const HOST_NAME: u8 = 12;
const MESSAGE_TYPE: u8 = 53;
const END: u8 = 255;
/// Types of messages.
const DHCP_REQUEST: u8 = 3;
const DHCP_ACK: u8 = 5;
/// Most characters of a host name; longer ones are ignored (RFC 1123, 2.1).
const MAX_NAME: usize = 63;

/// Statement of a DHCP message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DhcpMessage {
    /// A client asks; `is_request` is true if it asks for an address that a server has offered, or that it has.
    FromClient { client: MacAddr, transaction: u32, is_request: bool, name: Option<String> },
    /// A server has given an address to a client.
    Acknowledged { client: MacAddr, transaction: u32, ip: Ipv4Addr },
}

/// Returns what a message says, the payload of UDP; `None` if it is malformed or says nothing of an address or a name.
pub(super) fn read(payload: &[u8]) -> Option<DhcpMessage> {
    let (fixed, options) = payload.split_at_checked(FIXED_BYTES)?;
    let [operation, 1, 6, _, transaction @ ..] = *fixed.first_chunk::<8>()? else { return None };
    let client = MacAddr(*fixed.get(28..)?.first_chunk()?);
    let given = Ipv4Addr::from(*fixed.get(16..)?.first_chunk::<4>()?);
    if !fixed.ends_with(&MAGIC) {
        return None;
    }
    let (kind, name) = read_options(options)?;
    let transaction = u32::from_be_bytes(transaction);
    match (operation, kind) {
        (REQUEST_OF_CLIENT, _) => {
            Some(DhcpMessage::FromClient { client, transaction, is_request: kind == DHCP_REQUEST, name })
        }
        (REPLY_OF_SERVER, DHCP_ACK) if !given.is_unspecified() => {
            Some(DhcpMessage::Acknowledged { client, transaction, ip: given })
        }
        _ => None,
    }
}

/// Returns the type of the message and the host name; `None` if the options are malformed or have no type. Options in
/// the fields of BOOTP (option 52) are not read.
fn read_options(mut options: &[u8]) -> Option<(u8, Option<String>)> {
    let (mut kind, mut name) = (None, None);
    loop {
        options = match options {
            [] | [END, ..] => return kind.map(|kind| (kind, name)),
            [PAD, rest @ ..] => rest,
            [option, length, rest @ ..] => {
                let (value, rest) = rest.split_at_checked(usize::from(*length))?;
                match (*option, value) {
                    (MESSAGE_TYPE, [value]) => kind = Some(*value),
                    (HOST_NAME, value) => name = readable_name(value),
                    _ => {}
                }
                rest
            }
            [_] => return None,
        };
    }
}

/// Returns a name of letters, digits, hyphens, underscores and dots; `None` for others, which could mislead a reader.
pub(super) fn readable_name(bytes: &[u8]) -> Option<String> {
    // Some clients end the name with a zero, against RFC 2132.
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    let is_readable = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let fits = (1..=MAX_NAME).contains(&bytes.len()) && bytes.iter().all(is_readable);
    fits.then(|| bytes.iter().map(|byte| char::from(*byte)).collect())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns the payload of a message.
    pub(crate) fn message(operation: u8, client: MacAddr, given: Ipv4Addr, options: &[u8]) -> Vec<u8> {
        let mut payload = vec![operation, 1, 6, 0, 0, 0, 0, 77];
        payload.extend([0; 8]);
        payload.extend(given.octets());
        payload.extend([0; 8]);
        payload.extend(client.0);
        payload.resize(FIXED_BYTES - 4, 0);
        payload.extend(MAGIC);
        payload.extend(options);
        payload
    }

    const CLIENT: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const GIVEN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);

    #[test]
    fn names_and_addresses_are_read() {
        let asked = message(1, CLIENT, Ipv4Addr::UNSPECIFIED, &[0, 53, 1, 3, 12, 4, b'h', b'-', b'1', 0, 255, 9, 9]);
        let name = Some("h-1".to_owned());
        let from_client = DhcpMessage::FromClient { client: CLIENT, transaction: 77, is_request: true, name };
        assert_eq!(read(&asked), Some(from_client));
        let given = message(2, CLIENT, GIVEN, &[53, 1, 5, 255]);
        assert_eq!(read(&given), Some(DhcpMessage::Acknowledged { client: CLIENT, transaction: 77, ip: GIVEN }));
    }

    #[test]
    fn offers_pieces_and_odd_names_say_nothing() {
        assert_eq!(read(&message(2, CLIENT, GIVEN, &[53, 1, 2, 255])), None, "an offer");
        assert_eq!(read(&message(2, CLIENT, GIVEN, &[255])), None, "plain BOOTP");
        let whole = message(2, CLIENT, GIVEN, &[53, 1, 5]);
        for length in 0..whole.len() {
            assert_eq!(read(&whole[..length]), None, "{length}");
        }
        for odd in [&b""[..], b"a b", b"\xff", &[b'x'; 64], b"a\0b"] {
            assert_eq!(readable_name(odd), None, "{odd:?}");
        }
    }
}
