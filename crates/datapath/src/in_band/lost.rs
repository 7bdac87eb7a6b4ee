//! Notices of lost paths. A switch whose port loses its link tells its neighbours which stations it does not reach any
//! more. Neighbours that reach one of these stations through it forget the path, too, and tell their neighbours. So all
//! switches look for a new path at once, instead of each waiting for an answer in vain.
//!
//! A notice is passed on only by a switch that has just forgotten a path, and away from the station. The switch can
//! forget that path again only after it learned it again from a frame of the station. So notices end if frames do. A
//! forgotten path does not hold back copies of flooded frames any more; what is remembered of the frames themselves
//! does ([`floods`](super::floods)).
//!
//! Notices are not authenticated. A host that makes them up makes switches learn anew the paths to stations that they
//! reach through the host's port: their frames are flooded once more. It cannot make them use another path. Each port
//! has a limit of [`NOTICES_PER_S`], and what comes beyond it is dropped.
//!
//! A notice goes from switch to switch, as LLDP does: to the group of the nearest bridge (IEEE 802.1Q-2018, table 8-1),
//! which no bridge forwards. Its EtherType is one for local experiments (IEEE 802-2014, 9.2.4). Switches of other kinds
//! ignore it; behind them the path is found when TCP has no answer.
use super::control_frame::ETHERNET;
use foldhash::{HashMap, HashMapExt};
use weir_openflow::model::PortNo;
use weir_packet::MacAddr;
use weir_packet::field::eth_type;
use weir_units::{Instant, RateLimit};

/// EtherType of notices.
pub(super) const ETHER_TYPE: u16 = eth_type::LOCAL_EXPERIMENT;
/// First bytes behind the EtherType, because others may use it, too: a name and a version.
const MARK: [u8; 6] = *b"weirL1";
/// Place of the number of stations, in two bytes, and of the first station.
const COUNT: usize = ETHERNET + MARK.len();
const STATIONS: usize = COUNT + 2;
/// Maximum number of stations in a notice; it then fits the MTU of Ethernet.
const MOST: usize = 200;
/// Length of the shortest frame, without its check sequence.
const SHORTEST: usize = 60;
/// Maximum number of notices of a neighbour that are heeded in a second; a tenth of them at once, which is more than a
/// switch sends for a link with as many stations as it knows.
const NOTICES_PER_S: u32 = 100;

/// Limits of the notices from each port.
#[derive(Debug)]
pub(super) struct NoticeLimits {
    ports: HashMap<PortNo, RateLimit>,
}

impl NoticeLimits {
    pub(super) fn new() -> NoticeLimits {
        NoticeLimits { ports: HashMap::new() }
    }

    /// Returns true if one more notice from this port may be heeded now, and counts it.
    pub(super) fn take(&mut self, now: Instant, port: PortNo) -> bool {
        self.ports.entry(port).or_insert_with(|| RateLimit::new(NOTICES_PER_S)).take(now)
    }

    /// Forgets a port that lost its link or was removed.
    pub(super) fn forget_port(&mut self, port: PortNo) {
        self.ports.remove(&port);
    }
}

/// Returns notices of stations that a switch does not reach any more.
pub(super) fn notices(local: MacAddr, stations: &[MacAddr]) -> impl Iterator<Item = Vec<u8>> {
    stations.chunks(MOST).map(move |stations| {
        let mut frame = [&MacAddr::NEAREST_BRIDGE.0[..], &local.0, &ETHER_TYPE.to_be_bytes(), &MARK].concat();
        let count = u16::try_from(stations.len()).unwrap_or(u16::MAX);
        frame.extend(count.to_be_bytes());
        frame.extend(stations.iter().flat_map(|station| station.0));
        frame.resize(frame.len().max(SHORTEST), 0);
        frame
    })
}

/// Returns true if a frame with [`ETHER_TYPE`] is a notice.
pub(super) fn is_notice(frame: &[u8]) -> bool {
    let is_marked = || frame.get(ETHERNET..).is_some_and(|rest| rest.starts_with(&MARK));
    frame.len() >= SHORTEST && frame.starts_with(&MacAddr::NEAREST_BRIDGE.0) && is_marked()
}

/// Returns the stations of a notice, as far as the frame has them.
pub(super) fn stations(frame: &[u8]) -> impl Iterator<Item = MacAddr> {
    let count = frame.get(COUNT..).and_then(|rest| rest.first_chunk()).map_or(0, |count| u16::from_be_bytes(*count));
    let stations = frame.get(STATIONS..).unwrap_or_default();
    stations.as_chunks().0.iter().take(count.into()).map(|station| MacAddr(*station))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_say_which_stations_are_lost() {
        let station = |number: u16| {
            let [high, low] = number.to_be_bytes();
            MacAddr([2, 0, 0, 1, high, low])
        };
        for count in [1, 200, 201, 1024] {
            let lost: Vec<MacAddr> = (0..count).map(station).collect();
            let frames: Vec<Vec<u8>> = notices(station(5000), &lost).collect();
            assert!(frames.iter().all(|frame| is_notice(frame) && (60..=1514).contains(&frame.len())));
            assert_eq!(frames.iter().flat_map(|frame| stations(frame)).collect::<Vec<_>>(), lost);
        }
        let frame = notices(station(0), &[station(1), station(2)]).next().expect("a notice");
        (0..frame.len()).for_each(|length| assert!(stations(&frame[..length]).count() <= 2));
        assert!(!is_notice(&frame[..59]) && !is_notice(&[&[2], &frame[1..]].concat()));
    }
}
