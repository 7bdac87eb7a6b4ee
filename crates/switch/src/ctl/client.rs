//! Client of a control socket, as used by `weir ctl`.
use super::{CtlProgram, CtlReply, CtlRequest, SnoopRecord};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Time limit for a reply: dumping a full table takes a second or so.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// Errors of a request to a switch or a controller.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum CtlError {
    #[error("no {program} answers at {path}: {error}{advice}")]
    Connect { program: &'static str, path: String, error: io::Error, advice: String },
    #[error("the {program} stopped answering: {error}")]
    Io { program: &'static str, error: io::Error },
    #[error("the {program}'s answer is not understood: {error}; is it of the same version?")]
    Answer { program: &'static str, error: serde_json::Error },
    #[error("{0}")]
    Refused(String),
}

/// A connection to a control socket.
#[derive(Debug)]
pub struct CtlClient {
    program: CtlProgram,
    stream: BufReader<UnixStream>,
    /// Beginning of a record whose end has not come yet.
    record: String,
}

impl CtlClient {
    /// Connects to a switch's control socket at `path`.
    ///
    /// # Errors
    /// Fails if no switch listens there.
    pub fn connect(path: &Path) -> Result<CtlClient, CtlError> {
        CtlClient::connect_to(CtlProgram::Switch, path)
    }

    /// Connects to the control socket of a program at `path`.
    ///
    /// # Errors
    /// Fails if no program listens there.
    pub fn connect_to(program: CtlProgram, path: &Path) -> Result<CtlClient, CtlError> {
        let kind = program.name();
        let refused = |error: io::Error| CtlError::Connect {
            program: kind,
            path: path.display().to_string(),
            advice: match error.kind() {
                io::ErrorKind::PermissionDenied => format!("; only the user who runs the {kind} may ask it"),
                _ => "; is it running?".to_owned(),
            },
            error,
        };
        let stream = UnixStream::connect(path).map_err(refused)?;
        stream.set_read_timeout(Some(ANSWER_TIME)).map_err(|error| CtlError::Io { program: kind, error })?;
        Ok(CtlClient { program, stream: BufReader::new(stream), record: String::new() })
    }

    // The errors have no sources: their messages contain them, and programs that print a chain would print them twice.
    fn stopped(&self) -> impl Fn(io::Error) -> CtlError + use<> {
        let program = self.program.name();
        move |error| CtlError::Io { program, error }
    }

    fn not_understood(&self) -> impl Fn(serde_json::Error) -> CtlError + use<> {
        let program = self.program.name();
        move |error| CtlError::Answer { program, error }
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
        let (stopped, not_understood) = (self.stopped(), self.not_understood());
        self.stream.get_mut().set_read_timeout(time).map_err(&stopped)?;
        match self.stream.read_line(&mut self.record) {
            Ok(0) => Err(stopped(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended the connection"))),
            Ok(_) => serde_json::from_str(&std::mem::take(&mut self.record)).map(Some).map_err(not_understood),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(stopped(error)),
        }
    }

    /// Returns the connection itself, which is an OpenFlow channel after [`CtlRequest::Monitor`], and the channel's
    /// first bytes, which were read with the reply.
    ///
    /// # Errors
    /// The system refuses to remove the time limit of a reply.
    pub fn into_channel(self) -> Result<(UnixStream, Vec<u8>), CtlError> {
        let (read, stopped) = (self.stream.buffer().to_vec(), self.stopped());
        let stream = self.stream.into_inner();
        stream.set_read_timeout(None).map_err(stopped)?;
        Ok((stream, read))
    }

    /// Sends a request and waits for the reply.
    ///
    /// # Errors
    /// Fails if the program refuses, with its reason, or does not reply.
    pub fn ask(&mut self, request: &CtlRequest) -> Result<serde_json::Value, CtlError> {
        let (stopped, not_understood) = (self.stopped(), self.not_understood());
        let mut line = serde_json::to_vec(request).map_err(&not_understood)?;
        line.push(b'\n');
        self.stream.get_mut().write_all(&line).map_err(&stopped)?;
        let mut answer = String::new();
        if self.stream.read_line(&mut answer).map_err(&stopped)? == 0 {
            return Err(stopped(io::ErrorKind::UnexpectedEof.into()));
        }
        match serde_json::from_str(&answer).map_err(not_understood)? {
            CtlReply::Ok(value) => Ok(value),
            CtlReply::Error(problem) => Err(CtlError::Refused(problem)),
        }
    }
}
