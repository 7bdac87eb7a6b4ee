//! Checks traffic between hosts.
use super::{MAX_DURATION, ScenarioResult, SourceFile, duration, find, flows, udp};
use crate::document::{self, TrafficKindToml};
use crate::networks::ScenarioNetwork;
use crate::{ScenarioHost, TrafficExpectation, TrafficItem, TrafficKind};
use std::ops::Range;
use std::time::Duration;
use toml::Spanned;
use weir_packet::IpNet;
use weir_traffic::OfferedPackets;

pub(super) fn traffic(
    source: &SourceFile<'_>,
    item: Spanned<document::TrafficToml>,
    hosts: &[ScenarioHost],
    networks: &[ScenarioNetwork],
    default_duration: Duration,
) -> ScenarioResult<TrafficItem> {
    let span = item.span();
    let item = item.into_inner();
    let known: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    let from = find(source, "traffic: from", &item.from, known.clone())?;
    let to = find(source, "traffic: to", &item.to, known)?;
    if from == to {
        return Err(source.error(span, format!("traffic: found from and to `{}`, expected two hosts", hosts[to].name)));
    }
    let ipv6 = item.ipv6.as_ref().is_some_and(|ipv6| *ipv6.as_ref());
    let address = address(source, &span, &hosts[from], &hosts[to], ipv6)?;
    let same_tenant = hosts[from].tenant == hosts[to].tenant;
    let joins = |network: &ScenarioNetwork| network.links_between(&hosts[from].name, &hosts[to].name).is_some();
    let joined = networks.is_empty() || networks.iter().any(joins);
    let reaches = same_tenant && joined;
    let expect = item.expect.unwrap_or(if reaches { TrafficExpectation::Reach } else { TrafficExpectation::Isolated });
    let start = match &item.start {
        Some(start) if start.as_ref().0 > MAX_DURATION => duration(source, "start", start)?,
        Some(start) => start.as_ref().0,
        None => Duration::ZERO,
    };
    Ok(TrafficItem { from, to, address, start, kind: kind(source, &item, default_duration)?, expect })
}

/// Returns the receiver's address of the wanted family that the sender reaches without a router.
fn address(
    source: &SourceFile<'_>,
    span: &Range<usize>,
    from: &ScenarioHost,
    to: &ScenarioHost,
    ipv6: bool,
) -> ScenarioResult<std::net::IpAddr> {
    let family = |ip: &&IpNet| ip.addr.is_ipv6() == ipv6;
    let reachable = |ip: &&IpNet| from.ip.iter().any(|own| own.contains(ip.addr));
    let found = to.ip.iter().filter(family).find(reachable);
    found.map(|ip| ip.addr).ok_or_else(|| {
        let family = if ipv6 { "IPv6" } else { "IPv4" };
        let problem = format!(
            "traffic: {} and {} share no {family} network (no routers yet): expected addresses in one prefix",
            from.name, to.name
        );
        source.error(span.clone(), problem)
    })
}

fn kind(
    source: &SourceFile<'_>,
    item: &document::TrafficToml,
    default_duration: Duration,
) -> ScenarioResult<TrafficKind> {
    let kind = *item.kind.as_ref();
    let ping = kind == TrafficKindToml::Ping;
    let udp = kind == TrafficKindToml::Udp;
    let misplaced = [
        ("count", item.count.as_ref().map(Spanned::span).filter(|_| !ping), "ping"),
        ("interval", item.interval.as_ref().map(Spanned::span).filter(|_| !ping), "ping"),
        ("duration", item.duration.as_ref().map(Spanned::span).filter(|_| ping), "tcp and udp"),
        ("rate", item.rate.as_ref().map(Spanned::span).filter(|_| !udp), "udp"),
        ("payload", item.payload.as_ref().map(Spanned::span).filter(|_| !udp), "udp"),
        ("arrival", item.arrival.as_ref().map(Spanned::span).filter(|_| !udp), "udp"),
        ("sizes", item.sizes.as_ref().map(Spanned::span).filter(|_| !udp), "udp"),
        ("new_flows", item.new_flows.as_ref().map(Spanned::span).filter(|_| !udp), "udp"),
        ("flow_packets", item.flow_packets.as_ref().map(Spanned::span).filter(|_| !udp), "udp"),
        ("flows", item.flows.as_ref().map(Spanned::span).filter(|_| !udp), "udp"),
    ];
    for (what, span, kinds) in misplaced {
        if let Some(span) = span {
            return Err(source.error(span, format!("traffic: found `{what}`, expected it only with kind {kinds}")));
        }
    }
    let lasting = || item.duration.as_ref().map_or(Ok(default_duration), |d| duration(source, "duration", d));
    Ok(match kind {
        TrafficKindToml::Ping => {
            TrafficKind::Ping { count: ping_count(source, item)?, interval: ping_interval(source, item)? }
        }
        TrafficKindToml::Tcp => TrafficKind::Tcp { duration: lasting()? },
        TrafficKindToml::Udp => {
            let (new_flows, flows) = flows::flows(source, item)?;
            let offered = udp::offered(source, item)?;
            // A capture gives its own length.
            let given = match &offered {
                OfferedPackets::Trace(trace) if trace.is_replayed() && item.duration.is_none() => trace.length(),
                _ => lasting()?,
            };
            if given > MAX_DURATION {
                let problem = format!("traffic: arrival: found a capture that lasts {given:?}, expected at most 24h");
                return Err(source.error(item.kind.span(), problem + ", or a `duration`"));
            }
            let mut kind = TrafficKind::Udp { duration: given, offered, new_flows, flows };
            kind.set_duration(given);
            kind
        }
    })
}

fn ping_count(source: &SourceFile<'_>, item: &document::TrafficToml) -> ScenarioResult<u32> {
    match &item.count {
        Some(count) if !(1..=1_000_000).contains(count.as_ref()) => {
            Err(source.error(count.span(), format!("count: found {}, expected 1 to 1000000", count.as_ref())))
        }
        Some(count) => Ok(*count.as_ref()),
        None => Ok(5),
    }
}

fn ping_interval(source: &SourceFile<'_>, item: &document::TrafficToml) -> ScenarioResult<Duration> {
    const SHORTEST: Duration = Duration::from_millis(1);
    let Some(interval) = &item.interval else { return Ok(Duration::from_millis(200)) };
    if interval.as_ref().0 < SHORTEST {
        let problem = format!("interval: found {}, expected at least 1ms", interval.as_ref());
        return Err(source.error(interval.span(), problem));
    }
    duration(source, "interval", interval)
}
