//! Giving up what a switch does not need, once its ports are open.
//!
//! What stays: the right to open raw sockets and to configure interfaces (`CAP_NET_RAW`, `CAP_NET_ADMIN`), to load the small
//! program that AF_XDP needs (`CAP_BPF`) and to lock its memory (`CAP_IPC_LOCK`), as far as the process has them: ports are
//! added while the switch runs, restored when it ends, and opened again when a device comes back. What goes with the rest is
//! entering other network namespaces (`CAP_SYS_ADMIN`): an AF_XDP port opened later than this cannot set the other end of its
//! veth there, and warns if it should.
use caps::{CapSet, Capability, CapsHashSet};
use rustix::process::{Gid, Uid};
use rustix::thread;

/// What a switch needs to add, restore and reopen ports.
const KEPT: [Capability; 4] =
    [Capability::CAP_NET_RAW, Capability::CAP_NET_ADMIN, Capability::CAP_BPF, Capability::CAP_IPC_LOCK];

/// A user to become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    uid: Uid,
    gid: Gid,
}

impl User {
    /// A user by name as in `/etc/passwd`, or by number.
    ///
    /// # Errors
    /// There is none.
    pub fn find(name: &str) -> Result<User, String> {
        let file = std::fs::read_to_string("/etc/passwd").map_err(|error| format!("/etc/passwd: {error}"))?;
        find_in(&file, name).ok_or_else(|| format!("found user `{name}`, expected one that /etc/passwd names"))
    }
}

fn find_in(file: &str, wanted: &str) -> Option<User> {
    file.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _password, uid, gid) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let user = User { uid: Uid::from_raw(uid.parse().ok()?), gid: Gid::from_raw(gid.parse().ok()?) };
        (name == wanted || uid == wanted).then_some(user)
    })
}

/// Gives up all capabilities but those a switch needs, becomes `user` if one is named, and makes sure no program can give
/// anything back. Concerns the calling thread and those it starts later: to be called before there are others.
///
/// # Errors
/// What was refused, for people.
pub fn reduce(user: Option<User>) -> Result<(), String> {
    let had = caps::read(None, CapSet::Permitted).map_err(|error| format!("reading capabilities: {error}"))?;
    let kept: CapsHashSet = KEPT.into_iter().filter(|capability| had.contains(capability)).collect();
    if let Some(user) = user {
        become_user(user).map_err(|error| format!("becoming user {}: {error}; start as root", user.uid.as_raw()))?;
    }
    for set in [CapSet::Ambient, CapSet::Inheritable] {
        caps::clear(None, set).map_err(|error| format!("giving up {set:?} capabilities: {error}"))?;
    }
    for set in [CapSet::Effective, CapSet::Permitted] {
        caps::set(None, set, &kept).map_err(|error| format!("giving up {set:?} capabilities: {error}"))?;
    }
    thread::set_no_new_privs(true).map_err(|error| format!("giving up new privileges: {error}"))
}

fn become_user(user: User) -> rustix::io::Result<()> {
    // Permitted capabilities outlive the change; which of them, `reduce` decides right after.
    thread::set_keep_capabilities(true)?;
    thread::set_thread_groups(&[])?;
    thread::set_thread_res_gid(user.gid, user.gid, user.gid)?;
    thread::set_thread_res_uid(user.uid, user.uid, user.uid)?;
    thread::set_keep_capabilities(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name_and_number() {
        let file = "root:x:0:0:root:/root:/bin/sh\nweir:x:990:991::/:/usr/sbin/nologin\nbroken:x\n";
        let weir = User { uid: Uid::from_raw(990), gid: Gid::from_raw(991) };
        assert_eq!(find_in(file, "weir"), Some(weir));
        assert_eq!(find_in(file, "990"), Some(weir));
        assert_eq!(find_in(file, "broken"), None);
        assert_eq!(find_in(file, "nobody"), None);
    }

    /// On a thread of its own, which alone is concerned.
    #[test]
    fn only_what_is_needed_stays() {
        let kept = std::thread::spawn(|| {
            reduce(None).unwrap();
            (caps::read(None, CapSet::Permitted).unwrap(), caps::read(None, CapSet::Effective).unwrap())
        });
        let (permitted, effective) = kept.join().unwrap();
        assert!(permitted.iter().all(|capability| KEPT.contains(capability)), "{permitted:?}");
        assert_eq!(permitted, effective);
    }
}
