import { once } from 'node:events'
import { connect } from 'node:net'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openWebTestbed } from '../test/testkit/web.ts'

const it = suite('the end of the server')

it('does not wait for connections on which nothing was ever asked', async () => {
  const bed = await openWebTestbed('sqlite')
  // Node itself would end such a connection after a minute.
  Object.assign(bed.server.server, { headersTimeout: 0, requestTimeout: 0 })
  const unused = connect(Number(new URL(bed.base).port), '127.0.0.1')
  await once(unused, 'connect')
  assert.is((await bed.ask('GET', '/healthz')).status, 200)
  const closed = once(unused, 'close')
  await bed.close()
  await closed
})

it.run()
