// proof only
// mostly waits
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { playRounds } from '../kill/kill.ts'
import { testDialects } from '../testkit/databases.ts'
import { PROOF_FORM } from '../testkit/proof-size.ts'
import { commitCuts, cutRounds } from './commit-cuts.ts'
import { lockUnderLoad } from './locked-load.ts'

/** Seconds, comma-separated. */
const STALLS = (process.env.STALLS ?? '1').split(',').map(Number)
const ALL_CUTS = PROOF_FORM === 'long'

const it = suite('a database that stands still')

// PostgreSQL stands still under load in `test/failover/`, and cut or stalled in `test/database-down`.
for (const seconds of STALLS) {
  it(`is answered for, and nothing is lost, when SQLite is locked for ${seconds} s under load`, async () => {
    const report = await lockUnderLoad(seconds * 1000)
    console.log(`${seconds} s: ${JSON.stringify(report)}`)
  })
}

if (testDialects().includes('postgresql')) {
  it('loses and doubles nothing when the line is cut around a commit', async () => {
    const cuts = commitCuts(ALL_CUTS)
    const { deaths } = await playRounds('postgresql', cutRounds(cuts))
    assert.is(deaths, 0)
    console.log(`${cuts.length} commits cut`)
  })
}

it.run()
