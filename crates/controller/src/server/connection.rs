//! Runs one connection: moves bytes between its stream and its session in the hub.
use super::SharedHub;
use super::listener::AsyncByteStream;
use crate::ConnectionId;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, watch};
use weir_units::Clock;

/// Bytes read at once from a connection.
const READ_BYTES: usize = 32 << 10;
/// Bytes waiting for a switch above which reading from it pauses.
const PAUSE_BYTES: usize = 1 << 20;
/// Longest time to write the remaining output when this end closes a connection.
const LINGER: Duration = Duration::from_millis(200);

/// Task of one connection.
pub(super) struct ConnectionTask {
    pub(super) id: ConnectionId,
    pub(super) shared: Arc<SharedHub>,
    pub(super) wake: Arc<Notify>,
    pub(super) stopped: watch::Receiver<bool>,
}

/// Bytes on their way to a switch. They are taken from its session as a whole and written in pieces.
#[derive(Default)]
struct PendingWrite {
    bytes: Vec<u8>,
    written: usize,
}

impl PendingWrite {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.written..]
    }
}

impl ConnectionTask {
    pub(super) async fn run(mut self, stream: Box<dyn AsyncByteStream>, is_tls: bool) {
        let mut stream = match self.do_tls_handshake(stream, is_tls).await {
            Ok(stream) => stream,
            Err(error) => {
                let now = self.shared.clock.now();
                return self.shared.hub().disconnect(now, self.id, &weir_tls::explain(&error));
            }
        };
        let mut writing = PendingWrite::default();
        let reason = self.exchange(&mut stream, &mut writing).await;
        let _ = tokio::time::timeout(LINGER, self.flush(&mut stream, &mut writing)).await;
        let now = self.shared.clock.now();
        self.shared.hub().disconnect(now, self.id, &reason);
    }

    /// Does the TLS handshake if the connection uses TLS. The session's handshake time runs meanwhile.
    async fn do_tls_handshake(
        &mut self,
        stream: Box<dyn AsyncByteStream>,
        is_tls: bool,
    ) -> io::Result<Box<dyn AsyncByteStream>> {
        if !is_tls {
            return Ok(stream);
        }
        let credentials =
            self.shared.credentials.as_ref().ok_or_else(|| io::Error::other("no certificate was given"))?;
        tokio::select! {
            shaken = credentials.accept(stream) => Ok(Box::new(shaken?)),
            () = stopped(&mut self.stopped) => Err(io::Error::other("the controller stops")),
        }
    }

    /// Moves bytes both ways until the connection ends. Returns the reason for the end.
    async fn exchange(&mut self, stream: &mut Box<dyn AsyncByteStream>, writing: &mut PendingWrite) -> String {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let mut input = vec![0; READ_BYTES];
        loop {
            let waiting = self.take_output(writing);
            if self.shared.hub().is_ended(self.id) {
                return "ended".into();
            }
            let deadline = self.until_deadline();
            tokio::select! {
                read = reader.read(&mut input), if waiting < PAUSE_BYTES => match read {
                    Ok(0) => return "the switch closed the connection".into(),
                    Ok(length) => {
                        let now = self.shared.clock.now();
                        self.shared.hub().receive(now, self.id, &input[..length]);
                        // Lets other connections run, however much this switch sends.
                        tokio::task::yield_now().await;
                    }
                    Err(error) => return weir_tls::explain(&error),
                },
                wrote = writer.write(writing.rest()), if !writing.rest().is_empty() => match wrote {
                    Ok(length) => writing.written += length,
                    Err(error) => return weir_tls::explain(&error),
                },
                () = self.wake.notified() => {}
                () = tokio::time::sleep(deadline) => {
                    let now = self.shared.clock.now();
                    self.shared.hub().poll(now, self.id);
                }
                () = stopped(&mut self.stopped) => return "the controller stops".into(),
            }
        }
    }

    /// Takes output from the session once all earlier output is written. Returns the number of bytes that wait in
    /// all.
    fn take_output(&self, writing: &mut PendingWrite) -> usize {
        let mut hub = self.shared.hub();
        let Some(output) = hub.output(self.id) else {
            return writing.rest().len();
        };
        if writing.rest().is_empty() {
            writing.bytes.clear();
            writing.written = 0;
            std::mem::swap(output, &mut writing.bytes);
        }
        writing.rest().len() + output.len()
    }

    fn until_deadline(&self) -> Duration {
        let deadline = self.shared.hub().deadline(self.id);
        deadline.map_or(Duration::MAX, |deadline| deadline.since(self.shared.clock.now()))
    }

    /// Writes the remaining output before closing: most likely the error that tells the switch the reason.
    async fn flush(&self, stream: &mut Box<dyn AsyncByteStream>, writing: &mut PendingWrite) -> io::Result<()> {
        while self.take_output(writing) > 0 {
            writing.written += stream.write(writing.rest()).await?;
        }
        stream.shutdown().await
    }
}

/// Waits until the controller is stopped or dropped.
pub(super) async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
