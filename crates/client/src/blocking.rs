//! Sends requests and waits for the replies.
use crate::{ClientError, OpenFlowClient};
use rustix::event::PollFlags;
use std::io::ErrorKind;
use weir_openflow::model::multipart::{MultipartRequest, ReplyBody};
use weir_openflow::session::SendError;
use weir_openflow::{Body, Message};
use weir_units::{Clock as _, Instant};

impl OpenFlowClient {
    /// Sends a message and returns the body of its reply. Asynchronous messages of the switch are skipped.
    ///
    /// # Errors
    /// An error from the switch, to this message or to an earlier one. Also fails if the channel ends, or if nothing
    /// arrives for the time of patience.
    pub fn ask(&mut self, body: Body) -> Result<Body, ClientError> {
        let xid = self.tell(body)?;
        self.reply_to(xid)
    }

    /// Sends encoded messages, then `body`. Returns the body of the reply to `body`. Messages that arrive meanwhile
    /// are read meanwhile.
    ///
    /// # Errors
    /// Fails for the reasons of [`OpenFlowClient::ask`].
    pub fn stream_and_ask(&mut self, bytes: &[u8], body: Body) -> Result<Body, ClientError> {
        self.write_and_read(bytes, true)?;
        self.ask(body)
    }

    /// Requests flow entries. Returns the number of entries in all parts of the reply.
    ///
    /// # Errors
    /// Fails for the reasons of [`OpenFlowClient::ask`].
    pub fn ask_flows(&mut self, request: MultipartRequest) -> Result<u64, ClientError> {
        let xid = self.tell(Body::MultipartRequest(request))?;
        let mut found = 0;
        loop {
            let part = match self.reply_to(xid)? {
                Body::MultipartReply(part) => part,
                other => {
                    let expected = "a part of the statistics of entries";
                    return Err(ClientError::Unexpected { found: format!("{other:?}"), expected });
                }
            };
            if let ReplyBody::Flow(entries) = &part.body {
                found += entries.len() as u64;
            }
            if !part.more {
                return Ok(found);
            }
        }
    }

    /// Sends a message that has no reply on success. Returns its transaction id.
    ///
    /// # Errors
    /// Fails for the reasons of [`OpenFlowClient::send`]. Also fails if the switch does not read for the time of
    /// patience.
    pub fn tell(&mut self, body: Body) -> Result<u32, ClientError> {
        let xid = self.session.allocate_xid();
        match self.session.send(&Message { xid, body }) {
            Ok(()) => {}
            Err(SendError::NotUp) => return Err(ClientError::ended("the session is not up")),
            Err(error) => return Err(ClientError::Unencodable(error.to_string())),
        }
        self.flush_all()?;
        Ok(xid)
    }

    /// Sends encoded messages without reading.
    ///
    /// # Errors
    /// Fails if the channel ends, or if the switch does not read for the time of patience.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        self.write_and_read(bytes, false)
    }

    /// Writes encoded messages, reading meanwhile if `reads`. Messages of the session itself (replies to echo
    /// requests) wait, so that none splits one of these.
    fn write_and_read(&mut self, bytes: &[u8], reads: bool) -> Result<(), ClientError> {
        self.flush_all()?;
        let mut left = bytes;
        let mut heard = self.clock.now();
        while !left.is_empty() {
            match self.stream.write(left) {
                Ok(written) => {
                    left = &left[written..];
                    heard = self.clock.now();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let flags = if reads { PollFlags::IN | PollFlags::OUT } else { PollFlags::OUT };
                    self.wait_ready(flags, heard)?;
                    if reads {
                        self.read_once()?;
                        self.drop_unsolicited()?;
                    }
                }
                Err(error) => return Err(ClientError::ended(format!("writing to it: {error}"))),
            }
        }
        Ok(())
    }

    /// Drops messages that arrived while messages were written. An error among them is returned.
    fn drop_unsolicited(&mut self) -> Result<(), ClientError> {
        while let Some((_, message)) = self.received.pop_front() {
            if let Body::Error(error) = message.body {
                return Err(ClientError::Refused { xid: message.xid, error: error.error });
            }
        }
        Ok(())
    }

    fn flush_all(&mut self) -> Result<(), ClientError> {
        let heard = self.clock.now();
        self.flush()?;
        while self.has_output() {
            self.wait_ready(PollFlags::OUT, heard)?;
            self.flush()?;
        }
        Ok(())
    }

    fn reply_to(&mut self, xid: u32) -> Result<Body, ClientError> {
        let mut heard = self.clock.now();
        loop {
            while let Some((at, message)) = self.poll()? {
                heard = at;
                match message.body {
                    Body::Error(error) => {
                        return Err(ClientError::Refused { xid: message.xid, error: error.error });
                    }
                    body if message.xid == xid => return Ok(body),
                    _ => {}
                }
            }
            let flags = if self.has_output() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            self.wait_ready(flags, heard)?;
        }
    }

    /// Waits for the channel to be ready for `flags`.
    ///
    /// # Errors
    /// [`ClientError::Silent`] if the patience, counted from `heard`, is over.
    fn wait_ready(&self, flags: PollFlags, heard: Instant) -> Result<(), ClientError> {
        let left = self.patience.saturating_sub(self.clock.now().since(heard));
        if left.is_zero() {
            return Err(ClientError::Silent(self.patience));
        }
        self.wait(flags, left);
        Ok(())
    }
}
