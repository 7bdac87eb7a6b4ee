//! Receives and sends many IPv4 datagrams in one system call, with their source and destination addresses.
use super::messages::{BATCH, ReceiveBufferPair, constant_vector, count_of, empty_message, receive_messages, vector};
use super::{PlainData as _, check, fitted};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use weir_packet::{Frame, FramePool};

/// Room for one control message with an `in_pktinfo`.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct PktInfoCmsg([u8; 64]);

const CONTROL_BYTES: usize = size_of::<PktInfoCmsg>();

/// Maximum length in bytes of the header in front of a frame.
pub(crate) const HEADER_MAX: usize = 16;

/// Buffers for the datagrams of one receive call.
pub(crate) struct DatagramReceiveSlots {
    slots: [ReceiveBufferPair; BATCH],
    names: [libc::sockaddr_in; BATCH],
    control: [PktInfoCmsg; BATCH],
    vectors: [[libc::iovec; 2]; BATCH],
    headers: [libc::mmsghdr; BATCH],
}

// SAFETY: the pointers in `vectors` and `headers` are written right before each system call and not read after it,
// but for the control pointers, which `take` reads before anything moves (the structure is boxed).
unsafe impl Send for DatagramReceiveSlots {}

/// A received datagram.
pub(crate) struct ReceivedDatagram {
    /// Bytes of the datagram; for a raw socket from the IP header on.
    pub(crate) frame: Frame,
    /// Source address of the datagram.
    pub(crate) source: Ipv4Addr,
    /// Destination address, if the socket reports it (`IP_PKTINFO`).
    pub(crate) destination: Option<Ipv4Addr>,
}

impl DatagramReceiveSlots {
    pub(crate) fn new() -> Box<Self> {
        Box::new(DatagramReceiveSlots {
            slots: std::array::from_fn(|_| ReceiveBufferPair::default()),
            names: [libc::sockaddr_in::zeroed(); BATCH],
            control: [PktInfoCmsg([0; CONTROL_BYTES]); BATCH],
            vectors: [[vector(&mut []); 2]; BATCH],
            headers: [empty_message(); BATCH],
        })
    }

    /// Receives at most `max` datagrams (and at most [`BATCH`]) into the first slots. Returns their number.
    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>, pool: &mut FramePool, max: usize) -> io::Result<usize> {
        let count = max.min(BATCH);
        for slot in 0..count {
            self.prepare(slot, pool);
        }
        // SAFETY: the first `count` headers point to names, control buffers and vectors of `self`, and these to
        // buffers that `prepare` just took from its slots; all are borrowed mutably during the call, and the lengths
        // are theirs.
        unsafe { receive_messages(socket, &mut self.headers[..count]) }
    }

    fn prepare(&mut self, slot: usize, pool: &mut FramePool) {
        self.vectors[slot] = self.slots[slot].buffers(pool).map(vector);
        let header = &mut self.headers[slot].msg_hdr;
        header.msg_name = (&raw mut self.names[slot]).cast();
        header.msg_namelen = super::length_of::<libc::sockaddr_in>();
        header.msg_iov = self.vectors[slot].as_mut_ptr();
        header.msg_iovlen = 2;
        header.msg_control = self.control[slot].0.as_mut_ptr().cast();
        header.msg_controllen = fitted(CONTROL_BYTES);
        header.msg_flags = 0;
    }

    /// Takes the datagram out of a slot that was received into; `None` if it was longer than every buffer.
    pub(crate) fn take(&mut self, slot: usize) -> Option<ReceivedDatagram> {
        let message = &self.headers[slot];
        if message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
            return None;
        }
        let source = address(self.names[slot].sin_addr);
        let destination = packet_info(&message.msg_hdr).map(|info| address(info.ipi_addr));
        let frame = self.slots[slot].take(usize::try_from(message.msg_len).unwrap_or(0));
        Some(ReceivedDatagram { frame, source, destination })
    }
}

/// Header in front of a frame, with the destination of the datagram.
#[derive(Clone, Copy)]
pub(crate) struct OuterHeader {
    /// Header, in the first `length` bytes.
    pub(crate) header: [u8; HEADER_MAX],
    pub(crate) length: usize,
    pub(crate) destination: Ipv4Addr,
    /// UDP port; 0 for a raw socket.
    pub(crate) port: u16,
}

/// Buffers for the datagrams of one send call.
pub(crate) struct DatagramSendSlots {
    names: [libc::sockaddr_in; BATCH],
    vectors: [[libc::iovec; 2]; BATCH],
    headers: [libc::mmsghdr; BATCH],
}

// SAFETY: the pointers in `vectors` and `headers` are written right before each system call and not read after it.
unsafe impl Send for DatagramSendSlots {}

impl DatagramSendSlots {
    pub(crate) fn new() -> Box<Self> {
        Box::new(DatagramSendSlots {
            names: [libc::sockaddr_in::zeroed(); BATCH],
            vectors: [[vector(&mut []); 2]; BATCH],
            headers: [empty_message(); BATCH],
        })
    }

    /// Sends the first of `frames`, at most [`BATCH`], each after its heading. Returns the number sent, at least one.
    /// An error concerns the first frame.
    pub(crate) fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        headings: &[OuterHeader],
        frames: &[Frame],
    ) -> io::Result<usize> {
        let count = frames.len().min(headings.len()).min(BATCH);
        for (slot, (heading, frame)) in headings.iter().zip(frames).take(count).enumerate() {
            self.names[slot] = name(heading.destination, heading.port);
            let header = heading.header.get(..heading.length).unwrap_or(&heading.header);
            self.vectors[slot] = [constant_vector(header), constant_vector(frame.bytes())];
            let message = &mut self.headers[slot].msg_hdr;
            message.msg_name = (&raw mut self.names[slot]).cast();
            message.msg_namelen = super::length_of::<libc::sockaddr_in>();
            message.msg_iov = self.vectors[slot].as_mut_ptr();
            message.msg_iovlen = 2;
        }
        let headers = self.headers.as_mut_ptr();
        // SAFETY: the first `count` headers point to names and vectors of `self`, and these to `headings` and
        // `frames`, all borrowed during the call; sending only reads through them.
        check(unsafe { libc::sendmmsg(socket.as_raw_fd(), headers, count_of(count), fitted(libc::MSG_DONTWAIT)) })
    }
}

/// Returns a socket address.
pub(crate) fn name(address: Ipv4Addr, port: u16) -> libc::sockaddr_in {
    let mut name = libc::sockaddr_in::zeroed();
    name.sin_family = u16::try_from(libc::AF_INET).unwrap_or(0);
    name.sin_port = port.to_be();
    name.sin_addr.s_addr = address.to_bits().to_be();
    name
}

fn address(address: libc::in_addr) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from_be(address.s_addr))
}

/// Returns the packet information that the kernel attached to a datagram because of `IP_PKTINFO`.
fn packet_info(header: &libc::msghdr) -> Option<libc::in_pktinfo> {
    // SAFETY: the header's control pointer and length describe what recvmmsg just wrote.
    let control = unsafe { libc::CMSG_FIRSTHDR(header).as_ref()? };
    let long_enough =
        fitted::<usize, _>(control.cmsg_len) >= size_of::<libc::cmsghdr>() + size_of::<libc::in_pktinfo>();
    if control.cmsg_level != libc::IPPROTO_IP || control.cmsg_type != libc::IP_PKTINFO || !long_enough {
        return None;
    }
    // SAFETY: a control message of this type holds this structure (its length was just checked), maybe unaligned.
    Some(unsafe { libc::CMSG_DATA(control).cast::<libc::in_pktinfo>().read_unaligned() })
}
