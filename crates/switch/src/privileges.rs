//! Drops the privileges that a switch does not need once its ports are open.
//!
//! Kept, as far as the process has them: the right to open raw sockets and to configure interfaces (`CAP_NET_RAW`,
//! `CAP_NET_ADMIN`), to load the small program that AF_XDP needs (`CAP_BPF`), to lock memory (`CAP_IPC_LOCK`) and to
//! listen on TCP ports below 1024 (`CAP_NET_BIND_SERVICE`). They are needed because ports are added while the switch
//! runs, restored when it ends, and reopened when a device comes back, and because virtual switches with listeners are
//! added. Among those dropped is entering other network namespaces (`CAP_SYS_ADMIN`): an AF_XDP port opened
//! after that cannot configure the other end of its veth there, and warns if that would be necessary.
use caps::{CapSet, Capability, CapsHashSet};
use rustix::process::{Gid, Uid};
use rustix::thread;

/// Capabilities that a switch needs to add, restore and reopen ports, and to listen for controllers.
const KEPT: [Capability; 5] = [
    Capability::CAP_NET_RAW,
    Capability::CAP_NET_ADMIN,
    Capability::CAP_BPF,
    Capability::CAP_IPC_LOCK,
    Capability::CAP_NET_BIND_SERVICE,
];

/// User and group ids for the process to take on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnixUser {
    uid: Uid,
    gid: Gid,
}

impl UnixUser {
    /// Looks up a user in `/etc/passwd` by name or by number.
    ///
    /// # Errors
    /// Fails if there is no such user or the file cannot be read.
    pub fn find(name: &str) -> Result<UnixUser, String> {
        let file = std::fs::read_to_string("/etc/passwd").map_err(|error| format!("/etc/passwd: {error}"))?;
        find_in(&file, name).ok_or_else(|| format!("found user `{name}`, expected one that /etc/passwd names"))
    }
}

fn find_in(file: &str, wanted: &str) -> Option<UnixUser> {
    file.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _password, uid, gid) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let user = UnixUser { uid: Uid::from_raw(uid.parse().ok()?), gid: Gid::from_raw(gid.parse().ok()?) };
        (name == wanted || uid == wanted).then_some(user)
    })
}

/// Drops all capabilities except those a switch needs, changes to `user` if one is given, and forbids new privileges,
/// so that no program started later can regain any. Affects the calling thread and the threads it starts later: call
/// it before other threads exist.
///
/// # Errors
/// A message that names the step that was refused.
pub fn reduce(user: Option<UnixUser>) -> Result<(), String> {
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

fn become_user(user: UnixUser) -> rustix::io::Result<()> {
    // Permitted capabilities survive the change of user; `reduce` drops the unneeded ones right after.
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
        let weir = UnixUser { uid: Uid::from_raw(990), gid: Gid::from_raw(991) };
        assert_eq!(find_in(file, "weir"), Some(weir));
        assert_eq!(find_in(file, "990"), Some(weir));
        assert_eq!(find_in(file, "broken"), None);
        assert_eq!(find_in(file, "nobody"), None);
    }

    /// Runs `reduce` on its own thread, because it affects only the calling thread.
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

    /// The switch listens after it has given up its privileges, so root may use ports below 1024 only if this right
    /// stays.
    #[test]
    fn the_right_to_listen_below_1024_stays() {
        let (before, after) = std::thread::spawn(|| {
            let has = || caps::has_cap(None, CapSet::Effective, Capability::CAP_NET_BIND_SERVICE).unwrap();
            let before = has();
            reduce(None).unwrap();
            (before, has())
        })
        .join()
        .unwrap();
        assert_eq!(before, after);
    }
}
