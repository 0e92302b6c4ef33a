import { calmRounds } from './calm-rounds.ts'
import { type Comparison, type Latency, type Measurement, median } from './figures.ts'
import { type Load, type LoadRound, startGenerator } from './load.ts'
import type { BenchOptions } from './options.ts'
import type { Listening } from './processes.ts'

const WARM_UP_SECONDS = 5

export type LoadComparison = Omit<Comparison, 'unit' | 'peer' | 'ours' | 'latency' | 'cpu' | 'calm'>

interface Loaded {
  target: Listening
  load: Load
}

/** Saturates the peer and us in alternation, after warming up both; repeats a round that the host disturbs. */
export async function compareUnderLoad(
  what: LoadComparison,
  { rounds, seconds }: Pick<BenchOptions, 'rounds' | 'seconds'>,
  peer: Loaded,
  ours: Loaded,
): Promise<Comparison> {
  const seen = await alternate({ rounds, seconds, rate: null }, peer, ours)
  return { ...what, ...sumUp(seen), calm: seen.calm }
}

/** A fixed rate of requests, and by how many ms our p99 may be above the peer's. */
export interface FixedLoad {
  what: string
  rate: number
  mostAbovePeer: number
}

/** Loads the peer and us at a fixed rate (open loop) in alternation: by how much our p99 is above the peer's. */
export async function compareAtFixedLoad(
  { what, rate, mostAbovePeer }: FixedLoad,
  {
    dialect,
    rounds,
    seconds,
  }: Pick<BenchOptions, 'rounds' | 'seconds'> & { dialect: Comparison['database'] },
  peer: Loaded,
  ours: Loaded,
): Promise<Measurement> {
  const seen = await alternate({ rounds, seconds, rate }, peer, ours)
  const [own, bare] = [latencyOf(seen.ours), latencyOf(seen.peer)]
  return {
    what: `${what} at ${rate.toLocaleString('en')}/s: p99 above the peer's`,
    database: dialect,
    unit: 'ms',
    values: seen.ours.map(({ p99 }, round) => p99 - (seen.peer[round]?.p99 ?? Number.NaN)),
    most: mostAbovePeer,
    detail: `p50 ${own.p50.toFixed(1)}, p99 ${own.p99.toFixed(1)}; peer ${bare.p50.toFixed(1)}, ${bare.p99.toFixed(1)}`,
  }
}

async function alternate(
  { rounds, seconds, rate }: { rounds: number; seconds: number; rate: number | null },
  peer: Loaded,
  ours: Loaded,
) {
  const generator = startGenerator()
  try {
    for (const { target, load } of [peer, ours]) await generator.run(target, load, WARM_UP_SECONDS, rate)
    const { rounds: seen, calm } = await calmRounds(rounds, async () => ({
      peer: await generator.run(peer.target, peer.load, seconds, rate),
      ours: await generator.run(ours.target, ours.load, seconds, rate),
    }))
    return { peer: seen.map((one) => one.peer), ours: seen.map((one) => one.ours), calm }
  } finally {
    await generator.stop()
  }
}

function sumUp(seen: {
  peer: readonly LoadRound[]
  ours: readonly LoadRound[]
}): Pick<Comparison, 'unit' | 'peer' | 'ours' | 'latency' | 'cpu'> {
  const cpuOf = (all: readonly LoadRound[]) => median(all.flatMap(({ cpu }) => (cpu === null ? [] : [cpu])))
  return {
    unit: 'requests/s',
    peer: seen.peer.map(({ perSecond }) => perSecond),
    ours: seen.ours.map(({ perSecond }) => perSecond),
    latency: { ours: latencyOf(seen.ours), peer: latencyOf(seen.peer) },
    cpu: { ours: cpuOf(seen.ours), peer: cpuOf(seen.peer) },
  }
}

function latencyOf(rounds: readonly LoadRound[]): Latency {
  return {
    p50: median(rounds.map(({ p50 }) => p50)),
    p99: median(rounds.map(({ p99 }) => p99)),
    most: Math.max(...rounds.map(({ most }) => most)),
  }
}
