//! Opens sockets, sets their options and binds them.
use super::{PlainData, check, length_of, owned};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

// SAFETY: integers.
unsafe impl PlainData for libc::packet_mreq {}
// SAFETY: integers.
unsafe impl PlainData for libc::tpacket_stats {}
// SAFETY: integers.
unsafe impl PlainData for libc::sockaddr_ll {}
// SAFETY: integers.
unsafe impl PlainData for libc::sockaddr_xdp {}

// SAFETY: integers.
unsafe impl PlainData for libc::sockaddr_in {}

/// Opens a non-blocking socket that programs started later do not inherit.
pub(crate) fn open(domain: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: socket(2) takes integers.
    owned(unsafe { libc::socket(domain, kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, protocol) })
}

/// Sets a socket option: setsockopt(2).
pub(crate) fn set<T: PlainData>(socket: BorrowedFd<'_>, level: i32, option: i32, value: &T) -> io::Result<()> {
    let value: *const T = value;
    // SAFETY: `value` is readable for the length given.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value.cast(), length_of::<T>()) })?;
    Ok(())
}

/// Reads a socket option: getsockopt(2). Fields of `T` that an older kernel does not know stay zero.
pub(crate) fn get<T: PlainData>(socket: BorrowedFd<'_>, level: i32, option: i32) -> io::Result<T> {
    let mut value = T::zeroed();
    let mut length = length_of::<T>();
    // SAFETY: `value` is writable for the length given, and plain data, whatever is written.
    check(unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut value).cast(), &raw mut length) })?;
    Ok(value)
}

/// Binds a socket to an address: bind(2).
pub(crate) fn bind<T: PlainData>(socket: BorrowedFd<'_>, address: &T) -> io::Result<()> {
    let address: *const T = address;
    // SAFETY: `address` is readable for the length given.
    check(unsafe { libc::bind(socket.as_raw_fd(), address.cast(), length_of::<T>()) })?;
    Ok(())
}

/// Returns the error pending on a socket; reading clears it.
pub(crate) fn pending_error(socket: BorrowedFd<'_>) -> io::Result<()> {
    match get::<i32>(socket, libc::SOL_SOCKET, libc::SO_ERROR)? {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// Makes an AF_XDP socket send the frames in its transmit ring.
pub(crate) fn kick(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no data and no address are given, so no pointer is read.
    let result =
        unsafe { libc::sendto(socket.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Creates a descriptor that is readable when one of `sockets` is readable, or when `watch`, which is not one of
/// them, holds an error.
pub(crate) fn any_of<'a>(
    sockets: impl Iterator<Item = BorrowedFd<'a>>,
    watch: Option<BorrowedFd<'a>>,
) -> io::Result<OwnedFd> {
    // SAFETY: epoll_create1(2) takes an integer.
    let epoll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
    let readable = sockets.map(|socket| (socket, libc::EPOLLIN.cast_unsigned()));
    // Errors are reported for any event mask.
    for (socket, events) in readable.chain(watch.map(|watch| (watch, 0))) {
        let mut event = libc::epoll_event { events, u64: 0 };
        // SAFETY: `event` is readable during the call.
        check(unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, socket.as_raw_fd(), &raw mut event) })?;
    }
    Ok(epoll)
}
