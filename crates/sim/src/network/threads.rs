//! Threads of switches and hosts that sleep when there is nothing to do, and take a while to wake up.
use std::time::Duration;
use weir_units::Instant;

/// How long a switch looks for packets before it sleeps: as live, twice as long after a sleep that was shorter than the longest, half as long after one that was
/// longer.
const SHORTEST: Duration = Duration::from_micros(30);
const LONGEST: Duration = Duration::from_millis(2);

/// Who sleeps. Hosts sleep at once when they have nothing to do.
pub(super) struct Threads {
    wake_up: Duration,
    hosts: usize,
    threads: Vec<Thread>,
}

#[derive(Debug, Clone, Copy)]
struct Thread {
    /// When it last had something to do.
    busy_at: Instant,
    /// How long it looks for more after that.
    window: Duration,
    /// It is waking up, until then.
    wakes: Option<Instant>,
}

impl Threads {
    pub(super) fn new(hosts: usize, switches: usize, wake_up: Duration) -> Threads {
        let window = |number| if number < hosts { Duration::ZERO } else { SHORTEST };
        let thread = |number| Thread { busy_at: Instant::ZERO, window: window(number), wakes: None };
        Threads { wake_up, hosts, threads: (0..hosts + switches).map(thread).collect() }
    }

    /// The thread with this number has something to do at `now`: until when it wakes up, if it slept. What has no thread is always awake.
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
        if is_switch && idle <= LONGEST {
            thread.window = (thread.window * 2).min(LONGEST);
        } else if is_switch {
            thread.window = (thread.window / 2).max(SHORTEST);
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
        let mut threads = Threads::new(1, 1, wake_up);
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
        // 30, 60, 120, 240, 480 us.
        assert_eq!(slept[1], 4);
        // A long pause, after which it looks half as long.
        now += Duration::from_millis(50);
        assert!(threads.wake(1, now).is_some());
        assert_eq!(threads.wake(2, now), None, "has no thread");
        assert_eq!(Threads::new(1, 1, Duration::ZERO).wake(0, now), None);
    }
}
