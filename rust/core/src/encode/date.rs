//! Instants as text.

/// Return an instant in milliseconds since 1970 as RFC 3339 text in UTC; `None` after the year 9999.
///
/// Source: days to a date in the proleptic Gregorian calendar, <https://howardhinnant.github.io/date_algorithms.html>.
///
/// ```
/// assert_eq!(deltafold::encode::rfc3339(951_782_400_007).as_deref(), Some("2000-02-29T00:00:00.007Z"));
/// ```
pub fn rfc3339(milliseconds: u64) -> Option<String> {
    const DAY_SECONDS: u64 = 86_400;
    let (seconds, fraction) = (milliseconds / 1_000, milliseconds % 1_000);
    let (days, second) = (seconds / DAY_SECONDS + 719_468, seconds % DAY_SECONDS);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months count from March.
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    (year <= 9_999).then(|| {
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:03}Z")
    })
}
