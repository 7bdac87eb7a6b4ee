//! Simulates threads of switches and hosts that sleep when idle and take time to wake up.
use std::time::Duration;
use weir_units::Instant;

/// Shortest and longest time that a switch polls for packets before it sleeps. As in the live switch, the time
/// doubles after a sleep shorter than `MAX_POLL_TIME` and halves after a longer one.
const MIN_POLL_TIME: Duration = Duration::from_micros(30);
const MAX_POLL_TIME: Duration = Duration::from_millis(2);

/// Sleep states of all threads. Hosts sleep as soon as they are idle.
pub(super) struct SimulatedThreads {
    wake_up: Duration,
    hosts: usize,
    threads: Vec<ThreadSleepState>,
}

#[derive(Debug, Clone, Copy)]
struct ThreadSleepState {
    /// Last time at which the thread had work.
    busy_at: Instant,
    /// Time that the thread polls for more work before it sleeps.
    window: Duration,
    /// Time at which the thread is awake; set while it wakes up.
    wakes: Option<Instant>,
}

impl SimulatedThreads {
    pub(super) fn new(hosts: usize, switches: usize, wake_up: Duration) -> SimulatedThreads {
        let window = |number| if number < hosts { Duration::ZERO } else { MIN_POLL_TIME };
        let thread = |number| ThreadSleepState { busy_at: Instant::ZERO, window: window(number), wakes: None };
        SimulatedThreads { wake_up, hosts, threads: (0..hosts + switches).map(thread).collect() }
    }

    /// Reports work for thread `number` at `now`. Returns the time at which the thread is awake if it sleeps or is
    /// waking up, `None` if it is awake. Numbers beyond the threads are always awake.
    pub(super) fn wake(&mut self, number: usize, now: Instant) -> Option<Instant> {
        let (wake_up, is_switch) = (self.wake_up, number >= self.hosts);
        let thread = self.threads.get_mut(number).filter(|_| !wake_up.is_zero())?;
        let idle = now.since(thread.busy_at);
        if let Some(awake) = thread.wakes.filter(|awake| now < *awake) {
            return Some(awake);
        }
        thread.busy_at = now;
        if thread.wakes.take().is_some() || idle <= thread.window {
            return None;
        }
        if is_switch && idle <= MAX_POLL_TIME {
            thread.window = (thread.window * 2).min(MAX_POLL_TIME);
        } else if is_switch {
            thread.window = (thread.window / 2).max(MIN_POLL_TIME);
        }
        thread.wakes = Some(now + wake_up);
        thread.wakes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_that_have_much_to_do_stay_awake_and_hosts_sleep() {
        let wake_up = Duration::from_micros(25);
        let mut threads = SimulatedThreads::new(1, 1, wake_up);
        let (mut slept, mut now) = ([0, 0], Instant::ZERO);
        for _ in 0..1000 {
            now += Duration::from_micros(400);
            for (number, slept) in slept.iter_mut().enumerate() {
                if let Some(awake) = threads.wake(number, now) {
                    *slept += 1;
                    assert_eq!(awake, now + wake_up);
                    assert_eq!(threads.wake(number, now + wake_up / 2), Some(awake), "what comes meanwhile waits, too");
                    assert_eq!(threads.wake(number, awake), None);
                }
            }
        }
        assert_eq!(slept[0], 1000);
        // The window reaches 400 us after four sleeps: 30, 60, 120, 240, 480 us.
        assert_eq!(slept[1], 4);
        // A pause longer than `MAX_POLL_TIME` halves the window.
        now += Duration::from_millis(50);
        assert!(threads.wake(1, now).is_some());
        assert_eq!(threads.wake(2, now), None, "has no thread");
        assert_eq!(SimulatedThreads::new(1, 1, Duration::ZERO).wake(0, now), None);
    }
}
