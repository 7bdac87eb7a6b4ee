//! What the script asked the switch for, and what may become of each frame because of it.
//!
//! A flow entry has a key: the UDP port that it matches. The states of a key are numbered in the order they were asked
//! for. A barrier reply confirms them up to a number; a frame sent after that meets this state or a later one, never an
//! older one.
use std::collections::HashMap;
use weir_openflow::model::PortNo;

/// What an entry does with a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// There is no entry.
    Absent,
    /// It drops.
    Drop,
    /// It sends to each of these ports.
    Out(Vec<PortNo>),
    /// It sends to controllers.
    Controller,
}

/// A state of a key.
#[derive(Debug, Clone)]
struct State {
    act: Act,
    /// Whether the entry may end by itself.
    expires: bool,
}

/// A key's states and what is known of them.
#[derive(Debug)]
struct Key {
    states: Vec<State>,
    /// The state that a barrier reply confirmed last.
    confirmed: usize,
}

/// A frame that was sent to the switch.
#[derive(Debug)]
struct Sent {
    key: u16,
    /// The state that was confirmed when it was sent.
    floor: usize,
    /// The ports that it left by.
    left_by: Vec<PortNo>,
}

/// See the module's page.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    keys: HashMap<u16, Key>,
    frames: Vec<Sent>,
    /// Where packet-outs are to leave, by the frame's number.
    packet_outs: HashMap<u64, PortNo>,
    /// Ports and controllers that frames were seen at.
    pub(super) seen: u64,
}

impl Ledger {
    /// A key enters a state, if and when the switch carries out what was sent. The state's number.
    pub(super) fn ask(&mut self, key: u16, act: Act, expires: bool) -> usize {
        let known = self.keys.entry(key).or_insert_with(Key::new);
        known.states.push(State { act, expires });
        known.states.len() - 1
    }

    /// A barrier reply confirms a state.
    pub(super) fn confirm(&mut self, key: u16, state: usize) {
        if let Some(known) = self.keys.get_mut(&key) {
            known.confirmed = known.confirmed.max(state);
        }
    }

    /// A frame of a key is sent; its number.
    pub(super) fn send(&mut self, key: u16) -> u64 {
        let floor = self.keys.get(&key).map_or(0, |known| known.confirmed);
        self.frames.push(Sent { key, floor, left_by: Vec::new() });
        self.frames.len() as u64 - 1
    }

    /// A packet-out for a port is sent; its frame's number.
    pub(super) fn send_out(&mut self, to: PortNo) -> u64 {
        let number = self.send(0);
        self.packet_outs.insert(number, to);
        number
    }

    /// Frames of a key sent so far.
    pub(super) fn sent_of(&self, key: u16) -> u64 {
        self.frames.iter().filter(|frame| frame.key == key).count() as u64
    }

    /// The last frame was not sent after all.
    pub(super) fn take_back(&mut self) {
        self.frames.pop();
    }

    /// Frames sent so far, packet-outs among them.
    pub(super) fn sent(&self) -> usize {
        self.frames.len()
    }

    /// A frame left by a port.
    ///
    /// # Errors
    /// No state that it may have met sends it there, or it left there before.
    pub(super) fn left(&mut self, number: u64, port: PortNo) -> Result<(), String> {
        let is_allowed = |act: &Act| matches!(act, Act::Out(ports) if ports.contains(&port));
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

    /// A controller got a frame. One of 1.0 gets what no entry matches.
    ///
    /// # Errors
    /// No state that it may have met sends it there.
    pub(super) fn punted(&mut self, number: u64) -> Result<(), String> {
        self.check(number, "was sent to a controller", |act| matches!(act, Act::Controller | Act::Absent))?;
        self.seen += 1;
        Ok(())
    }

    fn frame(&mut self, number: u64) -> Result<&mut Sent, String> {
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        self.frames.get_mut(place).ok_or_else(|| format!("frame {number} was never sent"))
    }

    /// Whether a frame may have met a state of which `is_allowed` is true.
    fn check(&mut self, number: u64, what: &str, is_allowed: impl Fn(&Act) -> bool) -> Result<(), String> {
        let (key, floor) = self.frame(number).map(|frame| (frame.key, frame.floor))?;
        let Some(known) = self.keys.get(&key) else {
            return if is_allowed(&Act::Absent) {
                Ok(())
            } else {
                Err(format!("frame {number} {what} without an entry"))
            };
        };
        let states = &known.states[floor..];
        if states.iter().any(|state| is_allowed(&state.act) || state.expires && is_allowed(&Act::Absent)) {
            return Ok(());
        }
        Err(format!("frame {number} of key {key} {what}; the states it may have met: {states:?}"))
    }
}

impl Key {
    fn new() -> Key {
        Key { states: vec![State { act: Act::Absent, expires: false }], confirmed: 0 }
    }
}
