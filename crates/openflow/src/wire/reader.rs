//! Reads big-endian fields from a message without ever reaching past its end.
use super::Decoded;
use crate::codec::DecodeError;
use crate::model::{BufferId, Bytes, ErrorType, Version};
use std::fmt::Display;
use weir_packet::MacAddr;

/// Bytes that an element of a list takes at least, in all likelihood.
const LIKELY_BYTES: usize = 6;
/// Elements of a list that memory is taken for beforehand, at most.
const LIKELY_MOST: usize = 16;

/// What is left of a message, or of one part of it.
///
/// It knows what it reads and which error its shortness is, so that the code that reads fields only says which fields.
#[derive(Clone)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    /// Offset in the message of the first byte left.
    at: usize,
    what: &'static str,
    short: ErrorType,
    version: Version,
    /// Parts of a kind that can hold itself, around this one.
    depth: usize,
    /// Whether 1.0's flow-mods have their table in the command's high byte.
    pub(crate) has_tables: bool,
}

impl<'a> Reader<'a> {
    /// Reads `bytes`, the `what`; `short` is the error when it ends too early or too late.
    pub(crate) fn new(bytes: &'a [u8], what: &'static str, short: impl Into<ErrorType>) -> Self {
        Reader { bytes, at: 0, what, short: short.into(), version: Version::V13, depth: 0, has_tables: false }
    }

    /// What is read from now on is of this version; 1.3 without that.
    pub(crate) fn set_version(&mut self, version: Version) {
        self.version = version;
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// A reader of the same bytes, to look ahead with.
    pub(crate) fn fork(&self) -> Self {
        Reader { ..*self }
    }

    /// Offset in the message of the next byte.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn left(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Calls what is read from now on `what`.
    pub(crate) fn rename(&mut self, what: &'static str) {
        self.what = what;
    }

    /// Says that this part is inside another of its kind, of which at most `most` may be around it.
    pub(crate) fn nest(&mut self, most: usize, error: impl Into<ErrorType>) -> Decoded<()> {
        self.depth += 1;
        if self.depth <= most {
            return Ok(());
        }
        Err(self.error(error, format_args!("found {} of these inside each other, expected at most {most}", self.depth)))
    }

    /// An error at the next byte.
    pub(crate) fn error(&self, error: impl Into<ErrorType>, reason: impl Display) -> DecodeError {
        self.error_at(self.at, error, reason)
    }

    /// An error at a byte of the message.
    pub(crate) fn error_at(&self, at: usize, error: impl Into<ErrorType>, reason: impl Display) -> DecodeError {
        DecodeError { error: error.into(), reason: format!("byte {at}: {}: {reason}", self.what) }
    }

    /// The next `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Decoded<&'a [u8]> {
        let Some((taken, left)) = self.bytes.split_at_checked(count) else {
            return Err(self.error(self.short, format_args!("found {} bytes left, expected {count}", self.left())));
        };
        self.bytes = left;
        self.at += count;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self) -> Decoded<u8> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Decoded<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Decoded<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Decoded<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// The next two numbers, left there; `None` if they are not.
    pub(crate) fn peek_u32_pair(&self) -> Option<(u32, u32)> {
        let mut head = Reader { ..*self };
        Some((head.u32().ok()?, head.u32().ok()?))
    }

    pub(crate) fn mac(&mut self) -> Decoded<MacAddr> {
        self.array().map(MacAddr)
    }

    pub(crate) fn buffer_id(&mut self) -> Decoded<Option<BufferId>> {
        Ok(Some(self.u32()?).filter(|id| *id != super::NO_BUFFER_ID).map(BufferId))
    }

    /// Padding, whatever it holds: "unused bytes are ignored by the receiver" (OpenFlow 1.3.5, 7).
    pub(crate) fn skip(&mut self, count: usize) -> Decoded<()> {
        self.take(count).map(|_| ())
    }

    /// Text in a field of `count` bytes, up to its first zero byte or, if that is missing, to where it should be. What is not
    /// UTF-8 becomes `?`, which takes no more bytes, so that the text fits its field again.
    pub(crate) fn text(&mut self, count: usize) -> Decoded<String> {
        let field = self.take(count)?;
        let bytes = field.split(|byte| *byte == 0).next().unwrap_or_default();
        let mut text = String::from_utf8_lossy(bytes).replace(char::REPLACEMENT_CHARACTER, "?");
        text.truncate(text.floor_char_boundary(count - 1));
        Ok(text)
    }

    /// Everything left.
    pub(crate) fn rest(&mut self) -> Bytes {
        Bytes(self.rest_slice().to_vec())
    }

    /// Everything left, where it is.
    pub(crate) fn rest_slice(&mut self) -> &'a [u8] {
        let rest = std::mem::take(&mut self.bytes);
        self.at += rest.len();
        rest
    }

    /// The next `count` bytes as a part of its own, whose shortness is `short`.
    pub(crate) fn part(&mut self, count: usize, what: &'static str, short: impl Into<ErrorType>) -> Decoded<Self> {
        let mut part = Reader { what, short: short.into(), ..*self };
        part.bytes = Reader { ..part }.take(count)?;
        self.skip(count)?;
        Ok(part)
    }

    /// A part that carries its own length, in 16 bits `length_at` bytes from its start, of at least `least` bytes. That its
    /// length is wrong is the error `short`; that there is none, the error of what it is a part of.
    pub(crate) fn element(
        &mut self,
        what: &'static str,
        length_at: usize,
        least: usize,
        short: impl Into<ErrorType>,
    ) -> Decoded<Self> {
        let mut head = Reader { ..*self };
        head.skip(length_at)?;
        let length = usize::from(head.u16()?);
        let part = self.part(length, what, short)?;
        if length < least {
            return Err(part.error(part.short, format_args!("found length {length}, expected at least {least}")));
        }
        Ok(part)
    }

    /// Reads to the end with `read`, which takes at least a byte each time or fails.
    pub(crate) fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Decoded<T>) -> Decoded<Vec<T>> {
        // Few short ones, as a rule: one allocation then, and no more memory than that for what comes to nothing.
        let mut list = Vec::with_capacity((self.left() / LIKELY_BYTES).min(LIKELY_MOST));
        while !self.is_empty() {
            list.push(read(self)?);
        }
        Ok(list)
    }

    /// Checks that nothing is left.
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
        let mut reader = Reader::new(&[0, 1, 0, 9, 7], "echo", BadRequest::BadLen);
        assert_eq!(reader.u8().unwrap(), 0);
        let error = reader.u64().unwrap_err();
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
        let mut reader = Reader::new(&bytes, "list", BadRequest::BadLen);
        let mut first = reader.element("action", 2, 4, BadAction::BadLen).unwrap();
        first.skip(4).unwrap();
        assert_eq!((first.at(), first.u8().unwrap(), first.is_empty()), (4, 7, true));
        let error = reader.element("action", 2, 4, BadAction::BadLen).err().unwrap();
        assert_eq!(error.reason, "byte 5: action: found 4 bytes left, expected 9");
        let mut reader = Reader::new(&bytes, "list", BadRequest::BadLen);
        let error = reader.element("action", 2, 8, BadAction::BadLen).err().unwrap();
        assert_eq!(
            (error.error, &*error.reason),
            (BadAction::BadLen.into(), "byte 0: action: found length 5, expected at least 8")
        );
        let error = Reader::new(&bytes[..3], "list", BadRequest::BadLen)
            .element("action", 2, 4, BadAction::BadLen)
            .err()
            .unwrap();
        assert_eq!(
            (error.error, &*error.reason),
            (BadRequest::BadLen.into(), "byte 2: list: found 1 bytes left, expected 2")
        );
    }

    #[test]
    fn text_ends_at_its_first_zero() {
        let mut reader = Reader::new(b"p1\0xa\xff\xffbabc", "name", BadRequest::BadLen);
        assert_eq!(reader.text(4).unwrap(), "p1");
        assert_eq!(reader.text(4).unwrap(), "a??");
        assert_eq!(reader.text(3).unwrap(), "ab");
    }
}
