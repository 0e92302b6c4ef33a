// proof only
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { ProcessorDouble } from '../faults/processor-double.ts'
import { type TestDialect, testDialects } from '../testkit/databases.ts'
import { breachesIn, openMarketplace } from '../testkit/marketplace.ts'
import { proofCount } from '../testkit/proof-size.ts'
import { testSeed } from '../testkit/seeded-random.ts'
import { writeUnsynced } from '../testkit/unsynced.ts'
import type { Game } from './game.ts'
import { MANUAL_GAMES } from './manual-games.ts'
import { MONEY_GAMES } from './money-games.ts'
import { OPERATOR_GAMES } from './operator-games.ts'
import { PILE_GAMES } from './pile-games.ts'
import { PROCESSOR_GAMES } from './processor-games.ts'
import { type Contest, openRacers, type Racers } from './racers.ts'
import { clientOf } from './tasks.ts'

const GAMES: Game[] = [...MONEY_GAMES, ...PROCESSOR_GAMES, ...OPERATOR_GAMES, ...PILE_GAMES, ...MANUAL_GAMES]

/** Over all databases and games together; at least one each. TEST_SEED=N moves the pauses. */
const RACES = proofCount('RACES', 1)
const SEED = testSeed(1)
const ROUNDS = Math.ceil(RACES / testDialects().length / GAMES.length)
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

  for (const [number, game] of GAMES.entries()) {
    tests(game.name, async () => {
      let collisions = 0
      for (let from = 0; from < ROUNDS; from += ROUNDS_A_DATABASE) {
        const rounds = Math.min(ROUNDS, from + ROUNDS_A_DATABASE) - from
        const played = await playGame(dialect, racers, number, { from, rounds })
        collisions += played.collisions
        total.repeats += played.repeats
        total.contests += played.contests
      }
      total.collisions += collisions
      if (ROUNDS > ROUNDS_A_DATABASE)
        console.log(`\nprogress: ${game.name}, on ${dialect}: ${ROUNDS} contests`)
      assert.ok(
        collisions >= ROUNDS * LEAST_COLLISIONS,
        `only ${collisions} contests of ${ROUNDS} and more collided: the others prove nothing`,
      )
    })
  }

  tests('said how many there were', () => {
    const { contests, collisions, repeats } = total
    console.log(
      `\nsize: races on ${dialect}: ${contests} contests in ${GAMES.length} games, ${collisions} collided, ` +
        `${repeats} transactions ran again, seed ${SEED}`,
    )
    assert.ok(contests >= RACES / testDialects().length)
    // SQLite's writers queue up; on PostgreSQL some transaction must have lost a conflict.
    if (dialect === 'postgresql' && contests >= 100) assert.ok(repeats > 0, 'no transaction lost a race')
  })

  tests.run()
}

/** Plays so many rounds of a game in a marketplace of their own, and more where too few of them were collisions. */
async function playGame(
  dialect: TestDialect,
  racers: Racers,
  number: number,
  { from, rounds }: { from: number; rounds: number },
) {
  const game = GAMES[number] as Game
  const market = await openMarketplace(dialect)
  const { database, url } = market.bed.testDatabase
  await writeUnsynced(database)
  const double = await ProcessorDouble.open()
  const processor = clientOf(double.url, () => market.clock.now())
  const repeats = `${game.name}; TEST_SEED=${SEED} RACES=${RACES} repeats it`
  const breaches = async () => [...(await breachesIn(market.platform)), ...double.complaints]
  const played = { contests: 0, collisions: 0, repeats: 0 }
  const most = Math.max(MOST_CONTESTS_OF_FEW, rounds * MOST_TIMES)
  const isEnough = () => played.contests >= rounds && played.collisions >= rounds * LEAST_COLLISIONS
  try {
    await racers.enter({ databaseUrl: url, processorUrl: double.url })
    const next = await game.open({ market, double, processor })
    for (let round = from; !isEnough() && played.contests < most; round += 1) {
      const { tasks, ahead = 0, check } = await next(round)
      const now = market.clock.now()
      const sides = [
        { task: tasks[0], clock: now },
        { task: tasks[1], clock: now + ahead },
      ] as const
      const contest = await racers.race(sides, SEED * 1_000_003 + number * 10_007 + round)
      const [one, other] = contest.reports
      const wrong = [...faultsOf(contest), ...(await check([one.outcome, other.outcome]))]
      if (round % CONTESTS_A_VERIFICATION === 0) wrong.push(...(await breaches()))
      assert.equal(wrong, [], `contest ${round} of ${repeats}`)
      played.contests += 1
      played.collisions += contest.collided ? 1 : 0
      played.repeats += one.repeats + other.repeats
    }
    assert.equal(await breaches(), [], repeats)
    return played
  } finally {
    await processor.close()
    await double.close()
    await market.close()
  }
}

/** What a server would have answered 500 to, or logged as a bug. */
function faultsOf({ reports }: Contest): string[] {
  return reports.flatMap(({ outcome, errors }) => [...('broke' in outcome ? [outcome.broke] : []), ...errors])
}
