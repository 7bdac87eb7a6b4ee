//! Runs independent replications of a simulation on several threads until their results are sure enough.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Limits on the number of replications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicationLimits {
    /// Smallest number of replications.
    pub least: u64,
    /// Largest number of replications.
    pub most: u64,
    /// Number of threads that simulate.
    pub threads: usize,
}

/// Results of a series of replications.
#[derive(Debug, Clone)]
pub struct Replications<R> {
    /// Results in order of replication number, from 0 without gaps.
    pub results: Vec<R>,
    /// True if a replication was stopped from outside, so that later ones are missing.
    pub stopped: bool,
}

/// Runs replications 0, 1, ... until there are enough. `run` does one by its number and returns `None` if it was
/// stopped. `enough` decides from the results so far, in order and without gaps. The decision does not depend on the
/// number of threads or their speed.
///
/// # Errors
/// The error of the first replication that failed.
pub fn replicate<R: Send, E: Send>(
    plan: &ReplicationLimits,
    run: impl Fn(u64) -> Result<Option<R>, E> + Sync,
    mut enough: impl FnMut(&[R]) -> bool,
) -> Result<Replications<R>, E> {
    let most = plan.most.max(1);
    let shared = ReplicationPool { next: AtomicU64::new(0), done: Mutex::new(Vec::new()), changed: Condvar::new() };
    std::thread::scope(|scope| {
        let threads = plan.threads.clamp(1, 256).min(usize::try_from(most).unwrap_or(usize::MAX));
        for _ in 0..threads {
            scope.spawn(|| shared.work(most, &run));
        }
        let mut results = Vec::new();
        loop {
            let number = results.len() as u64;
            if number >= most || number >= plan.least && enough(&results) {
                shared.end();
                return Ok(Replications { results, stopped: false });
            }
            match shared.wait_for(number) {
                Ok(Some(result)) => results.push(result),
                Ok(None) => {
                    shared.end();
                    return Ok(Replications { results, stopped: true });
                }
                Err(error) => {
                    shared.end();
                    return Err(error);
                }
            }
        }
    })
}

/// Number and outcome of a replication.
type FinishedReplication<R, E> = (u64, Result<Option<R>, E>);

struct ReplicationPool<R, E> {
    next: AtomicU64,
    /// Replications that are done but not yet evaluated.
    done: Mutex<Vec<FinishedReplication<R, E>>>,
    changed: Condvar,
}

/// Most finished replications that wait for evaluation: bounds the memory.
const MAX_UNEVALUATED: u64 = 64;

impl<R, E> ReplicationPool<R, E> {
    fn work(&self, most: u64, run: &(impl Fn(u64) -> Result<Option<R>, E> + Sync)) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= most {
                return;
            }
            let result = run(number);
            let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push((number, result));
            self.changed.notify_all();
            while done.len() as u64 >= MAX_UNEVALUATED && self.next.load(Ordering::Relaxed) < most {
                done = self.changed.wait(done).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn wait_for(&self, number: u64) -> Result<Option<R>, E> {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(at) = done.iter().position(|(found, _)| *found == number) {
                let result = done.swap_remove(at).1;
                self.changed.notify_all();
                return result;
            }
            done = self.changed.wait(done).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Stops new replications from being started. Those under way run to their end.
    fn end(&self) {
        // Holds the lock so that a thread about to wait does not miss the notification.
        let _done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        self.next.store(u64::MAX / 2, Ordering::Relaxed);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn squares(threads: usize, least: u64, most: u64, last: u64) -> Vec<u64> {
        let plan = ReplicationLimits { least, most, threads };
        let run = |number| Ok::<_, Infallible>(Some(number * number));
        let Ok(found) = replicate(&plan, run, |results: &[u64]| results.last() >= Some(&last));
        assert!(!found.stopped);
        found.results
    }

    #[test]
    fn results_do_not_depend_on_threads() {
        for threads in [1, 2, 7] {
            assert_eq!(squares(threads, 2, 100, 16), [0, 1, 4, 9, 16]);
            assert_eq!(squares(threads, 3, 3, u64::MAX), [0, 1, 4]);
            assert_eq!(squares(threads, 0, 500, u64::MAX).len(), 500);
        }
    }

    #[test]
    fn what_is_done_before_a_stop_is_kept() {
        let plan = ReplicationLimits { least: 10, most: 10, threads: 3 };
        let run = |number| Ok::<_, Infallible>((number < 4).then_some(number));
        let Ok(found) = replicate(&plan, run, |_| false);
        assert_eq!((found.results, found.stopped), (vec![0, 1, 2, 3], true));
    }

    #[test]
    fn an_error_ends_it() {
        let plan = ReplicationLimits { least: 10, most: 10, threads: 2 };
        let run = |number| if number == 2 { Err("no") } else { Ok(Some(number)) };
        assert_eq!(replicate(&plan, run, |_| false).unwrap_err(), "no");
    }
}
