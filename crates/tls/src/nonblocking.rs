//! The listening end of a TLS stream over a socket that does not block, for loops that wait on many sockets.
use crate::Credentials;
use std::io::{self, Read, Write};
use tokio_rustls::rustls::ServerConnection;

/// Stream of TLS whose handshake takes place within reads and writes. As with a socket that does not block, an error
/// of kind `WouldBlock` says that nothing can be done for now.
#[derive(Debug)]
pub struct NonBlockingTlsStream<S> {
    stream: S,
    session: ServerConnection,
}

impl Credentials {
    /// Begins the listening end's handshake on a stream that does not block. The caller limits the time that it takes.
    ///
    /// # Errors
    /// The library refuses the configuration, which was checked when the files were read.
    pub fn begin_accept<S: Read + Write>(&self, stream: S) -> io::Result<NonBlockingTlsStream<S>> {
        let session = ServerConnection::new(self.current().server_config()).map_err(io::Error::other)?;
        Ok(NonBlockingTlsStream { stream, session })
    }
}

impl<S: Read + Write> NonBlockingTlsStream<S> {
    /// Returns the stream below.
    pub fn get_ref(&self) -> &S {
        &self.stream
    }

    /// Returns true if encrypted bytes wait until the stream below can be written.
    pub fn wants_write(&self) -> bool {
        self.session.wants_write()
    }

    /// Writes encrypted bytes that wait, as far as the stream below takes them.
    ///
    /// # Errors
    /// The stream below fails, also with `WouldBlock`.
    pub fn write_waiting(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            self.session.write_tls(&mut self.stream)?;
        }
        Ok(())
    }

    /// Tells the peer that nothing more follows.
    pub fn send_close(&mut self) {
        self.session.send_close_notify();
        // The peer may be gone already.
        let _ = self.write_waiting();
    }

    fn write_if_possible(&mut self) -> io::Result<()> {
        match self.write_waiting() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            other => other,
        }
    }
}

impl<S: Read + Write> Read for NonBlockingTlsStream<S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
            let is_end = self.session.read_tls(&mut self.stream)? == 0;
            let processed = self.session.process_new_packets();
            // Also what tells the peer why it is refused.
            self.write_if_possible()?;
            processed.map_err(|refused| io::Error::new(io::ErrorKind::InvalidData, refused))?;
            if is_end && self.session.is_handshaking() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

impl<S: Read + Write> Write for NonBlockingTlsStream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_waiting()?;
        let taken = self.session.writer().write(bytes)?;
        self.write_if_possible()?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_waiting()
    }
}
