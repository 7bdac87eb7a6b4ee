//! Keeps the links of which probes have come, and what happens to them.
use super::damping::LinkDamping;
use super::delay::ShortestDelay;
use super::lldp::ProbeForm;
use super::prober::{MAX_AGE, ProbedLink, ProbedLinkEvent, TrunkPort};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_units::Instant;

/// Most links of one thread.
const MAX_LINKS: usize = 65_536;
/// Time that a silent link gets while one of its switches is silent, too, as a multiple of the usual one.
const UNCERTAIN_SILENCES: u32 = 3;

/// Links whose greater end is a switch of this thread.
#[derive(Debug, Default)]
pub(super) struct LinkTable {
    /// Links by their greater end, and indirect ones by their lesser end, too. A link that is lost stays for a while,
    /// so that its old probes are known.
    links: BTreeMap<LinkKey, HeardLink>,
    damping: LinkDamping<[TrunkPort; 2]>,
    events: Vec<ProbedLinkEvent>,
    pub(super) counts: LinkCounts,
}

type LinkKey = (TrunkPort, Option<TrunkPort>);

/// Numbers of what happened to links.
#[derive(Debug, Default)]
pub(super) struct LinkCounts {
    pub(super) found: u64,
    pub(super) lost: u64,
    pub(super) damped: u64,
    /// Links above [`MAX_LINKS`].
    pub(super) refused: u64,
    /// Probes at a port whose link leads elsewhere.
    pub(super) contradicted: u64,
}

/// Time at which a probe was sent, and its number among those of that time.
pub(super) type ProbeOrder = (Instant, u64);

/// Link of which a probe has come.
#[derive(Debug)]
struct HeardLink {
    /// Lesser end.
    from: TrunkPort,
    /// False if the link was lost.
    is_known: bool,
    /// Time at which the newest probe came.
    heard: Instant,
    /// Time of probing until then.
    probing: Duration,
    /// The newest probe. A lost link accepts only probes that were sent after the loss.
    newest: ProbeOrder,
    delays: ShortestDelay,
    /// True if one of its ports has been down since, so that the cable may lead elsewhere.
    was_down: bool,
}

/// Probe that came over a link.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeardProbe {
    /// Lesser end of the link.
    pub(super) from: TrunkPort,
    /// Greater end of the link.
    pub(super) at: TrunkPort,
    pub(super) form: ProbeForm,
    pub(super) order: ProbeOrder,
}

impl HeardProbe {
    fn key(&self) -> LinkKey {
        (self.at, (self.form == ProbeForm::Broadcast).then_some(self.from))
    }
}

impl LinkTable {
    /// Returns true if no probe from the same port to the same one is as new as this one.
    pub(super) fn is_news(&self, probe: &HeardProbe) -> bool {
        self.links.get(&probe.key()).is_none_or(|link| link.from != probe.from || link.newest < probe.order)
    }

    /// Returns the link between a lesser and a greater end, if it is known.
    pub(super) fn get(&self, [from, at]: [TrunkPort; 2]) -> Option<ProbedLink> {
        let keys = [(at, None), (at, Some(from))];
        let link = keys.iter().find_map(|key| Some((key, self.known(key, from)?)));
        link.map(|(key, link)| self.probed(key, link))
    }

    fn known(&self, key: &LinkKey, from: TrunkPort) -> Option<&HeardLink> {
        self.links.get(key).filter(|link| link.is_known && link.from == from)
    }

    /// Notes a probe that came over a link, and how long it took. `probing` is the time of probing so far.
    pub(super) fn hear(&mut self, now: Instant, probing: Duration, probe: HeardProbe, delay: Duration) {
        let HeardProbe { from, at, form, order } = probe;
        if form == ProbeForm::Broadcast && self.known(&(at, None), from).is_some() {
            return;
        }
        if let Some(link) = self.links.get_mut(&probe.key()).filter(|link| link.is_known && link.from == from) {
            (link.heard, link.probing, link.newest, link.was_down) = (now, probing, order, false);
            return link.delays.add(delay);
        }
        // A port that got the probes of two others in turn would lose and find a link without end.
        if self.links.get(&probe.key()).is_some_and(|link| link.is_known && !link.was_down) {
            self.counts.contradicted += 1;
            return;
        }
        if self.links.len() >= MAX_LINKS && !self.links.contains_key(&probe.key()) {
            self.counts.refused += 1;
            return;
        }
        // A link found by broadcast before is a direct one now.
        let was_indirect = self.links.remove(&(at, Some(from))).is_some_and(|link| link.is_known);
        let mut delays = ShortestDelay::default();
        delays.add(delay);
        let link = HeardLink { from, is_known: true, heard: now, probing, newest: order, delays, was_down: false };
        if let Some(former) = self.links.insert(probe.key(), link).filter(|former| former.is_known) {
            self.note(ProbedLinkEvent::Lost([former.from, at]));
        }
        let ends = [from, at];
        self.note(if was_indirect { ProbedLinkEvent::Direct(ends) } else { ProbedLinkEvent::Found(ends) });
    }

    /// Loses the links that `is_lost` accepts by their ends. `last` is the last probe sent.
    pub(super) fn lose(&mut self, last: ProbeOrder, is_lost: impl Fn(&[TrunkPort; 2]) -> bool) {
        self.lose_links(last, |ends, _| is_lost(ends));
    }

    /// Loses the links of which nothing was heard for longer than `silence` of the time of probing, and forgets those
    /// that were lost long ago. `is_certain` says, for the ends of a link and the time at which its newest probe was
    /// sent, whether the silence is that of the link and not of a switch. Otherwise the link gets
    /// [`UNCERTAIN_SILENCES`] times as long.
    pub(super) fn lose_silent(
        &mut self,
        last: ProbeOrder,
        probing: Duration,
        silence: Duration,
        is_certain: impl Fn(&[TrunkPort; 2], Instant) -> bool,
    ) {
        self.lose_links(last, |ends, link| {
            let silent = probing.saturating_sub(link.probing);
            silent > silence && (silent > silence * UNCERTAIN_SILENCES || is_certain(ends, link.newest.0))
        });
        self.links.retain(|_, link| link.is_known || last.0.since(link.newest.0) <= MAX_AGE);
    }

    fn lose_links(&mut self, last: ProbeOrder, is_lost: impl Fn(&[TrunkPort; 2], &HeardLink) -> bool) {
        let mut lost = Vec::new();
        for ((at, _), link) in self.links.iter_mut().filter(|(_, link)| link.is_known) {
            let ends = [link.from, *at];
            if is_lost(&ends, link) {
                (link.is_known, link.newest) = (false, last);
                lost.push(ends);
            }
        }
        for link in lost {
            self.note(ProbedLinkEvent::Lost(link));
            self.note_loss(last.0, link);
        }
    }

    /// Notes that a port went down, without losing its link.
    pub(super) fn note_port_down(&mut self, now: Instant, at: TrunkPort) {
        for (_, link) in self.links.iter_mut().filter(|((to, _), link)| *to == at || link.from == at) {
            link.was_down = true;
        }
        if let Some(link) = self.links.get(&(at, None)).filter(|link| link.is_known) {
            self.note_loss(now, [link.from, at]);
        }
    }

    /// Releases damped links that have been steady.
    pub(super) fn release(&mut self, now: Instant) {
        for link in self.damping.release(now) {
            self.note(ProbedLinkEvent::Released(link));
        }
    }

    /// Returns true if there is nothing to wait for.
    pub(super) fn is_idle(&self) -> bool {
        self.links.is_empty() && self.damping.is_empty()
    }

    pub(super) fn take_events(&mut self) -> Vec<ProbedLinkEvent> {
        std::mem::take(&mut self.events)
    }

    /// Returns the links that are known.
    pub(super) fn iter(&self) -> impl Iterator<Item = ProbedLink> + '_ {
        self.links.iter().filter(|(_, link)| link.is_known).map(|(key, link)| self.probed(key, link))
    }

    fn probed(&self, (at, only_from): &LinkKey, link: &HeardLink) -> ProbedLink {
        let (ends, indirect) = ([link.from, *at], only_from.is_some());
        let (delay, damped) = (link.delays.get(), self.damping.is_damped(ends));
        ProbedLink { ends, heard: link.heard, delay, damped, indirect }
    }

    fn note_loss(&mut self, now: Instant, link: [TrunkPort; 2]) {
        if self.damping.note_loss(now, link) {
            self.note(ProbedLinkEvent::Damped(link));
        }
    }

    fn note(&mut self, event: ProbedLinkEvent) {
        match event {
            ProbedLinkEvent::Found(_) => self.counts.found += 1,
            ProbedLinkEvent::Lost(_) => self.counts.lost += 1,
            ProbedLinkEvent::Damped(_) => self.counts.damped += 1,
            ProbedLinkEvent::Direct(_) | ProbedLinkEvent::Released(_) => {}
        }
        self.events.push(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_openflow::model::PortNo;

    const FROM: TrunkPort = (1, PortNo(1));
    const AT: TrunkPort = (2, PortNo(1));

    fn at_ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn hear(table: &mut LinkTable, ms: u64, from: TrunkPort, at: TrunkPort) {
        let probe = HeardProbe { from, at, form: ProbeForm::Direct, order: (at_ms(ms), ms) };
        if table.is_news(&probe) {
            table.hear(at_ms(ms), Duration::from_millis(ms), probe, Duration::from_micros(ms));
        }
    }

    #[test]
    fn a_link_is_found_replaced_and_lost() {
        let (mut table, other) = (LinkTable::default(), (1, PortNo(9)));
        hear(&mut table, 10, FROM, AT);
        hear(&mut table, 20, FROM, AT);
        assert_eq!(table.take_events(), [ProbedLinkEvent::Found([FROM, AT])]);
        hear(&mut table, 25, other, AT);
        assert_eq!((table.take_events(), table.counts.contradicted), (Vec::new(), 1), "the port was not down");
        table.note_port_down(at_ms(28), FROM);
        hear(&mut table, 30, other, AT);
        assert_eq!(table.take_events(), [ProbedLinkEvent::Lost([FROM, AT]), ProbedLinkEvent::Found([other, AT])]);
        assert!(table.get([other, AT]).is_some() && table.get([FROM, AT]).is_none());
        let lose_silent = |table: &mut LinkTable, ms: u64, is_certain| {
            let (probing, silence) = (Duration::from_millis(ms), Duration::from_millis(100));
            table.lose_silent((at_ms(ms), ms), probing, silence, |_, sent| is_certain && sent == at_ms(30));
        };
        lose_silent(&mut table, 130, true);
        assert!(table.take_events().is_empty(), "not longer");
        for (ms, is_certain) in [(131, true), (331, false)] {
            let mut table = LinkTable::default();
            hear(&mut table, 30, other, AT);
            lose_silent(&mut table, ms - 1, is_certain);
            assert_eq!(table.take_events().len(), 1);
            lose_silent(&mut table, ms, is_certain);
            assert_eq!(table.take_events(), [ProbedLinkEvent::Lost([other, AT])]);
        }
        lose_silent(&mut table, 131, true);
        assert_eq!((table.take_events(), table.iter().count()), (vec![ProbedLinkEvent::Lost([other, AT])], 0));
        assert!((table.counts.found, table.counts.lost) == (2, 2) && !table.is_idle());
        lose_silent(&mut table, 2000, false);
        table.release(at_ms(1_000_000));
        assert!(table.is_idle());
    }

    #[test]
    fn probes_from_before_a_loss_do_not_bring_a_link_back() {
        let mut table = LinkTable::default();
        hear(&mut table, 10, FROM, AT);
        table.lose((at_ms(50), 50), |ends| ends.contains(&FROM));
        table.lose((at_ms(51), 51), |ends| ends.contains(&AT));
        assert_eq!(
            table.take_events(),
            [ProbedLinkEvent::Found([FROM, AT]), ProbedLinkEvent::Lost([FROM, AT])],
            "lost once"
        );
        hear(&mut table, 50, FROM, AT);
        assert!(table.take_events().is_empty());
        hear(&mut table, 52, FROM, AT);
        assert_eq!(table.take_events(), [ProbedLinkEvent::Found([FROM, AT])]);
        let delays: Vec<_> = table.iter().map(|link| link.delay).collect();
        assert_eq!(delays, [Some(Duration::from_micros(52))], "another cable may be there");
    }

    #[test]
    fn links_above_the_limit_are_counted() {
        let mut table = LinkTable::default();
        for dpid in 0..=MAX_LINKS as u64 {
            hear(&mut table, 1, FROM, (dpid + 2, PortNo(1)));
        }
        assert_eq!((table.counts.found, table.counts.refused), (MAX_LINKS as u64, 1));
    }
}
