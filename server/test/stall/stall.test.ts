// proof only
// mostly waits
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { testDialects } from '../testkit/databases.ts'
import { PROOF_FORM } from '../testkit/proof-size.ts'
import { commitCuts, playCutRounds } from './commit-cuts.ts'
import { stallUnderLoad } from './stalled-load.ts'

/** Seconds, comma-separated. */
const STALLS = (process.env.STALLS ?? '1').split(',').map(Number)
const ALL_CUTS = PROOF_FORM === 'long'

const it = suite('a database that stands still')

for (const dialect of testDialects()) {
  for (const seconds of STALLS) {
    it(`is answered for, and nothing is lost, when ${dialect} stalls for ${seconds} s under load`, async () => {
      const report = await stallUnderLoad(dialect, seconds * 1000)
      console.log(`${dialect}, ${seconds} s: ${JSON.stringify(report)}`)
    })
  }
}

if (testDialects().includes('postgresql')) {
  it('loses and doubles nothing when the line is cut around a commit', async () => {
    const cuts = commitCuts(ALL_CUTS)
    assert.is(await playCutRounds(cuts), cuts.length)
    console.log(`${cuts.length} commits cut`)
  })
}

it.run()
