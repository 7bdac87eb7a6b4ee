//! Writes big-endian fields of a message.
use super::{Encoded, NO_BUFFER_ID};
use crate::codec::EncodeError;
use crate::model::{BufferId, Version};
use weir_packet::MacAddr;

/// A message being appended to a buffer.
pub(crate) struct WireWriter<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    version: Version,
}

impl<'a> WireWriter<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>, version: Version) -> Self {
        let start = out.len();
        WireWriter { out, start, version }
    }

    /// Returns the number of bytes written so far, which is the offset of the next byte in the message.
    pub(crate) fn at(&self) -> usize {
        self.out.len() - self.start
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// Returns the error that the version cannot carry `what`.
    pub(crate) fn cannot(&self, what: impl Into<String>) -> EncodeError {
        EncodeError { version: self.version, what: what.into() }
    }

    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    pub(crate) fn write_u8(&mut self, value: u8) {
        self.out.push(value);
    }

    pub(crate) fn write_u16(&mut self, value: u16) {
        self.write_bytes(&value.to_be_bytes());
    }

    pub(crate) fn write_u32(&mut self, value: u32) {
        self.write_bytes(&value.to_be_bytes());
    }

    pub(crate) fn write_u64(&mut self, value: u64) {
        self.write_bytes(&value.to_be_bytes());
    }

    pub(crate) fn write_mac(&mut self, mac: MacAddr) {
        self.write_bytes(&mac.0);
    }

    pub(crate) fn write_buffer_id(&mut self, id: Option<BufferId>) {
        self.write_u32(id.map_or(NO_BUFFER_ID, |id| id.0));
    }

    pub(crate) fn write_zeros(&mut self, count: usize) {
        self.out.resize(self.out.len() + count, 0);
    }

    /// Writes zeros up to a multiple of eight bytes, counted from offset `since`.
    pub(crate) fn pad_from(&mut self, since: usize) {
        self.write_zeros((self.at() - since).next_multiple_of(8) - (self.at() - since));
    }

    /// Writes a text into a field of `count` bytes. The text is cut at a character boundary, so that at least one
    /// zero byte ends it.
    pub(crate) fn write_text(&mut self, text: &str, count: usize) {
        let cut = text.floor_char_boundary(count - 1);
        self.write_bytes(&text.as_bytes()[..cut]);
        self.write_zeros(count - cut);
    }

    /// Writes the number of bytes written since offset `since` into the 16 bits at offset `place`. Fails if the
    /// number exceeds 65535.
    pub(crate) fn set_length(&mut self, place: usize, since: usize) -> Encoded {
        let length = self.at() - since;
        let Ok(length) = u16::try_from(length) else {
            return Err(self.cannot(format!("{length} bytes in one part, at most 65535 fit")));
        };
        self.out[self.start + place..][..2].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_padding_count_from_the_part() {
        let mut out = vec![9];
        let mut writer = WireWriter::new(&mut out, Version::V13);
        writer.write_u16(7);
        let part = writer.at();
        writer.write_u16(0);
        writer.write_text("eth0", 4);
        writer.pad_from(part);
        writer.set_length(part, part).unwrap();
        assert_eq!(out, [9, 0, 7, 0, 8, b'e', b't', b'h', 0, 0, 0]);
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let mut out = Vec::new();
        let mut writer = WireWriter::new(&mut out, Version::V13);
        writer.write_zeros(65536);
        let error = writer.set_length(0, 0).unwrap_err();
        assert_eq!(error.to_string(), "OpenFlow 1.3 cannot carry 65536 bytes in one part, at most 65535 fit");
    }
}
