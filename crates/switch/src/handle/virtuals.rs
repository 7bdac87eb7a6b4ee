//! Connects virtual switches to controllers in this process, and returns their state.
use super::{SwitchError, SwitchHandle};
use crate::control::{ByteStream, ControlThreadCommand};
use crate::snapshot::SwitchSnapshot;
use tokio::io::{AsyncRead, AsyncWrite};

impl SwitchHandle {
    /// Opens a control channel of a virtual switch on a stream to a controller, as [`SwitchHandle::connect_stream`]
    /// does for the switch itself. The channel ends with the stream or the virtual switch.
    ///
    /// # Errors
    /// Fails if there is no virtual switch of that name; [`SwitchError::Ended`] if it ends now.
    pub fn connect_virtual_stream<S>(&self, name: &str, stream: S) -> Result<(), SwitchError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let orders = self.virtuals.find(name)?.control.orders;
        orders.send(ControlThreadCommand::Stream(ByteStream::new(stream))).map_err(|_| SwitchError::Ended)
    }

    /// Returns the present state of a virtual switch: of its tables, channels and ports.
    ///
    /// # Errors
    /// Fails if there is no virtual switch of that name; [`SwitchError::Stopped`].
    pub fn virtual_snapshot(&self, name: &str) -> Result<SwitchSnapshot, SwitchError> {
        let entry = self.virtuals.find(name)?;
        let engine = entry.control.engine.snapshot_blocking()?;
        Ok(SwitchSnapshot::new(&entry.identity, engine, &entry.control.registry))
    }
}
