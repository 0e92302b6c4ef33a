const BARS = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']

/** One bar a number, as high as the number is beside the greatest; nothing is a dot. */
export function sparkline(numbers: readonly number[]): string {
  const most = Math.max(1, ...numbers)
  return numbers
    .map((number) => (number <= 0 ? '·' : (BARS[Math.ceil((number / most) * BARS.length) - 1] ?? '█')))
    .join('')
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const

/** `3 d`, `5 h`, `12 min`, `40 s`, `7 ms`: as much as tells. */
export function durationText(ms: number): string {
  for (const [unit, length] of UNITS) if (ms >= length) return `${Math.floor(ms / length)} ${unit}`
  return `${Math.max(0, Math.round(ms))} ms`
}
