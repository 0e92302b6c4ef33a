import { readFileSync } from 'node:fs'

/** Of the machine's processor time, how much its host may give to others while a round lasts that counts. */
const MOST_STOLEN = 0.03
/** Rounds that may be tried for one that is wanted: on a host that is never calm a bench has to end, too. */
const TRIES = 4

/** How calm it was while something was measured. */
export interface Calm {
  /** Of each round that counts, the share (0 to 1) of the processor time that the host gave to others. */
  stolen: readonly number[]
  /** Rounds that do not count, since more was taken. */
  repeated: number
}

interface Tried<Round> {
  place: number
  found: Round
  stolen: number
}

/**
 * So many rounds in which the host left the machine's processors to it; one in which it did not is done again. What the host takes
 * slows the one who is measured then, and the other one in another moment: with between none and half of the time taken, rounds of one and
 * the same server differed fivefold. Nothing else decides which rounds count. Where it never gets calm enough, the calmest count.
 */
export async function calmRounds<Round>(
  wanted: number,
  round: (place: number) => Promise<Round>,
  watch: () => () => number = watchStolenTime,
): Promise<{ rounds: Round[]; calm: Calm }> {
  const tried: Tried<Round>[] = []
  const isCalm = ({ stolen }: Tried<Round>) => stolen <= MOST_STOLEN
  for (let place = 0; place < wanted * TRIES && tried.filter(isCalm).length < wanted; place += 1) {
    const stolenSince = watch()
    const found = await round(place)
    tried.push({ place, found, stolen: stolenSince() })
  }
  const counted = tried
    .toSorted((one, other) => one.stolen - other.stolen)
    .slice(0, wanted)
    .toSorted((one, other) => one.place - other.place)
  return {
    rounds: counted.map(({ found }) => found),
    calm: { stolen: counted.map(({ stolen }) => stolen), repeated: tried.length - counted.length },
  }
}

/** Answers what share of the processor time the host has taken since; 0 where the system does not tell. */
function watchStolenTime(): () => number {
  const before = processorTime()
  return () => {
    const after = processorTime()
    const all = after.all - before.all
    return all > 0 ? (after.stolen - before.stolen) / all : 0
  }
}

/** user nice system idle iowait irq softirq steal; guests' time, behind them, is part of user's (proc(5)). */
const FIELDS = 8

function processorTime(): { all: number; stolen: number } {
  if (process.platform !== 'linux') return { all: 0, stolen: 0 }
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n')
  const ticks = line
    .split(/ +/)
    .slice(1, 1 + FIELDS)
    .map(Number)
  return { all: ticks.reduce((sum, count) => sum + count, 0), stolen: ticks.at(-1) ?? 0 }
}
