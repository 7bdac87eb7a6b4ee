//! Sends packets that entries output unchanged, without running actions: a shortcut for what [`crate::execute`] does
//! with each of them.
use crate::ports::Ports;
use crate::{DatapathOutput, Drops};
use weir_openflow::model::PortNo;
use weir_packet::{Frame, FramePool};

/// State needed to send unchanged packets.
pub(crate) struct DirectOutput<'a> {
    pub(crate) ports: &'a Ports,
    pub(crate) drops: &'a mut Drops,
    pub(crate) pool: &'a mut FramePool,
    pub(crate) out: &'a mut DatapathOutput,
}

impl DirectOutput<'_> {
    /// Sends frames that entries output to an ordinary port, whose list is probably at index `hint`. Returns the
    /// list's index.
    #[inline(always)]
    pub(crate) fn send(&mut self, in_port: PortNo, port: PortNo, frames: &mut [Frame], hint: usize) -> usize {
        if let Err(reason) = self.ports.may_output(in_port, port) {
            self.drops.count(reason, frames.len() as u64);
            frames.iter_mut().for_each(|frame| self.pool.give(std::mem::take(frame)));
            return hint;
        }
        let at = self.out.list(port, hint);
        self.out.frames[at].1.extend(frames.iter_mut().map(std::mem::take));
        at
    }
}
