//! Reads big-endian fields of a message with bounds checks.
use super::Decoded;
use crate::codec::DecodeError;
use crate::model::{BufferId, Bytes, ErrorType, Version};
use std::fmt::Display;
use weir_packet::MacAddr;

/// Estimated length in bytes of a short list element, for reserving memory.
const LIKELY_BYTES: usize = 6;
/// Maximum number of list elements for which memory is reserved in advance.
const LIKELY_MOST: usize = 16;

/// Unread bytes of a message, or of a part of a message.
///
/// The reader knows the name of the part and the error for a wrong length, so that decoding functions need not pass
/// them.
#[derive(Clone)]
pub(crate) struct WireReader<'a> {
    bytes: &'a [u8],
    /// Offset in the message of the first unread byte.
    at: usize,
    what: &'static str,
    short: ErrorType,
    version: Version,
    /// Nesting depth of the current part within parts of the same kind.
    depth: usize,
    /// True if the flow-mods of 1.0 carry their table number in the high byte of the command.
    pub(crate) has_tables: bool,
}

impl<'a> WireReader<'a> {
    /// Creates a reader of `bytes`. `what` names the part in error messages; `short` is the error for a part that is
    /// too short or too long.
    pub(crate) fn new(bytes: &'a [u8], what: &'static str, short: impl Into<ErrorType>) -> Self {
        WireReader { bytes, at: 0, what, short: short.into(), version: Version::V13, depth: 0, has_tables: false }
    }

    /// Sets the version of the following fields. Initially 1.3.
    pub(crate) fn set_version(&mut self, version: Version) {
        self.version = version;
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// Returns a copy of the reader, for looking ahead.
    pub(crate) fn fork(&self) -> Self {
        WireReader { ..*self }
    }

    /// Returns the offset in the message of the next byte.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn left(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Sets the name of the part in error messages.
    pub(crate) fn rename(&mut self, what: &'static str) {
        self.what = what;
    }

    /// Increments the nesting depth. Fails with `error` if it then exceeds `most`.
    pub(crate) fn nest(&mut self, most: usize, error: impl Into<ErrorType>) -> Decoded<()> {
        self.depth += 1;
        if self.depth <= most {
            return Ok(());
        }
        Err(self.error(error, format_args!("found {} of these inside each other, expected at most {most}", self.depth)))
    }

    /// Returns an error that points to the next byte.
    pub(crate) fn error(&self, error: impl Into<ErrorType>, reason: impl Display) -> DecodeError {
        self.error_at(self.at, error, reason)
    }

    /// Returns an error that points to the byte with offset `at` in the message.
    pub(crate) fn error_at(&self, at: usize, error: impl Into<ErrorType>, reason: impl Display) -> DecodeError {
        DecodeError { error: error.into(), reason: format!("byte {at}: {}: {reason}", self.what) }
    }

    /// Reads `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Decoded<&'a [u8]> {
        let Some((taken, left)) = self.bytes.split_at_checked(count) else {
            return Err(self.error(self.short, format_args!("found {} bytes left, expected {count}", self.left())));
        };
        self.bytes = left;
        self.at += count;
        Ok(taken)
    }

    pub(crate) fn read_array<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn read_u8(&mut self) -> Decoded<u8> {
        self.read_array().map(u8::from_be_bytes)
    }

    pub(crate) fn read_u16(&mut self) -> Decoded<u16> {
        self.read_array().map(u16::from_be_bytes)
    }

    pub(crate) fn read_u32(&mut self) -> Decoded<u32> {
        self.read_array().map(u32::from_be_bytes)
    }

    pub(crate) fn read_u64(&mut self) -> Decoded<u64> {
        self.read_array().map(u64::from_be_bytes)
    }

    /// Returns the next two numbers without reading them; `None` if fewer than eight bytes are left.
    pub(crate) fn peek_u32_pair(&self) -> Option<(u32, u32)> {
        let mut head = WireReader { ..*self };
        Some((head.read_u32().ok()?, head.read_u32().ok()?))
    }

    pub(crate) fn read_mac(&mut self) -> Decoded<MacAddr> {
        self.read_array().map(MacAddr)
    }

    pub(crate) fn read_buffer_id(&mut self) -> Decoded<Option<BufferId>> {
        Ok(Some(self.read_u32()?).filter(|id| *id != super::NO_BUFFER_ID).map(BufferId))
    }

    /// Skips `count` bytes of padding with any content: "unused bytes are ignored by the receiver" (OpenFlow 1.3.5,
    /// 7).
    pub(crate) fn skip(&mut self, count: usize) -> Decoded<()> {
        self.take(count).map(|_| ())
    }

    /// Reads a text from a field of `count` bytes, up to the first zero byte. A text without zero byte is cut to
    /// `count - 1` bytes. Each invalid UTF-8 sequence becomes `?`, which is never longer, so that the text fits its
    /// field again.
    pub(crate) fn read_text(&mut self, count: usize) -> Decoded<String> {
        let field = self.take(count)?;
        let bytes = field.split(|byte| *byte == 0).next().unwrap_or_default();
        let mut text = String::from_utf8_lossy(bytes).replace(char::REPLACEMENT_CHARACTER, "?");
        text.truncate(text.floor_char_boundary(count - 1));
        Ok(text)
    }

    /// Reads all remaining bytes into a copy.
    pub(crate) fn read_rest(&mut self) -> Bytes {
        Bytes(self.read_rest_slice().to_vec())
    }

    /// Reads all remaining bytes without copying them.
    pub(crate) fn read_rest_slice(&mut self) -> &'a [u8] {
        let rest = std::mem::take(&mut self.bytes);
        self.at += rest.len();
        rest
    }

    /// Splits off the next `count` bytes as a part. `what` and `short` are the part's name and its error for a wrong
    /// length.
    pub(crate) fn take_part(&mut self, count: usize, what: &'static str, short: impl Into<ErrorType>) -> Decoded<Self> {
        let mut part = WireReader { what, short: short.into(), ..*self };
        part.bytes = WireReader { ..part }.take(count)?;
        self.skip(count)?;
        Ok(part)
    }

    /// Splits off a part that carries its own length, a 16-bit number at offset `length_at`. Errors: `short` if the
    /// length is below `least` or exceeds the remaining bytes; the enclosing part's error if the length field itself
    /// is missing.
    pub(crate) fn take_element(
        &mut self,
        what: &'static str,
        length_at: usize,
        least: usize,
        short: impl Into<ErrorType>,
    ) -> Decoded<Self> {
        let mut head = WireReader { ..*self };
        head.skip(length_at)?;
        let length = usize::from(head.read_u16()?);
        let part = self.take_part(length, what, short)?;
        if length < least {
            return Err(part.error(part.short, format_args!("found length {length}, expected at least {least}")));
        }
        Ok(part)
    }

    /// Reads elements to the end. `read` must consume at least one byte on each call, or fail.
    pub(crate) fn read_list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Decoded<T>) -> Decoded<Vec<T>> {
        // Lists are usually short: this reserves memory once. The limit bounds the memory reserved for malformed
        // lists.
        let mut list = Vec::with_capacity((self.left() / LIKELY_BYTES).min(LIKELY_MOST));
        while !self.is_empty() {
            list.push(read(self)?);
        }
        Ok(list)
    }

    /// Checks that all bytes were read.
    pub(crate) fn finish(&self) -> Decoded<()> {
        match self.left() {
            0 => Ok(()),
            left => Err(self.error(self.short, format_args!("found {left} bytes left, expected none"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::error::{BadAction, BadRequest};

    #[test]
    fn errors_say_where() {
        let mut reader = WireReader::new(&[0, 1, 0, 9, 7], "echo", BadRequest::BadLen);
        assert_eq!(reader.read_u8().unwrap(), 0);
        let error = reader.read_u64().unwrap_err();
        assert_eq!(
            (error.error, &*error.reason),
            (BadRequest::BadLen.into(), "byte 1: echo: found 4 bytes left, expected 8")
        );
        let error = reader.finish().unwrap_err();
        assert_eq!(error.reason, "byte 1: echo: found 4 bytes left, expected none");
    }

    #[test]
    fn elements_keep_to_their_length() {
        let bytes = [0, 1, 0, 5, 7, 0, 2, 0, 9];
        let mut reader = WireReader::new(&bytes, "list", BadRequest::BadLen);
        let mut first = reader.take_element("action", 2, 4, BadAction::BadLen).unwrap();
        first.skip(4).unwrap();
        assert_eq!((first.at(), first.read_u8().unwrap(), first.is_empty()), (4, 7, true));
        let error = reader.take_element("action", 2, 4, BadAction::BadLen).err().unwrap();
        assert_eq!(error.reason, "byte 5: action: found 4 bytes left, expected 9");
        let mut reader = WireReader::new(&bytes, "list", BadRequest::BadLen);
        let error = reader.take_element("action", 2, 8, BadAction::BadLen).err().unwrap();
        assert_eq!(
            (error.error, &*error.reason),
            (BadAction::BadLen.into(), "byte 0: action: found length 5, expected at least 8")
        );
        let error = WireReader::new(&bytes[..3], "list", BadRequest::BadLen)
            .take_element("action", 2, 4, BadAction::BadLen)
            .err()
            .unwrap();
        assert_eq!(
            (error.error, &*error.reason),
            (BadRequest::BadLen.into(), "byte 2: list: found 1 bytes left, expected 2")
        );
    }

    #[test]
    fn text_ends_at_its_first_zero() {
        let mut reader = WireReader::new(b"p1\0xa\xff\xffbabc", "name", BadRequest::BadLen);
        assert_eq!(reader.read_text(4).unwrap(), "p1");
        assert_eq!(reader.read_text(4).unwrap(), "a??");
        assert_eq!(reader.read_text(3).unwrap(), "ab");
    }
}
