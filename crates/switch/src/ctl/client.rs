//! Client of a switch's control socket, as used by `weir ctl`.
use super::{CtlReply, CtlRequest, SnoopRecord};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Time limit for a reply: dumping a full table takes a second or so.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// Errors of a request to a switch.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum CtlError {
    #[error("no switch answers at {path}: {error}{advice}")]
    Connect { path: String, error: io::Error, advice: &'static str },
    #[error("the switch stopped answering: {0}")]
    Io(io::Error),
    #[error("the switch's answer is not understood: {0}; is it of the same version?")]
    Answer(serde_json::Error),
    #[error("{0}")]
    Refused(String),
}

// Without sources: the messages contain them, and programs that print a chain of errors would print them twice.
impl From<io::Error> for CtlError {
    fn from(error: io::Error) -> CtlError {
        CtlError::Io(error)
    }
}

impl From<serde_json::Error> for CtlError {
    fn from(error: serde_json::Error) -> CtlError {
        CtlError::Answer(error)
    }
}

/// A connection to a switch's control socket.
#[derive(Debug)]
pub struct CtlClient {
    stream: BufReader<UnixStream>,
    /// Beginning of a record whose end has not come yet.
    record: String,
}

impl CtlClient {
    /// Connects to the control socket at `path`.
    ///
    /// # Errors
    /// Fails if no switch listens there.
    pub fn connect(path: &Path) -> Result<CtlClient, CtlError> {
        let refused = |error: io::Error| CtlError::Connect {
            path: path.display().to_string(),
            advice: match error.kind() {
                io::ErrorKind::PermissionDenied => "; only the user who runs the switch may ask it",
                _ => "; is it running?",
            },
            error,
        };
        let stream = UnixStream::connect(path).map_err(refused)?;
        stream.set_read_timeout(Some(ANSWER_TIME))?;
        Ok(CtlClient { stream: BufReader::new(stream), record: String::new() })
    }

    /// Waits for the next record after [`CtlRequest::Snoop`], at most `time` if one is given. Returns `None` when the
    /// time is over.
    ///
    /// # Errors
    /// The switch ends the connection, the connection fails, or the record cannot be decoded.
    pub fn next_record(&mut self, time: Option<Duration>) -> Result<Option<SnoopRecord>, CtlError> {
        if time.is_some_and(|time| time.is_zero()) {
            return Ok(None);
        }
        self.stream.get_mut().set_read_timeout(time)?;
        match self.stream.read_line(&mut self.record) {
            Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended the connection").into()),
            Ok(_) => Ok(Some(serde_json::from_str(&std::mem::take(&mut self.record))?)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the connection itself, which is an OpenFlow channel after [`CtlRequest::Monitor`], and the channel's
    /// first bytes, which were read with the reply.
    ///
    /// # Errors
    /// The system refuses to remove the time limit of a reply.
    pub fn into_channel(self) -> Result<(UnixStream, Vec<u8>), CtlError> {
        let read = self.stream.buffer().to_vec();
        let stream = self.stream.into_inner();
        stream.set_read_timeout(None)?;
        Ok((stream, read))
    }

    /// Sends a request and waits for the reply.
    ///
    /// # Errors
    /// Fails if the switch refuses, with its reason, or does not reply.
    pub fn ask(&mut self, request: &CtlRequest) -> Result<serde_json::Value, CtlError> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.stream.get_mut().write_all(&line)?;
        let mut answer = String::new();
        if self.stream.read_line(&mut answer)? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        match serde_json::from_str(&answer)? {
            CtlReply::Ok(value) => Ok(value),
            CtlReply::Error(problem) => Err(CtlError::Refused(problem)),
        }
    }
}
