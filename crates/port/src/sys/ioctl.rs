//! ioctl(2) requests about network interfaces.
use super::{PlainData, check, fitted};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Request and answer structure about an interface (`struct ifreq`).
#[derive(Clone, Copy)]
pub(crate) struct InterfaceRequest(libc::ifreq);

impl InterfaceRequest {
    /// Returns a request about no interface yet.
    pub(crate) fn empty() -> Self {
        // SAFETY: ifreq is plain data: a name and a union of integers, addresses and one pointer, which may be null.
        InterfaceRequest(unsafe { std::mem::zeroed() })
    }

    /// Returns a request about the interface `name`; `None` if that is no possible interface name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains('\0') {
            return None;
        }
        let mut request = InterfaceRequest::empty();
        for (to, from) in request.0.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from.cast_signed();
        }
        Some(request)
    }

    /// Sends a request for which the kernel reads and writes only the structure itself.
    pub(crate) fn send(&mut self, socket: BorrowedFd<'_>, request: u64) -> io::Result<()> {
        // SAFETY: the structure is writable; callers use this for requests without a pointer in the union.
        check(unsafe { libc::ioctl(socket.as_raw_fd(), fitted(request), &raw mut self.0) })?;
        Ok(())
    }

    /// Sends a SIOCETHTOOL request: the kernel reads and fills in `command`.
    pub(crate) fn ethtool<T: PlainData>(&mut self, socket: BorrowedFd<'_>, command: &mut T) -> io::Result<()> {
        self.0.ifr_ifru.ifru_data = (&raw mut *command).cast();
        // SAFETY: `command` is writable during the call, and each caller's type is at least as long as what its command
        // number (and the lengths inside) makes the kernel write.
        let result = check(unsafe { libc::ioctl(socket.as_raw_fd(), fitted(libc::SIOCETHTOOL), &raw mut self.0) });
        self.0.ifr_ifru.ifru_data = std::ptr::null_mut();
        result.map(drop)
    }

    /// Returns the flags (`IFF_UP`...) after SIOCGIFFLAGS.
    pub(crate) fn flags(&self) -> i32 {
        // SAFETY: every pattern of bytes is a value of this union field.
        i32::from(unsafe { self.0.ifr_ifru.ifru_flags })
    }

    /// Sets the flags for SIOCSIFFLAGS or TUNSETIFF. Only the low 16 bits are kept.
    #[expect(clippy::cast_possible_truncation, reason = "all flags there are fit in 16 bits")]
    pub(crate) fn set_flags(&mut self, flags: i32) {
        self.0.ifr_ifru.ifru_flags = flags as libc::c_short;
    }

    /// Returns the index after SIOCGIFINDEX, or the MTU after SIOCGIFMTU.
    pub(crate) fn integer(&self) -> i32 {
        // SAFETY: every pattern of bytes is a value of this union field.
        unsafe { self.0.ifr_ifru.ifru_ifindex }
    }

    /// Sets the index for SIOCGIFNAME, which fills in the name.
    pub(crate) fn set_index(&mut self, index: i32) {
        self.0.ifr_ifru.ifru_ifindex = index;
    }

    /// Returns the name, as requested or as the kernel filled it in.
    pub(crate) fn name(&self) -> String {
        let bytes = self.0.ifr_name.iter().map(|c| c.cast_unsigned()).take_while(|&byte| byte != 0);
        String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
    }

    /// Returns the hardware address after SIOCGIFHWADDR, after its type (`ARPHRD_ETHER`...).
    pub(crate) fn hardware_address(&self) -> (u16, [u8; 6]) {
        // SAFETY: every pattern of bytes is a value of this union field.
        let address = unsafe { self.0.ifr_ifru.ifru_hwaddr };
        let mut bytes = [0; 6];
        for (to, from) in bytes.iter_mut().zip(address.sa_data) {
            *to = from.cast_unsigned();
        }
        (address.sa_family, bytes)
    }
}

/// Calls an ioctl(2) whose argument is a number.
pub(crate) fn with_number(file: BorrowedFd<'_>, request: libc::Ioctl, number: u32) -> io::Result<()> {
    // SAFETY: callers use this for requests whose argument is a number, so no memory is touched.
    check(unsafe { libc::ioctl(file.as_raw_fd(), request, libc::c_ulong::from(number)) })?;
    Ok(())
}

/// Calls an ioctl(2) whose argument is a pointer to a number that the kernel reads.
pub(crate) fn with_number_at(file: BorrowedFd<'_>, request: libc::Ioctl, number: i32) -> io::Result<()> {
    // SAFETY: the kernel reads one int, which lives during the call.
    check(unsafe { libc::ioctl(file.as_raw_fd(), request, &raw const number) })?;
    Ok(())
}

/// Returns the names of all interfaces.
pub(crate) fn interface_names() -> Vec<String> {
    let mut names = Vec::new();
    // SAFETY: returns null or a list that ends with index 0; this function owns the list until it frees it below.
    let list = unsafe { libc::if_nameindex() };
    if list.is_null() {
        return names;
    }
    for at in 0.. {
        // SAFETY: the list ends with index 0, where the loop stops.
        let entry = unsafe { *list.add(at) };
        if entry.if_index == 0 {
            break;
        }
        // SAFETY: each entry before the last has a name that ends with a zero byte.
        names.push(unsafe { std::ffi::CStr::from_ptr(entry.if_name) }.to_string_lossy().into_owned());
    }
    // SAFETY: the list came from if_nameindex and is not used any more.
    unsafe { libc::if_freenameindex(list) };
    names
}
