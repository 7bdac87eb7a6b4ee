//! Reads and writes Open vSwitch's extensions, which use Nicira's experimenter number
//! (`include/openflow/nicira-ext.h`).
pub(crate) mod action;
pub(crate) mod encap;
mod learn;
pub(crate) mod message;
pub(crate) mod monitor;
pub(crate) mod multipart;
pub(crate) mod nxm;
mod packet_in;

use crate::model::Action;
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, action::padded};

/// Nicira's experimenter number.
pub(crate) const NICIRA: u32 = 0x0000_2320;
/// Action type of experimenter actions in every version.
const EXPERIMENTER: u16 = 0xffff;

const ENCAP: u16 = 46;
const DECAP: u16 = 47;
const DEC_NSH_TTL: u16 = 48;

/// Reads an experimenter action after its experimenter number `id`. An action that weir does not know stays
/// uninterpreted.
pub(crate) fn decode_action(id: u32, action: &mut WireReader<'_>) -> Decoded<Action> {
    let mut inside = action.fork();
    if id == NICIRA
        && let Some(known) = decode_known(&mut inside)?
    {
        action.read_rest();
        return Ok(known);
    }
    Ok(Action::Experimenter { id, data: action.read_rest() })
}

/// Reads a Nicira action; returns `None` if weir does not know its subtype.
fn decode_known(action: &mut WireReader<'_>) -> Decoded<Option<Action>> {
    let subtype = action.read_u16()?;
    Ok(Some(match subtype {
        ENCAP => encap::decode(action)?,
        DECAP => encap::decode_decap(action)?,
        DEC_NSH_TTL => {
            action.skip(6)?;
            action.finish()?;
            Action::DecNshTtl
        }
        _ => return Ok(None),
    }))
}

/// Writes an encap, decap or decrement of the NSH TTL.
pub(crate) fn encode_action(action: &Action, writer: &mut WireWriter<'_>) -> Encoded {
    match action {
        Action::Encap(header) => extension(ENCAP, writer, |writer| encap::encode(header, writer)),
        Action::Decap(wanted) => extension(DECAP, writer, |writer| {
            encap::encode_decap(*wanted, writer);
            Ok(())
        }),
        Action::DecNshTtl => extension(DEC_NSH_TTL, writer, |writer| {
            writer.write_zeros(6);
            Ok(())
        }),
        other => Err(writer.cannot(format!("the action {other:?}"))),
    }
}

/// Writes a Nicira action: `body` writes what follows the subtype.
fn extension(subtype: u16, writer: &mut WireWriter<'_>, body: impl FnOnce(&mut WireWriter<'_>) -> Encoded) -> Encoded {
    padded(EXPERIMENTER, writer, |writer| {
        writer.write_u32(NICIRA);
        writer.write_u16(subtype);
        body(writer)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Version;
    use crate::model::error::BadAction;
    use crate::text;
    use crate::wire::action::element;
    use weir_packet::Field;

    /// Actions as `ovs-ofctl` of Open vSwitch 3.1 sends them.
    const SENT: [(&str, &str); 6] = [
        ("encap(nsh(md_type=1))", "ffff0018 00002320 002e0000 0001894f 0004010501000000"),
        ("encap(nsh)", "ffff0010 00002320 002e0000 0001894f"),
        (
            "encap(nsh(md_type=2,tlv(0x1000,10,0x123456)))",
            "ffff0028 00002320 002e0000 0001894f 0004010502000000 0004021010000a03 1234560000000000",
        ),
        ("encap(ethernet)", "ffff0010 00002320 002e0000 00000000"),
        ("decap()", "ffff0010 00002320 002f0000 0000fffe"),
        ("dec_nsh_ttl", "ffff0010 00002320 00300000 00000000"),
    ];

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    fn decode(bytes: &[u8]) -> Decoded<Action> {
        let mut reader = WireReader::new(bytes, "actions", BadAction::BadLen);
        let (_, mut action) = element(&mut reader)?;
        let id = action.read_u32()?;
        decode_action(id, &mut action)
    }

    #[test]
    fn actions_of_open_vswitch_both_ways() {
        for (words, hex) in SENT {
            let action = decode(&bytes(hex)).unwrap();
            assert_eq!(text::format_actions(std::slice::from_ref(&action), Version::V13), words);
            let mut out = Vec::new();
            encode_action(&action, &mut WireWriter::new(&mut out, Version::V13)).unwrap();
            assert_eq!(out, bytes(hex), "{words}");
        }
    }

    /// Setting the tunnel id has one form in the model for these versions: the set-field that they encode.
    #[test]
    fn later_versions_set_a_tunnel_by_its_field() {
        for hex in ["ffff0010 00002320 00020000 00000005", "ffff0018 00002320 00090000 00000000 00000000 00000005"] {
            for version in [Version::V13, Version::V14, Version::V15] {
                let bytes = bytes(hex);
                let mut reader = WireReader::new(&bytes, "actions", BadAction::BadLen);
                reader.set_version(version);
                let action = crate::v13::action::decode(&mut reader).unwrap();
                assert_eq!(action, Action::SetField { field: Field::TunnelId, value: 5 }, "{version:?}");
            }
        }
    }

    #[test]
    fn damaged_actions_are_refused_or_something_else() {
        for (words, hex) in SENT {
            let good = bytes(hex);
            for at in 8..good.len() {
                for byte in [0, 1, 4, 8, 0x7f, 0xff] {
                    let mut bad = good.clone();
                    bad[at] = byte;
                    let _ = decode(&bad);
                }
            }
            for length in (16..good.len()).step_by(8) {
                let mut cut = good[..length].to_vec();
                cut[3] = u8::try_from(length).unwrap();
                assert_ne!(decode(&cut).ok(), decode(&good).ok(), "{words} cut to {length}");
            }
        }
        let refused = |hex: &str| decode(&bytes(hex)).unwrap_err().error;
        assert_eq!(refused("ffff0010 00002320 002e0000 00010800"), BadAction::BadArgument.into(), "encap(ipv4)");
        let property = |hex: &str| refused(&format!("ffff0018 00002320 002e0000 0001894f {hex}"));
        assert_eq!(property("0004010401000000"), BadAction::BadLen.into());
        assert_eq!(property("0004010901000000"), BadAction::BadLen.into());
        assert_eq!(property("0003010501000000"), BadAction::BadArgument.into());
    }
}
