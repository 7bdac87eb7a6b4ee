//! Limits how often each client asks, by token buckets: each holds up to `burst` requests, and is filled at a rate.
use std::collections::HashMap;
use weir_units::Instant;

/// Most clients of which rates are kept. At the maximum those are forgotten whose buckets are full again; if there are
/// none, a new client is refused.
const MAX_CLIENTS: usize = 1024;

/// How often a client may ask.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RequestRate {
    /// Requests per second, on average; more than 0.
    pub per_second: f64,
    /// Requests at once; at least 1.
    pub burst: f64,
}

impl Default for RequestRate {
    fn default() -> RequestRate {
        RequestRate { per_second: 100.0, burst: 1000.0 }
    }
}

/// Requests that a client may still send, as of a time.
#[derive(Debug, Clone, Copy)]
struct RequestBucket {
    left: f64,
    at: Instant,
}

/// Buckets of all clients.
#[derive(Debug)]
pub struct RateLimiter {
    limit: RequestRate,
    buckets: HashMap<String, RequestBucket>,
}

impl RateLimiter {
    /// Returns a limiter that knows no client.
    pub fn new(limit: RequestRate) -> RateLimiter {
        RateLimiter { limit, buckets: HashMap::new() }
    }

    /// Takes a request of a client from its bucket.
    ///
    /// # Errors
    /// The bucket is empty: the seconds, at least 1, after which there will be a request in it.
    pub fn take(&mut self, now: Instant, client: &str) -> Result<(), u64> {
        let RequestRate { per_second, burst } = self.limit;
        let filled =
            |bucket: &RequestBucket| (bucket.left + now.since(bucket.at).as_secs_f64() * per_second).min(burst);
        if !self.buckets.contains_key(client) && self.buckets.len() >= MAX_CLIENTS {
            self.buckets.retain(|_, bucket| filled(bucket) < burst);
            if self.buckets.len() >= MAX_CLIENTS {
                return Err(1);
            }
        }
        let left = self.buckets.get(client).map_or(burst, filled);
        let (left, allowed) =
            if left >= 1.0 { (left - 1.0, Ok(())) } else { (left, Err(wait(1.0 - left, per_second))) };
        self.buckets.insert(client.to_owned(), RequestBucket { left, at: now });
        allowed
    }
}

/// Returns the whole seconds until `missing` requests have come into a bucket.
fn wait(missing: f64, per_second: f64) -> u64 {
    let seconds = (missing / per_second).ceil().clamp(1.0, 3600.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 3600")]
    let seconds = seconds as u64;
    seconds
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(ms: u64) -> Instant {
        Instant::default() + Duration::from_millis(ms)
    }

    #[test]
    fn a_bucket_is_emptied_and_filled() {
        let mut limiter = RateLimiter::new(RequestRate { per_second: 0.5, burst: 2.0 });
        let taken: Vec<_> = (0..3).map(|_| limiter.take(at(0), "a")).collect();
        assert_eq!(taken, [Ok(()), Ok(()), Err(2)]);
        assert_eq!(limiter.take(at(0), "b"), Ok(()), "each client has its own");
        assert_eq!((limiter.take(at(1900), "a"), limiter.take(at(2100), "a")), (Err(1), Ok(())));
        assert_eq!(limiter.take(at(2200), "a"), Err(2));
        let later: Vec<_> = (0..3).map(|_| limiter.take(at(1_000_000), "a").is_ok()).collect();
        assert_eq!(later, [true, true, false], "no more than the burst");
    }

    #[test]
    fn clients_are_forgotten_once_their_buckets_are_full() {
        let mut limiter = RateLimiter::new(RequestRate { per_second: 1.0, burst: 1.0 });
        for client in 0..MAX_CLIENTS {
            assert_eq!(limiter.take(at(0), &client.to_string()), Ok(()));
        }
        assert_eq!(limiter.take(at(500), "new"), Err(1));
        assert_eq!(limiter.take(at(1000), "new"), Ok(()));
        assert_eq!(limiter.buckets.len(), 1);
    }
}
