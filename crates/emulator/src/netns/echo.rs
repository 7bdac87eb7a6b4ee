//! Pings between all hosts of a lab from this process, by sockets inside their namespaces. Starting a program for
//! each ping would take longer than the pings.
use crate::CancelHandle;
use crate::lab::TELL_EVERY;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, recvfrom, sendto, socket_with,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;
use weir_units::{Clock, Instant, SystemClock};

/// Maximum number of all hosts' pings that wait for an answer.
const UNDER_WAY: usize = 64;
/// Maximum number of one host's pings that wait for an answer.
const OF_ONE: usize = 2;
/// Longest wait for an answer before time-outs and cancellation are checked.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// ICMP types of echo request and reply, for IPv4 (RFC 792) and IPv6 (RFC 4443).
const TYPES: [[u8; 2]; 2] = [[8, 0], [128, 129]];
/// Bytes of type, code, checksum, identifier and sequence number.
const HEADER: usize = 8;
/// Bytes of a message: the header, and the ping's index among all pings.
const LENGTH: usize = HEADER + 8;

/// Ping to be sent by the host with the index `from`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PingRequest {
    pub(crate) from: usize,
    pub(crate) to: IpAddr,
}

/// Raw ICMP sockets of all hosts, for IPv4 and IPv6 where the kernel has them.
pub(crate) struct IcmpPinger {
    sockets: Vec<[Option<OwnedFd>; 2]>,
    identifier: u16,
}

impl IcmpPinger {
    /// Opens sockets in these namespaces.
    ///
    /// # Errors
    /// A namespace cannot be entered, or a socket cannot be opened.
    pub(crate) fn open(namespaces: &[String]) -> io::Result<IcmpPinger> {
        // A thread enters the namespaces one after another and ends in the last. The sockets stay in the namespaces
        // in which they were opened.
        let open = || namespaces.iter().map(|name| open_in(name)).collect::<io::Result<Vec<_>>>();
        let sockets = std::thread::scope(|scope| scope.spawn(open).join());
        let sockets = sockets.unwrap_or_else(|_| Err(io::Error::other("the thread that opens sockets panicked")))?;
        let identifier = u16::try_from(std::process::id() & 0xffff).unwrap_or_default();
        Ok(IcmpPinger { sockets, identifier })
    }

    /// Sends all pings, some of them at a time, and waits for each answer for at most `timeout`. Returns the time
    /// each took; `None` without an answer. Calls `tell` regularly with the number of finished pings and the time
    /// since the start.
    pub(crate) fn run(
        &self,
        pings: &[PingRequest],
        timeout: Duration,
        clock: SystemClock,
        cancel: &CancelHandle,
        tell: &mut dyn FnMut(usize, Duration),
    ) -> Vec<Option<Duration>> {
        let begun = clock.now();
        let mut tell_at = begun + TELL_EVERY;
        let mut round = PingRound {
            waiting: (0..pings.len()).collect(),
            under_way: Vec::new(),
            took: vec![None; pings.len()],
            pings,
            timeout,
        };
        while !round.is_over() && !cancel.is_cancelled() {
            let now = clock.now();
            round.give_up(now);
            while let Some(place) = round.next() {
                let ping = &pings[place];
                round.under_way.push((place, clock.now()));
                self.send(ping, place);
            }
            let ready = self.wait(&round);
            ready.into_iter().for_each(|host| self.receive(host, &mut round, clock));
            let now = clock.now();
            if now >= tell_at {
                tell_at = now + TELL_EVERY;
                tell(round.through(), now.since(begun));
            }
        }
        round.took
    }

    /// Sends a ping. A ping that cannot be sent (no route) counts as not answered.
    fn send(&self, ping: &PingRequest, place: usize) {
        let v6 = ping.to.is_ipv6();
        let Some(socket) = &self.sockets[ping.from][usize::from(v6)] else { return };
        let mut bytes = [0; LENGTH];
        bytes[0] = TYPES[usize::from(v6)][0];
        bytes[4..6].copy_from_slice(&self.identifier.to_be_bytes());
        let number = (place as u64).to_be_bytes();
        bytes[6..8].copy_from_slice(&number[6..]);
        bytes[HEADER..].copy_from_slice(&number);
        if !v6 {
            // For IPv6 the kernel computes the checksum.
            let sum = checksum(&bytes);
            bytes[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        if let Err(error) = sendto(socket, &bytes, SendFlags::DONTWAIT, &SocketAddr::new(ping.to, 0)) {
            tracing::debug!(%error, "a ping to {} was not sent", ping.to);
        }
    }

    /// Waits until a packet arrives or the next check is due. Returns the hosts that have received something.
    fn wait(&self, round: &PingRound<'_>) -> Vec<usize> {
        let mut hosts: Vec<usize> = round.under_way.iter().map(|(place, _)| round.pings[*place].from).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let sockets =
            hosts.iter().flat_map(|host| self.sockets[*host].iter().flatten().map(move |socket| (*host, socket)));
        let (hosts, mut fds): (Vec<usize>, Vec<PollFd<'_>>) =
            sockets.map(|(host, socket)| (host, PollFd::new(socket, PollFlags::IN))).unzip();
        let timeout = LOOK_EVERY.min(round.timeout);
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(timeout.subsec_nanos()) };
        // An interrupted poll ends the wait early.
        let _ = poll(&mut fds, Some(&timeout));
        let mut ready: Vec<usize> =
            hosts.into_iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty()).map(|(host, _)| host).collect();
        ready.dedup();
        ready
    }

    /// Receives the packets of a host and records the answers.
    fn receive(&self, host: usize, round: &mut PingRound<'_>, clock: SystemClock) {
        for (v6, socket) in [false, true].into_iter().zip(&self.sockets[host]) {
            let Some(socket) = socket else { continue };
            let mut bytes = [0; 256];
            while let Ok((length, _, _)) = recvfrom(socket, &mut bytes[..], RecvFlags::DONTWAIT) {
                if let Some(place) = self.answered(&bytes[..length.min(bytes.len())], v6) {
                    round.answered(place, host, clock.now());
                }
            }
        }
    }

    /// Returns the index of the ping that a packet answers, if it answers one.
    fn answered(&self, packet: &[u8], v6: bool) -> Option<usize> {
        let message = if v6 { packet } else { packet.get(usize::from(packet.first()? & 0xf) * 4..)? };
        let is_ours =
            *message.first()? == TYPES[usize::from(v6)][1] && message.get(4..6)? == self.identifier.to_be_bytes();
        let number = u64::from_be_bytes(message.get(HEADER..LENGTH)?.try_into().ok()?);
        is_ours.then(|| usize::try_from(number).ok()).flatten()
    }
}

/// State of the pings being sent and answered.
struct PingRound<'a> {
    pings: &'a [PingRequest],
    timeout: Duration,
    waiting: VecDeque<usize>,
    /// Index and send time of each ping that waits for an answer.
    under_way: Vec<(usize, Instant)>,
    took: Vec<Option<Duration>>,
}

impl PingRound<'_> {
    fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_empty()
    }

    /// Returns the number of pings that were answered or timed out.
    fn through(&self) -> usize {
        self.pings.len() - self.waiting.len() - self.under_way.len()
    }

    /// Removes and returns the next ping that may be sent.
    fn next(&mut self) -> Option<usize> {
        if self.under_way.len() >= UNDER_WAY {
            return None;
        }
        let of = |host: usize| self.under_way.iter().filter(|(place, _)| self.pings[*place].from == host).count();
        let free = self.waiting.iter().position(|place| of(self.pings[*place].from) < OF_ONE)?;
        self.waiting.remove(free)
    }

    fn give_up(&mut self, now: Instant) {
        self.under_way.retain(|(_, sent)| now.since(*sent) < self.timeout);
    }

    /// Records an answer. Accepts it only at the host that sent the ping, because other packets with its number are
    /// forged or of another lab.
    fn answered(&mut self, place: usize, host: usize, now: Instant) {
        let is_meant = |(other, _): &(usize, Instant)| *other == place && self.pings[place].from == host;
        if let Some(at) = self.under_way.iter().position(is_meant) {
            let (place, sent) = self.under_way.swap_remove(at);
            self.took[place] = Some(now.since(sent));
        }
    }
}

fn open_in(namespace: &str) -> io::Result<[Option<OwnedFd>; 2]> {
    let file = File::open(format!("/run/netns/{namespace}"))?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
    let raw = |family, protocol| match socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, Some(protocol)) {
        Ok(socket) => Ok(Some(socket)),
        // The kernel does not have this version of IP.
        Err(Errno::AFNOSUPPORT) => Ok(None),
        Err(error) => Err(io::Error::from(error)),
    };
    Ok([raw(AddressFamily::INET, ipproto::ICMP)?, raw(AddressFamily::INET6, ipproto::ICMPV6)?])
}

/// Returns the Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::try_from(!sum & 0xffff).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pinger() -> IcmpPinger {
        IcmpPinger { sockets: Vec::new(), identifier: 7 }
    }

    #[test]
    fn answers_are_told_from_everything_else() {
        let mut message = [0; LENGTH];
        message[5] = 7;
        message[15] = 42;
        let mut packet = vec![0; 20];
        packet[0] = 0x45;
        packet.extend(message);
        assert_eq!(pinger().answered(&packet, false), Some(42));
        let mut long = packet.clone();
        (long[0], _) = (0x46, long.splice(20..20, [1; 4]));
        assert_eq!(pinger().answered(&long, false), Some(42), "options of IP");
        message[0] = 129;
        assert_eq!(pinger().answered(&message, true), Some(42));
        message[5] = 8;
        assert_eq!(pinger().answered(&message, true), None, "another's");
        packet[20] = 8;
        assert_eq!(pinger().answered(&packet, false), None, "a request");
        for end in 0..packet.len() {
            assert_eq!(pinger().answered(&packet[..end], false), None);
        }
    }

    #[test]
    fn a_host_waits_for_its_own_pings_before_it_sends_more() {
        let to = "10.0.0.9".parse().unwrap();
        let pings: Vec<PingRequest> = [0, 0, 0, 1].map(|from| PingRequest { from, to }).into();
        let waiting = (0..4).collect();
        let timeout = Duration::from_secs(1);
        let mut round = PingRound { pings: &pings, timeout, waiting, under_way: Vec::new(), took: vec![None; 4] };
        while let Some(place) = round.next() {
            round.under_way.push((place, Instant::ZERO));
        }
        assert_eq!(round.under_way.iter().map(|(place, _)| *place).collect::<Vec<_>>(), [0, 1, 3]);
        round.answered(1, 1, Instant::from_nanos(9));
        round.answered(99, 0, Instant::from_nanos(9));
        round.answered(1, 0, Instant::from_nanos(5));
        assert_eq!(round.through(), 1, "two are under way, one waits");
        assert_eq!((round.next(), round.took[1]), (Some(2), Some(Duration::from_nanos(5))));
        round.give_up(Instant::ZERO + timeout);
        assert!(round.is_over());
    }

    #[test]
    fn checksums_add_up() {
        let mut bytes = [8, 0, 0, 0, 1, 2, 3, 4, 0xff, 0xff];
        let sum = checksum(&bytes);
        bytes[2..4].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(checksum(&bytes), 0);
    }
}
