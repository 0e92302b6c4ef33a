// proof only
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { CONTRACT_PARTS, type Contract } from '../faults/contracts.ts'
import { openProcessorDouble } from '../faults/processor-double.ts'
import { type TestDialect, testDialects } from '../testkit/databases.ts'
import { breachesIn, openMarketplace } from '../testkit/marketplace.ts'
import { proofCount } from '../testkit/proof-size.ts'
import { testSeed } from '../testkit/seeded-random.ts'
import { writeUnsynced } from '../testkit/unsynced.ts'
import type { Arena, Game } from './game.ts'
import { MANUAL_GAMES } from './manual-games.ts'
import { MONEY_GAMES } from './money-games.ts'
import { OPERATOR_GAMES } from './operator-games.ts'
import { PILE_GAMES } from './pile-games.ts'
import { PROCESSOR_GAMES } from './processor-games.ts'
import { type Contest, openRacers, type Racers } from './racers.ts'
import { STORE_GAMES } from './store-games.ts'

const GAMES: Game[] = [
  ...MONEY_GAMES,
  ...PROCESSOR_GAMES,
  ...OPERATOR_GAMES,
  ...PILE_GAMES,
  ...STORE_GAMES,
  ...MANUAL_GAMES,
]
/** All games with the generic contract, and those that send calls with Safepay's as well. */
const PLAYED: { game: Game; contract: Contract }[] = [
  ...GAMES.map((game) => ({ game, contract: 'generic' as const })),
  ...GAMES.filter(({ sends }) => sends).map((game) => ({ game, contract: 'safepay-raast' as const })),
]

/** Over all databases and games together; at least one each. TEST_SEED=N moves the pauses. */
const RACES = proofCount('RACES', 1)
const SEED = testSeed(1)
const ROUNDS = Math.ceil(RACES / testDialects().length / PLAYED.length)
/** Books grow with each contest, and the games read them whole. */
const ROUNDS_A_DATABASE = 50
/** All invariants over the whole books after so many contests, and after the last of a game. */
const CONTESTS_A_VERIFICATION = 6
/** Sides that come one after the other prove nothing: of so many contests of a game, this share must be collisions … */
const LEAST_COLLISIONS = 1 / 2
/** … for which a machine that is busy with other things may take so many times the rounds. */
const MOST_TIMES = 4
const MOST_CONTESTS_OF_FEW = 8

for (const dialect of testDialects()) {
  const tests = suite(`two at once on ${dialect}`)
  const total = { contests: 0, collisions: 0, repeats: 0 }
  const racers = openRacers()
  tests.after(() => racers.close())

  for (const [number, { game, contract }] of PLAYED.entries()) {
    tests(`${game.name}, ${contract}`, async () => {
      let collisions = 0
      for (let from = 0; from < ROUNDS; from += ROUNDS_A_DATABASE) {
        const rounds = Math.min(ROUNDS, from + ROUNDS_A_DATABASE) - from
        const played = await inRing(dialect, contract, racers, (arena) =>
          playGame(arena, racers, game, number, from, rounds),
        )
        collisions += played.collisions
        total.repeats += played.repeats
        total.contests += played.contests
      }
      total.collisions += collisions
      if (ROUNDS > ROUNDS_A_DATABASE)
        console.log(`\nprogress: ${game.name}, ${contract}, on ${dialect}: ${ROUNDS} contests`)
      assert.ok(
        collisions >= ROUNDS * LEAST_COLLISIONS,
        `only ${collisions} contests of ${ROUNDS} and more collided: the others prove nothing`,
      )
    })
  }

  tests('said how many there were', () => {
    const { contests, collisions, repeats } = total
    console.log(
      `\nsize: races on ${dialect}: ${contests} contests in ${PLAYED.length} games, ${collisions} collided, ` +
        `${repeats} transactions ran again, seed ${SEED}`,
    )
    assert.ok(contests >= RACES / testDialects().length)
    // SQLite's writers queue up; on PostgreSQL some transaction must have lost a conflict.
    if (dialect === 'postgresql' && contests >= 100) assert.ok(repeats > 0, 'no transaction lost a race')
  })

  tests.run()
}

interface Played {
  contests: number
  collisions: number
  repeats: number
}

/** A marketplace, and two processes beside this one that work on its database. */
async function inRing<T>(
  dialect: TestDialect,
  contract: Contract,
  racers: Racers,
  work: (arena: Arena) => Promise<T>,
): Promise<T> {
  const market = await openMarketplace(dialect)
  const { database, url } = market.bed.testDatabase
  await writeUnsynced(database)
  const { wire, client } = CONTRACT_PARTS[contract]
  const double = await openProcessorDouble(undefined, wire(market))
  const processor = client(
    () => double.url,
    () => market.clock.now(),
  )
  try {
    await racers.enter({ databaseUrl: url, processorUrl: double.url, contract })
    return await work({ market, double, processor })
  } finally {
    await processor.close()
    await double.close()
    await market.close()
  }
}

/** Plays so many rounds of a game, and more where too few of them were collisions. */
async function playGame(
  arena: Arena,
  racers: Racers,
  game: Game,
  number: number,
  from: number,
  rounds: number,
): Promise<Played> {
  const next = await game.open(arena)
  const played = { contests: 0, collisions: 0, repeats: 0 }
  const enough = () => played.contests >= rounds && played.collisions >= rounds * LEAST_COLLISIONS
  for (
    let round = from;
    !enough() && played.contests < Math.max(MOST_CONTESTS_OF_FEW, rounds * MOST_TIMES);
    round += 1
  ) {
    const { tasks, ahead = 0, check } = await next(round)
    const now = arena.market.clock.now()
    const sides = [
      { task: tasks[0], clock: now },
      { task: tasks[1], clock: now + ahead },
    ] as const
    const contest = await racers.race(sides, SEED * 1_000_003 + number * 10_007 + round)
    const [one, other] = contest.reports
    const wrong = [...faultsOf(contest), ...(await check([one.outcome, other.outcome]))]
    if (round % CONTESTS_A_VERIFICATION === 0) wrong.push(...(await breaches(arena)))
    assert.equal(wrong, [], `${game.name}, contest ${round}; TEST_SEED=${SEED} RACES=${RACES} repeats it`)
    played.contests += 1
    played.collisions += contest.collided ? 1 : 0
    played.repeats += one.repeats + other.repeats
  }
  assert.equal(await breaches(arena), [], `${game.name}; TEST_SEED=${SEED} RACES=${RACES} repeats it`)
  return played
}

/** What a server would have answered 500 to, or logged as a bug. */
function faultsOf({ reports }: Contest): string[] {
  return reports.flatMap(({ outcome, errors }) => [...('broke' in outcome ? [outcome.broke] : []), ...errors])
}

async function breaches({ market, double }: Arena): Promise<string[]> {
  return [...(await breachesIn(market.platform)), ...double.complaints]
}
