export const HOUR_MS = 3_600_000
/** 24 hours; Pakistan has no daylight saving time. */
export const DAY_MS = 24 * HOUR_MS
