//! Carries out controllers' messages, one after the other and for a bounded time, and removes expired flow entries.
use super::inbox::FromChannel;
use super::served::ServedSwitch;
use crate::clock::time_of_day;
use weir_datapath::ChannelId;
use weir_openflow::model::multipart::RequestBody;
use weir_openflow::{Body, Message};
use weir_units::Instant;

impl ServedSwitch<'_> {
    /// Carries out controllers' messages and due work until about `until`. Ends earlier if the engine must handle an
    /// event of a port first. `worked` is true if calls have already changed the switch in this round. Returns true if
    /// there was any work.
    pub(super) fn run_control(&mut self, now: Instant, until: Instant, mut worked: bool) -> bool {
        while !self.io.has_events() && self.control_once(now) {
            worked = true;
            if self.io.now() >= until {
                break;
            }
        }
        worked |= !self.logical.is_busy && !self.io.has_events() && self.advance_channels(now, until);
        if worked {
            // New flow entries may expire earlier than the known deadline.
            self.logical.expire_at = now;
        }
        self.expire(now);
        worked
    }

    /// Carries out one step of control work: part of a long change, or the next message. Returns true if there was
    /// one.
    fn control_once(&mut self, now: Instant) -> bool {
        if self.logical.is_busy {
            let datapath = self.logical.datapath.get();
            datapath.go_on(now, &mut self.io.pool, &mut self.logical.out);
            self.logical.is_busy = datapath.is_busy();
            self.deliver(now);
            return true;
        }
        if self.logical.is_full() {
            return false;
        }
        if let Some((channel, came, rest)) = &mut self.logical.unfinished_batch {
            let (channel, came) = (*channel, *came);
            if let Some(message) = rest.next() {
                self.message((now, came), channel, message);
                self.deliver(now);
                if self.logical.is_busy {
                    // After a change of many flow entries, other channels' messages come before this channel's next
                    // one.
                    self.logical.channels.wait(channel);
                }
                if self.logical.channels.is_held(channel)
                    && let Some((_, _, rest)) = self.logical.unfinished_batch.take()
                {
                    self.logical.channels.hold(FromChannel::Messages(channel, came, rest.collect()));
                }
                return true;
            }
            self.logical.unfinished_batch = None;
        }
        let Ok(message) = self.logical.messages.try_recv() else { return false };
        match self.logical.channels.hold(message) {
            Some(FromChannel::Messages(channel, came, batch)) => {
                self.logical.unfinished_batch = Some((channel, came, batch.into_iter()));
            }
            Some(message) => self.carry_out(now, message),
            None => {}
        }
        true
    }

    /// Carries out an event or the messages of a channel.
    pub(super) fn carry_out(&mut self, now: Instant, message: FromChannel) {
        match message {
            FromChannel::Up(channel, version, outbox) => {
                self.logical.channels.add(channel, outbox);
                self.logical.datapath.get().channel_up(now, channel, version);
                self.logical.datapath.get().tell_channel(channel, true, &mut self.logical.out);
            }
            FromChannel::AuxiliaryUp(channel, main, number, outbox) => {
                if self.logical.datapath.get().auxiliary_up(now, channel, main, number) {
                    self.logical.channels.add(channel, outbox);
                } else {
                    outbox.close("its main connection ended");
                }
            }
            FromChannel::Down(channel) if self.logical.timed.as_ref().is_some_and(|timed| timed.owes(channel)) => {
                self.logical.channels.wait(channel);
                self.logical.channels.hold(FromChannel::Down(channel));
            }
            FromChannel::Down(channel) => self.logical.channel_down(now, channel),
            FromChannel::Messages(channel, came, batch) => {
                batch.into_iter().for_each(|message| self.message((now, came), channel, message));
            }
        }
        self.deliver(now);
    }

    /// Carries out a message of `channel` that arrived at `came`: now, later if the switch's timing delays it, or in
    /// parts if its reply may be long.
    fn message(&mut self, (now, came): (Instant, Instant), channel: ChannelId, message: Message) {
        let Some(outbox) = self.logical.channels.outbox(channel) else { return };
        if outbox.is_overrun() {
            outbox.close("it does not read its replies");
            return self.logical.channel_down(now, channel);
        }
        self.copy_port_state_for(&message.body);
        if asks_for_time(&message.body) {
            // A clock before 1970 counts as having no time of day.
            let today = time_of_day(self.io.clock);
            self.logical.datapath.get().set_time_of_day(self.io.now(), today);
        }
        let Some(message) = self.defer_message(came, channel, message) else { return };
        let datapath = self.logical.datapath.get();
        if let Some(reply) = datapath.long_reply(channel, &message) {
            return self.logical.channels.begin(channel, reply);
        }
        datapath.begin(now, channel, message, &mut self.io.pool, &mut self.logical.out);
        self.logical.is_busy = datapath.is_busy();
    }

    /// Removes expired flow entries and does other due work of the datapath, if its deadline has passed.
    fn expire(&mut self, now: Instant) {
        if now >= self.logical.expire_at {
            let datapath = self.logical.datapath.get();
            self.logical.expire_at = datapath.expire(now, &mut self.logical.out).unwrap_or(Instant::FAR);
            self.logical.is_busy = datapath.is_busy();
            self.deliver(now);
        }
    }
}

/// Returns true if the reply to a message, or its effect, may depend on the time of day: bundles can be scheduled for
/// one.
fn asks_for_time(body: &Body) -> bool {
    match body {
        Body::BundleControl(_) => true,
        Body::MultipartRequest(request) => matches!(request.body, RequestBody::BundleFeatures(_)),
        _ => false,
    }
}
