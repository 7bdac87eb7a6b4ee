//! Stream to a switch, of any transport, without blocking.
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use weir_tls::NonBlockingTlsStream;

/// Room that is left in a buffer for the largest record of TLS and what decrypted bytes already wait.
const TLS_ROOM: usize = 20 << 10;

/// Stream to a switch.
#[derive(Debug)]
pub(super) enum SwitchStream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<NonBlockingTlsStream<TcpStream>>),
}

impl SwitchStream {
    /// Returns the bytes for which a read needs room at least.
    pub(super) fn least_room(&self) -> usize {
        match self {
            SwitchStream::Tcp(_) | SwitchStream::Unix(_) => 1,
            SwitchStream::Tls(_) => 2 * TLS_ROOM,
        }
    }

    /// Reads what is there, as far as it fits. Returns the number of bytes, 0 for none; `None` at the end.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let read = match self {
            SwitchStream::Tcp(stream) => stream.read(into),
            SwitchStream::Unix(stream) => stream.read(into),
            SwitchStream::Tls(stream) => read_records(stream, into),
        };
        match read {
            Ok(0) => Ok(None),
            Ok(length) => Ok(Some(length)),
            Err(error) if is_later(&error) => Ok(Some(0)),
            Err(error) => Err(error),
        }
    }

    /// Writes bytes once. Returns how many were taken, 0 if none can be at present.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let wrote = match self {
            SwitchStream::Tcp(stream) => stream.write(bytes),
            SwitchStream::Unix(stream) => stream.write(bytes),
            SwitchStream::Tls(stream) => stream.write(bytes),
        };
        match wrote {
            Err(error) if is_later(&error) => Ok(0),
            other => other,
        }
    }

    /// Writes what an earlier write or the handshake left. Returns true if something is still left.
    pub(super) fn write_waiting(&mut self) -> io::Result<bool> {
        let SwitchStream::Tls(stream) = self else { return Ok(false) };
        match stream.write_waiting() {
            Err(error) if !is_later(&error) => Err(error),
            _ => Ok(stream.wants_write()),
        }
    }

    /// Tells the switch that nothing more follows. What it has not read yet reaches it.
    pub(super) fn finish(&mut self) {
        // The switch may be gone already.
        let _ = match self {
            SwitchStream::Tcp(stream) => stream.shutdown(Shutdown::Write),
            SwitchStream::Unix(stream) => stream.shutdown(Shutdown::Write),
            SwitchStream::Tls(stream) => {
                stream.send_close();
                stream.get_ref().shutdown(Shutdown::Write)
            }
        };
    }
}

impl AsFd for SwitchStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            SwitchStream::Tcp(stream) => stream.as_fd(),
            SwitchStream::Unix(stream) => stream.as_fd(),
            SwitchStream::Tls(stream) => stream.get_ref().as_fd(),
        }
    }
}

/// Reads several records of TLS. Nothing that is decrypted stays behind: the socket would not report it again.
fn read_records(stream: &mut NonBlockingTlsStream<TcpStream>, into: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    loop {
        match stream.read(&mut into[length..]) {
            Ok(0) => return Ok(length),
            Ok(more) => length += more,
            // The error comes again at the next read.
            Err(_) if length > 0 => return Ok(length),
            Err(error) => return Err(error),
        }
        if into.len() - length < TLS_ROOM {
            return Ok(length);
        }
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
