//! Records what the script requested from the switch, and checks what happens to each frame.
//!
//! A flow entry has a key: the UDP port that it matches. The states of a key are numbered in the order of the
//! requests. A barrier reply confirms them up to a number. A frame sent after that is handled by this state or a
//! later one, never by an older one.
use std::collections::HashMap;
use weir_openflow::model::PortNo;

/// Treatment of a packet by a flow entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EntryTreatment {
    /// No entry exists.
    Absent,
    /// The entry drops.
    Drop,
    /// The entry sends to each of these ports.
    Out(Vec<PortNo>),
    /// The entry sends to controllers.
    Controller,
}

/// State of a key: the treatment of its packets after one request.
#[derive(Debug, Clone)]
struct RequestedEntryState {
    act: EntryTreatment,
    /// True if the entry may expire.
    expires: bool,
}

/// States of a key, and the confirmed one.
#[derive(Debug)]
struct EntryStateHistory {
    states: Vec<RequestedEntryState>,
    /// State that the last barrier reply confirmed.
    confirmed: usize,
}

/// A frame that was sent to the switch.
#[derive(Debug)]
struct SentFrame {
    key: u16,
    /// Confirmed state at the time of sending.
    floor: usize,
    /// Ports by which the frame left.
    left_by: Vec<PortNo>,
}

/// Requested states of keys, and sent frames.
#[derive(Debug, Default)]
pub(super) struct ForwardingOracle {
    keys: HashMap<u16, EntryStateHistory>,
    frames: Vec<SentFrame>,
    /// Ports by which packet-outs are to leave, by the frame's number.
    packet_outs: HashMap<u64, PortNo>,
    /// Number of observed frames at ports and controllers.
    pub(super) seen: u64,
}

impl ForwardingOracle {
    /// Records the request that a key enters a state. Returns the state's number.
    pub(super) fn ask(&mut self, key: u16, act: EntryTreatment, expires: bool) -> usize {
        let known = self.keys.entry(key).or_insert_with(EntryStateHistory::new);
        known.states.push(RequestedEntryState { act, expires });
        known.states.len() - 1
    }

    /// Notes that a barrier reply confirms a state.
    pub(super) fn confirm(&mut self, key: u16, state: usize) {
        if let Some(known) = self.keys.get_mut(&key) {
            known.confirmed = known.confirmed.max(state);
        }
    }

    /// Records the sending of a frame of a key. Returns the frame's number.
    pub(super) fn send(&mut self, key: u16) -> u64 {
        let floor = self.keys.get(&key).map_or(0, |known| known.confirmed);
        self.frames.push(SentFrame { key, floor, left_by: Vec::new() });
        self.frames.len() as u64 - 1
    }

    /// Records the sending of a packet-out for a port. Returns the number of its frame.
    pub(super) fn send_out(&mut self, to: PortNo) -> u64 {
        let number = self.send(0);
        self.packet_outs.insert(number, to);
        number
    }

    /// Returns the number of frames of a key sent so far.
    pub(super) fn sent_of(&self, key: u16) -> u64 {
        self.frames.iter().filter(|frame| frame.key == key).count() as u64
    }

    /// Removes the last frame, which was not sent after all.
    pub(super) fn take_back(&mut self) {
        self.frames.pop();
    }

    /// Returns the number of frames sent so far, including packet-outs.
    pub(super) fn sent(&self) -> usize {
        self.frames.len()
    }

    /// Notes that a frame left by a port.
    ///
    /// # Errors
    /// Fails if no state that may have handled the frame sends it there, or if the frame left there before.
    pub(super) fn left(&mut self, number: u64, port: PortNo) -> Result<(), String> {
        let is_allowed = |act: &EntryTreatment| matches!(act, EntryTreatment::Out(ports) if ports.contains(&port));
        if self.packet_outs.get(&number).is_some_and(|to| *to != port) {
            return Err(format!("packet-out {number} left by port {port}"));
        }
        if !self.packet_outs.contains_key(&number) {
            self.check(number, &format!("left by port {port}"), is_allowed)?;
        }
        let frame = self.frame(number)?;
        if frame.left_by.contains(&port) {
            return Err(format!("frame {number} left by port {port} twice"));
        }
        frame.left_by.push(port);
        self.seen += 1;
        Ok(())
    }

    /// Notes that a controller received a frame. Controllers of OpenFlow 1.0 also receive table misses.
    ///
    /// # Errors
    /// Fails if no state that may have handled the frame sends it there.
    pub(super) fn punted(&mut self, number: u64) -> Result<(), String> {
        self.check(number, "was sent to a controller", |act| {
            matches!(act, EntryTreatment::Controller | EntryTreatment::Absent)
        })?;
        self.seen += 1;
        Ok(())
    }

    fn frame(&mut self, number: u64) -> Result<&mut SentFrame, String> {
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        self.frames.get_mut(place).ok_or_else(|| format!("frame {number} was never sent"))
    }

    /// Checks that a frame may have been handled by a state of which `is_allowed` is true.
    fn check(&mut self, number: u64, what: &str, is_allowed: impl Fn(&EntryTreatment) -> bool) -> Result<(), String> {
        let (key, floor) = self.frame(number).map(|frame| (frame.key, frame.floor))?;
        let Some(known) = self.keys.get(&key) else {
            return if is_allowed(&EntryTreatment::Absent) {
                Ok(())
            } else {
                Err(format!("frame {number} {what} without an entry"))
            };
        };
        let states = &known.states[floor..];
        if states.iter().any(|state| is_allowed(&state.act) || state.expires && is_allowed(&EntryTreatment::Absent)) {
            return Ok(());
        }
        Err(format!("frame {number} of key {key} {what}; the states it may have met: {states:?}"))
    }
}

impl EntryStateHistory {
    fn new() -> EntryStateHistory {
        EntryStateHistory {
            states: vec![RequestedEntryState { act: EntryTreatment::Absent, expires: false }],
            confirmed: 0,
        }
    }
}
