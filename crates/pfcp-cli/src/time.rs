//! Timestamps, in the format that captures show.

use std::time::Duration;

/// Formats a time since 1970 for people: `2020-08-22 15:53:09.556820 UTC`.
pub(crate) fn utc(since_epoch: Duration) -> String {
    let Stamp { date, clock } = Stamp::of(since_epoch);
    format!("{date} {clock}.{:06} UTC", since_epoch.subsec_micros())
}

/// Formats a time since 1970 for programs: `2020-08-22T15:53:09.556820123Z`.
pub(crate) fn iso(since_epoch: Duration) -> String {
    let Stamp { date, clock } = Stamp::of(since_epoch);
    format!("{date}T{clock}.{:09}Z", since_epoch.subsec_nanos())
}

/// Formats a time since 1970 for programs, to the second: `2020-08-22T15:53:09Z`.
#[must_use]
pub fn iso_second(since_epoch: Duration) -> String {
    let Stamp { date, clock } = Stamp::of(since_epoch);
    format!("{date}T{clock}Z")
}

/// Parses the output of [`iso`].
pub(crate) fn from_iso(text: &str) -> Option<Duration> {
    let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
    let (clock, nanos) = clock.split_once('.')?;
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(clock, ':')?;
    let nanos = (nanos.len() == 9).then(|| nanos.parse().ok())??;
    let valid = (1970..10_000).contains(&year) && (1..=12).contains(&month);
    let days = valid.then(|| days(year, month, day))?;
    Some(Duration::new(
        ((days * 24 + hour) * 60 + minute) * 60 + second,
        nanos,
    ))
}

fn numbers(text: &str, separator: char) -> Option<[u64; 3]> {
    let parts: Option<Vec<u64>> = text
        .split(separator)
        .map(|part| part.parse().ok().filter(|&n| n < 10_000))
        .collect();
    parts?.try_into().ok()
}

struct Stamp {
    date: String,
    clock: String,
}

impl Stamp {
    fn of(since_epoch: Duration) -> Self {
        let seconds = since_epoch.as_secs();
        let (year, month, day) = civil(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        Self {
            date: format!("{year:04}-{month:02}-{day:02}"),
            clock: format!("{hour:02}:{minute:02}:{second:02}"),
        }
    }
}

/// Returns the days from 1970 to a date; the inverse of [`civil`].
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = year - u64::from(month <= 2);
    let (era, year_of_era) = (year / 400, year % 400);
    let shifted_month = (month + 9) % 12;
    let day_of_year = (153 * shifted_month + 2) / 5 + day.max(1) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Converts days since 1970 to year, month and day of the Gregorian calendar.
///
/// Years begin in March here, so that the leap day is the last day of a year.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_follow_the_calendar() {
        let cases = [
            (0, "1970-01-01 00:00:00.000000 UTC"),
            (951_782_400, "2000-02-29 00:00:00.000000 UTC"),
            (1_598_111_589, "2020-08-22 15:53:09.000000 UTC"),
            (4_107_542_399, "2100-02-28 23:59:59.000000 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00.000000 UTC"),
        ];
        for (seconds, text) in cases {
            assert_eq!(utc(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn formatted_time_is_parsed_back() {
        for seconds in (0..4_200_000_000).step_by(86_399 * 97) {
            let time = Duration::new(seconds, 123_456_789);
            assert_eq!(from_iso(&iso(time)), Some(time), "{}", iso(time));
        }
    }

    #[test]
    fn other_formats_are_refused() {
        for text in [
            "",
            "2020-08-22",
            "2020-13-01T00:00:00.000000000Z",
            "1-1-1T0:0:0.0Z",
        ] {
            assert_eq!(from_iso(text), None, "{text}");
        }
    }
}
