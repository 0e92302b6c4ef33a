/*
 * Where a live stream has come to. Every change has a position: a text shaped like a UUIDv7, whose beginning is the moment of
 * the change. Positions grow with time, but a change can show up late, behind ones with greater positions, because it commits
 * after them. So a window of late comers is read again and again, and the changes of it that were sent are remembered.
 */

/** How long a change may take from its moment to its commit without being overlooked, ms: longer than any statement may. */
export const LATE_MS = 90_000

/** What is remembered of the window at most: an event id travels in a header. Beyond it the window gets shorter. */
export const MOST_REMEMBERED = 150

export interface LiveWindow {
  /** Changes up to this position are done with. */
  settled: string
  /** The changes after it that were sent: their positions by their marks; `null` for one not met since a reconnection. */
  sent: ReadonlyMap<string, string | null>
}

const CURSOR = /^([0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12})(?:\.((?:[0-9a-f]{12})+))?$/
const MARK_LENGTH = 12

/** A change is remembered by the random end of its position. */
function markOf(position: string): string {
  return position.slice(-MARK_LENGTH)
}

/** The position of the `step`th change (0 to 15) of a thing, made at `moment` (epoch ms). */
export function positionAt(moment: number, step: number, subjectId: string): string {
  const time = moment.toString(16).padStart(12, '0')
  const last = (Number.parseInt(subjectId.slice(-1), 16) + step) % 16
  const end = subjectId.slice(18, -1) + last.toString(16)
  return `${time.slice(0, 8)}-${time.slice(8)}-7${step.toString(16).padStart(3, '0')}${end}`
}

export function startAt(settled: string): LiveWindow {
  return { settled, sent: new Map() }
}

export function isNew({ settled, sent }: LiveWindow, position: string): boolean {
  return position > settled && !sent.has(markOf(position))
}

/**
 * The window after a change was sent, or met again. Changes are met in the order of their positions, so whatever stands
 * before one that is older than `bound` is done with as well.
 */
export function withSent(window: LiveWindow, position: string, bound: string): LiveWindow {
  if (position <= window.settled) return window
  if (position <= bound) return settledUpTo(window, position)
  const sent = new Map(window.sent).set(markOf(position), position)
  return shortened(settledUpTo({ settled: window.settled, sent }, bound))
}

/** The window once everything after it has been met: what was not met is not there, and `bound` is done with. */
export function withPassed({ settled, sent }: LiveWindow, bound: string): LiveWindow {
  const met = new Map([...sent].filter(([, position]) => position !== null))
  return settledUpTo({ settled, sent: met }, bound)
}

function settledUpTo(window: LiveWindow, bound: string): LiveWindow {
  if (bound <= window.settled) return window
  const sent = [...window.sent].filter(([, position]) => position === null || position > bound)
  return { settled: bound, sent: new Map(sent) }
}

function shortened(window: LiveWindow): LiveWindow {
  const excess = window.sent.size - MOST_REMEMBERED
  if (excess <= 0) return window
  const positions = [...window.sent.values()].filter((position) => position !== null).sort()
  return settledUpTo(window, positions[Math.min(excess, positions.length) - 1] ?? window.settled)
}

/** The window as an event id, from which a client takes the stream up again. */
export function cursorOf({ settled, sent }: LiveWindow): string {
  return sent.size === 0 ? settled : `${settled}.${[...sent.keys()].join('')}`
}

/** Reads an event id; `null` for what `cursorOf` never wrote. */
export function windowOf(cursor: string): LiveWindow | null {
  const [, settled, marks = ''] = CURSOR.exec(cursor) ?? []
  if (settled === undefined || marks.length > MARK_LENGTH * MOST_REMEMBERED) return null
  const sent = new Map<string, null>()
  for (let at = 0; at < marks.length; at += MARK_LENGTH) sent.set(marks.slice(at, at + MARK_LENGTH), null)
  return { settled, sent }
}
