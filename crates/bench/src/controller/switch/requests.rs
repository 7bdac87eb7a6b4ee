//! Requests of an emulated switch: sends them, traces replies back to them, gives up those without an answer.
use super::{
    ANNOUNCED_AT_ONCE, ANNOUNCED_LONG_AGO, EmulatedStage, EmulatedSwitch, GIVEN_UP, MAX_OUTPUT, RequestSlot,
    SEEN_FLOW_MOD, SEEN_PACKET_OUT,
};
use crate::controller::pace::RequestPace;
use crate::controller::reply::{self, ReplyView};
use crate::controller::request::{AskedSources, serial_of};
use crate::controller::tally::{ReplyCounts, Tally};
use std::time::Duration;
use weir_units::Instant;

impl EmulatedSwitch {
    pub(super) fn timeout(&self) -> Duration {
        if self.stage == EmulatedStage::Announcing { ANNOUNCED_LONG_AGO } else { self.settings.timeout }
    }

    pub(super) fn slot(&self, serial: u32) -> &RequestSlot {
        &self.slots[serial as usize % self.slots.len()]
    }

    fn slot_mut(&mut self, serial: u32) -> &mut RequestSlot {
        let length = self.slots.len();
        &mut self.slots[serial as usize % length]
    }

    pub(super) fn announce(&mut self, now: Instant) {
        let last = self.settings.plan.announcements();
        while self.next < last && self.waiting < ANNOUNCED_AT_ONCE && self.send(now) {}
        if self.next >= last && self.waiting == 0 {
            self.stage = EmulatedStage::Ready;
        }
    }

    pub(super) fn send_requests(&mut self, now: Instant, tally: &mut Tally) {
        loop {
            let due = match &self.settings.pace {
                RequestPace::Window(most) if self.waiting < *most => now,
                RequestPace::Open(times) if times.due() <= now => times.due(),
                RequestPace::CbenchLatency if self.cbench_waiting == 0 => now,
                RequestPace::CbenchThroughput if self.session.output().len() < MAX_OUTPUT => now,
                _ => return,
            };
            if !self.has_room() {
                self.give_up(now, tally);
            }
            // A probe asks how long the controller takes; its own thread may wake late.
            let is_sent = self.send(if self.echo.is_some() { now } else { due });
            let is_measured = tally.measures(due);
            if let RequestPace::Open(times) = &mut self.settings.pace {
                times.advance();
                self.figures.unsent += u64::from(is_measured && !is_sent);
            } else if !is_sent {
                return;
            }
            self.figures.asked += u64::from(is_measured);
        }
    }

    /// Returns true if there is a slot for one more request.
    fn has_room(&self) -> bool {
        self.next - self.oldest < self.settings.most_waiting.max(ANNOUNCED_AT_ONCE)
    }

    /// Sends the next request. Returns false if there is no room for it.
    fn send(&mut self, due: Instant) -> bool {
        let is_cbench = self.settings.plan.sources == AskedSources::Cbench;
        if !(self.has_room() || is_cbench) || self.session.output().len() >= MAX_OUTPUT || self.next == u32::MAX - 1 {
            return false;
        }
        let serial = self.next;
        if self.session.send_encoded(self.template.patched(serial), 1).is_err() {
            return false;
        }
        self.next += 1;
        if is_cbench && serial > 0 {
            self.oldest = self.next;
            self.cbench_waiting += 1;
        } else {
            *self.slot_mut(serial) = RequestSlot { serial, seen: 0, due };
            self.waiting += 1;
        }
        true
    }

    /// Returns the oldest request with the addresses of the request `latest` that has no such reply. Controllers answer
    /// in order, so that a reply with nothing but addresses belongs to it.
    fn oldest_like(&self, latest: u32, bit: u8) -> u32 {
        let (period, first) = (self.settings.plan.period(), self.settings.plan.announcements());
        let older = |serial: &u32| serial.checked_sub(period).filter(|older| latest >= first && *older >= first);
        let waits = |serial: &u32| self.slot(*serial).serial == *serial && self.slot(*serial).seen & bit == 0;
        std::iter::successors(Some(latest), older)
            .take_while(|serial| *serial == latest || waits(serial))
            .last()
            .unwrap_or(latest)
    }

    /// Gives up requests that wait for too long. If there is no room, also gives up requests behind which others were
    /// answered: controllers answer a switch in order, and what one has dropped must not hold up the next requests.
    pub(super) fn give_up(&mut self, now: Instant, tally: &Tally) {
        let timeout = self.timeout();
        while self.oldest < self.next {
            let slot = *self.slot(self.oldest);
            if slot.serial == self.oldest && slot.seen == 0 {
                let is_passed = !self.has_room() && self.waiting < self.next - self.oldest;
                if now < slot.due + timeout && !is_passed {
                    break;
                }
                self.slot_mut(slot.serial).seen = GIVEN_UP;
                self.waiting -= 1;
                self.figures.lost += u64::from(tally.measures(slot.due));
            }
            self.oldest += 1;
        }
    }

    pub(super) fn take_reply(&mut self, now: Instant, message: &[u8], tally: &mut Tally) {
        let plan = self.settings.plan;
        let is_ready = matches!(self.stage, EmulatedStage::Announcing | EmulatedStage::Ready);
        let Some(view) = reply::read(plan.version, message) else {
            tally.counts.malformed += 1;
            return;
        };
        let window = tally.window(now);
        let counts = &mut tally.counts;
        // Counts are about the measured time.
        let mut unused = ReplyCounts::default();
        let counts = if window.is_some() { counts } else { &mut unused };
        let last = self.next.wrapping_sub(1);
        let (found, bit) = match view {
            ReplyView::FlowMod { adds: false, .. } => {
                counts.deletes += 1;
                return;
            }
            ReplyView::FlowMod { buffer: Some(serial), .. } => {
                counts.by_buffer += 1;
                (Some(serial), SEEN_FLOW_MOD)
            }
            ReplyView::FlowMod { src, dst, .. } => {
                let latest = src.filter(|_| self.next > 0).and_then(|src| plan.latest(src, dst, last));
                let found = latest.map(|latest| self.oldest_like(latest, SEEN_FLOW_MOD));
                counts.by_addresses += u64::from(found.is_some());
                (found, SEEN_FLOW_MOD)
            }
            ReplyView::PacketOut { buffer: Some(serial), .. } => {
                counts.by_buffer += 1;
                (Some(serial), SEEN_PACKET_OUT)
            }
            ReplyView::PacketOut { frame, .. } => {
                let found = serial_of(frame, &plan);
                counts.by_frame += u64::from(found.is_some());
                (found, SEEN_PACKET_OUT)
            }
        };
        counts.flow_mods += u64::from(bit == SEEN_FLOW_MOD);
        counts.packet_outs += u64::from(bit == SEEN_PACKET_OUT);
        if plan.sources == AskedSources::Cbench && self.next > 1 {
            let counts_it = matches!(view, ReplyView::FlowMod { is_add: true, .. } | ReplyView::PacketOut { .. });
            self.cbench_waiting = self.cbench_waiting.saturating_sub(u32::from(counts_it));
            self.figures.cbench += u64::from(counts_it && window.is_some());
            return;
        }
        let Some(serial) = found.filter(|serial| is_ready && *serial < self.next) else {
            counts.unasked += 1;
            return;
        };
        if let ReplyView::FlowMod { src, dst, .. } = view {
            let flow = plan.flow(serial);
            if src.is_some_and(|src| src != flow.src) || dst.is_some_and(|dst| dst != flow.dst) {
                counts.wrong += 1;
                return;
            }
        }
        let slot = *self.slot(serial);
        if slot.serial != serial || slot.seen & GIVEN_UP != 0 {
            counts.late += 1;
            return;
        }
        counts.repeated += u64::from(slot.seen & bit != 0);
        counts.second += u64::from(slot.seen != 0 && slot.seen & bit == 0);
        self.slot_mut(serial).seen |= bit;
        if slot.seen == 0 {
            self.waiting -= 1;
            // Hosts of the switch that comes at half time announce themselves while requests are measured.
            if serial < plan.announcements() {
                return;
            }
            if let Some(window) = window {
                if self.figures.windows.len() <= window {
                    self.figures.windows.resize(window + 1, 0);
                }
                self.figures.windows[window] += 1;
            }
            tally.answer(now, slot.due, self.settings.is_special);
        }
    }
}
