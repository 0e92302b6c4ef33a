import * as assert from 'uvu/assert'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { pluck } from '../test/testkit/pluck.ts'
import { openFlags, raiseFlags } from './flags.service.ts'

for (const { it } of marketSuites('flags')) {
  it('raises one for each of many subjects, and refreshes those that are open', async ({ bed }) => {
    const { platform } = bed
    const subjects = Array.from({ length: 250 }, () => platform.ids.next())
    const raise = (times: number) => {
      const what = { summary: `visited ${times} times`, evidence: { times } }
      const kind = { kind: 'click_velocity', subjectType: 'affiliate_link' } as const
      const flags = subjects.map((subjectId) => ({ ...kind, subjectId, ...what }))
      return platform.database.transaction((tx) => raiseFlags(platform, tx, flags))
    }
    await raise(1)
    const first = await openFlags(platform.database.reader, 'click_velocity')
    await raise(2)
    const second = await openFlags(platform.database.reader, 'click_velocity')
    assert.equal(second.map(({ subject_id }) => subject_id).sort(), subjects.toSorted())
    assert.equal(pluck(second, 'id'), pluck(first, 'id'))
    assert.ok(second.every(({ summary }) => summary === 'visited 2 times'))
    assert.ok(second.every(({ evidence }) => JSON.parse(evidence).times === 2))
  })

  it.run()
}
