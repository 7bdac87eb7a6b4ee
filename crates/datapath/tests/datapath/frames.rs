//! Builds frames from text in the syntax of testdata/pipeline/README.md.
use std::str::FromStr;
use weir_packet::MacAddr;
use weir_packet::craft::{FrameBuilder, TcpHeader};

/// Returns the frame that a text describes. Panics with the part that is wrong.
pub(crate) fn frame(text: &str) -> Vec<u8> {
    if let Some(digits) = text.strip_prefix("hex ") {
        let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        return pairs.map(|pair| u8::from_str_radix(pair, 16).expect(text)).collect();
    }
    let mut headers = text.split(" / ");
    let ethernet = headers.next().and_then(|header| header.strip_prefix("eth ")).expect(text);
    let (source, destination) = pair(ethernet, mac);
    let craft = FrameBuilder::ethernet(destination, source).payload(&[0; 18]);
    headers.fold(craft, header).build()
}

fn header(craft: FrameBuilder, text: &str) -> FrameBuilder {
    let words: Vec<&str> = text.split(' ').collect();
    let option = |name| words.iter().position(|word| *word == name).map(|at| words[at + 1]);
    let number = |name, otherwise| option(name).map_or(otherwise, |word| word.parse().expect(text));
    let first = words[1];
    match words[0] {
        "vlan" => {
            let tpid = option("tpid").map_or(0x8100, |word| u16::from_str_radix(word, 16).expect(text));
            craft.vlan(tpid, first.parse().expect(text), number("pcp", 0))
        }
        "mpls" => craft.mpls(first.parse().expect(text), number("tc", 0), number("ttl", 64)),
        "type" => craft.ether_type(u16::from_str_radix(first, 16).expect(text)),
        "arp" => {
            let (sender, target) = pair(words[2], |end| {
                let (mac_text, ip) = end.split_once('/').expect(text);
                (mac(mac_text), ip.parse().expect(text))
            });
            craft.arp(first.parse().expect(text), sender, target)
        }
        "ipv4" | "ipv6" => {
            let craft = craft.ttl(number("ttl", 64)).traffic_class(number("tos", 0));
            if words[0] == "ipv4" {
                let (source, destination) = pair(first, parse);
                craft.ipv4(source, destination)
            } else {
                let (source, destination) = pair(first, parse);
                craft.ipv6(source, destination)
            }
        }
        "udp" => {
            let (source, destination) = pair(first, parse);
            craft.udp(source, destination)
        }
        "sctp" => {
            let (source, destination) = pair(first, parse);
            craft.sctp(source, destination)
        }
        "tcp" => {
            let (source, destination) = pair(first, parse);
            craft.tcp(TcpHeader { source, destination, flags: 16, ..TcpHeader::default() })
        }
        "icmp" => craft.icmp(first.parse().expect(text), words[2].parse().expect(text), [0; 4]),
        "proto" => craft.ip_proto(first.parse().expect(text)),
        "data" => craft.payload(&vec![7; first.parse().expect(text)]),
        _ => panic!("found `{text}`, expected a header of testdata/pipeline/README.md"),
    }
}

fn pair<T>(text: &str, read: impl Fn(&str) -> T) -> (T, T) {
    let (source, destination) = text.split_once('>').expect(text);
    (read(source), read(destination))
}

fn parse<T: FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().expect(text)
}

fn mac(text: &str) -> MacAddr {
    if text.contains(':') { parse(text) } else { crate::bench::mac(parse(text)) }
}
