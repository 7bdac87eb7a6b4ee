//! Removes system calls that a switch never makes from its process.
//!
//! Once its ports are open, `weir switch` drops privileges ([`crate::privileges`]) and installs this seccomp filter.
//! A program that took over the process through a defect then cannot start programs, trace other processes, mount,
//! load kernel modules, set the clock or become another user, whatever rights the process has. The filter lists
//! refused calls, not allowed ones: the C library and the kernel interfaces of ports may begin to use harmless calls
//! that a present allow-list would break.
//!
//! The kernel keeps a bitmap of the calls that a filter always allows (Linux 5.11, `SECCOMP_FILTER` action cache), so
//! the calls that a packet needs (`recvmsg`, `sendto`, `poll`, `ioctl`) do not run the filter.
use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};
use std::collections::BTreeMap;

/// Calls refused with `EPERM` on every processor: a running switch makes none of them.
const REFUSED: &[c_long] = &[
    // Starting programs.
    libc::SYS_execve,
    libc::SYS_execveat,
    // Reading other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // The kernel and the machine.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_quotactl,
    libc::SYS_personality,
    // File systems.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fsconfig,
    libc::SYS_fspick,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    // Users and new namespaces.
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setgroups,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_unshare,
    // The clock.
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    // Keys, and kernel interfaces in which many faults were found.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Calls refused with `EPERM` that exist only on x86.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[c_long] =
    &[libc::SYS_fork, libc::SYS_vfork, libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_kexec_file_load];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[c_long] = &[];

/// Bit that marks a call of the x32 interface, a second set of numbers for the same calls on x86-64.
#[cfg(target_arch = "x86_64")]
const X32: Option<i64> = Some(0x4000_0000);
#[cfg(not(target_arch = "x86_64"))]
const X32: Option<i64> = None;

/// Refuses the calls that a switch never makes, for the calling thread and the threads it starts later: call it
/// before other threads exist. The process must have given up new privileges ([`crate::privileges::reduce`]).
///
/// # Errors
/// A message, if the kernel has no seccomp filters or this processor is not supported.
pub fn restrict() -> Result<(), String> {
    for program in programs().map_err(|error| error.to_string())? {
        seccompiler::apply_filter(&program).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Returns the filters in the order of installation. The kernel runs all of them and takes the strictest answer.
fn programs() -> Result<[BpfProgram; 2], seccompiler::BackendError> {
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for call in REFUSED.iter().chain(REFUSED_HERE) {
        refuse(&mut refused, *call, &[]);
    }
    // A thread shares memory with its creator; a `clone` without shared memory makes a process.
    let no_shared_memory = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(libc::CLONE_VM.cast_unsigned().into()),
        0,
    )?;
    refuse(&mut refused, libc::SYS_clone, &[SeccompRule::new(vec![no_shared_memory])?]);
    // The flags of `clone3` are in memory, which a filter cannot read. The C library falls back to `clone` where
    // `clone3` is unknown.
    let mut unknown = BTreeMap::new();
    refuse(&mut unknown, libc::SYS_clone3, &[]);
    Ok([filter(refused, libc::EPERM)?, filter(unknown, libc::ENOSYS)?])
}

fn refuse(calls: &mut BTreeMap<i64, Vec<SeccompRule>>, call: c_long, rules: &[SeccompRule]) {
    calls.insert(call, rules.to_vec());
    if let Some(bit) = X32 {
        calls.insert(call | bit, rules.to_vec());
    }
}

fn filter(calls: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> Result<BpfProgram, seccompiler::BackendError> {
    let here = TargetArch::try_from(std::env::consts::ARCH)?;
    let refusal = SeccompAction::Errno(errno.cast_unsigned());
    SeccompFilter::new(calls, SeccompAction::Allow, refusal, here)?.try_into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::process::Command;

    /// Runs `what` on its own thread, which alone is restricted.
    fn restricted<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> T {
        let thread = std::thread::spawn(|| {
            crate::privileges::reduce(None).unwrap();
            restrict().unwrap();
            what()
        });
        thread.join().unwrap()
    }

    #[test]
    fn no_program_is_started() {
        assert!(Command::new("true").status().is_ok_and(|status| status.success()));
        let error = restricted(|| Command::new("true").status().unwrap_err());
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    }

    #[test]
    fn threads_sockets_and_files_stay() {
        let answer = restricted(|| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let connected = std::thread::spawn(move || std::net::TcpStream::connect(address).is_ok());
            let file = tempfile::tempfile();
            listener.accept().is_ok() && connected.join().unwrap() && file.is_ok()
        });
        assert!(answer);
    }

    /// Setting a user id that the thread already has is allowed to any user, but not under the filter.
    #[test]
    fn no_other_user() {
        let own = rustix::process::getuid();
        assert!(std::thread::spawn(move || rustix::thread::set_thread_uid(own).is_ok()).join().unwrap());
        assert_eq!(restricted(move || rustix::thread::set_thread_uid(own)), Err(rustix::io::Errno::PERM));
    }
}
