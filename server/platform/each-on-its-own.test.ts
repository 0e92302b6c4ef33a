import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openTestbed, type Testbed } from '../proof/testbed/testbed.ts'
import { eachOnItsOwn } from './each-on-its-own.ts'

const it = suite<{ bed: Testbed }>('each on its own')
it.before(async (context) => {
  context.bed = await openTestbed('sqlite')
})
it.after(({ bed }) => bed?.close())

it('answers what came out, in order, and leaves nothing out but nothing', async ({ bed }) => {
  const outcomes = await eachOnItsOwn(bed.platform, [1, 2, 3], async (n) => (n === 2 ? null : n * 10))
  assert.equal(outcomes, [10, 30])
})

it('does the others when one fails, and throws the first error at the end', async ({ bed }) => {
  const done: number[] = []
  const run = eachOnItsOwn(bed.platform, [1, 2, 3, 4], async (n) => {
    if (n % 2 === 0) throw new Error(`${n} on purpose`)
    done.push(n)
    return n
  })
  assert.match(String(await run.catch((error) => error)), /2 on purpose/)
  assert.equal(done, [1, 3])
})

it('ends at once when the database is gone', async ({ bed }) => {
  const done: number[] = []
  const gone = Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR' })
  const run = eachOnItsOwn(bed.platform, [1, 2, 3], async (n) => {
    done.push(n)
    if (n === 2) throw gone
    return n
  })
  assert.is(await run.catch((error) => error), gone)
  assert.equal(done, [1, 2])
})

it.run()
