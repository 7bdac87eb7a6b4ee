//! Formats times of captured packets.

/// Formats a time in nanoseconds since 1970 as `2026-01-31T12:34:56.123456Z`.
pub(crate) fn utc(time_ns: u64) -> String {
    let (seconds, micros) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000 / 1000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// Converts days since 1970 to year, month and day of the Gregorian calendar. Years of the computation start in
/// March, so that a leap day is a year's last day.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // since 0000-03-01
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc() {
        assert_eq!(utc(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(utc(951_782_400_000_001_000), "2000-02-29T00:00:00.000001Z");
        assert_eq!(utc(1_700_000_000_999_999_999), "2023-11-14T22:13:20.999999Z");
    }
}
