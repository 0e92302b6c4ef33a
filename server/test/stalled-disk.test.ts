// mostly waits
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { LinkRecord } from '../links/links.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import type { Database } from '../platform/database/database.ts'
import { accessOf, addLink, addLiveOffer, addMerchant, OFFER } from './testkit/listings.ts'
import { orderHeaders } from './testkit/orders.ts'
import { addUser } from './testkit/people.ts'
import { proofDialects } from './testkit/proof-size.ts'
import { columnsOf } from './testkit/rows.ts'
import { openWebTestbed, type WebTestbed } from './testkit/web.ts'

interface Context {
  bed: WebTestbed
  merchant: Actor
  link: LinkRecord
}

const AT_ONCE = 30

for (const dialect of proofDialects()) {
  const it = suite<Context>(`a disk that stalls, on ${dialect}`)
  it.before(async (context) => {
    const bed = await openWebTestbed(dialect)
    const merchant = await addMerchant(bed.platform)
    const offer = await addLiveOffer(bed.platform, merchant)
    const link = await addLink(bed.platform, merchant, await addUser(bed.platform, 'creator'), offer.id)
    Object.assign(context, { bed, merchant, link })
  })
  it.after(({ bed }) => bed.close())

  /** Lets no transaction begin until the answered function is called. */
  const stall = ({ platform }: WebTestbed) => {
    const database = platform.database as Pick<Database, 'transaction' | 'executeBatch'>
    const { transaction, executeBatch } = database
    const { promise, resolve } = Promise.withResolvers<void>()
    database.transaction = async (work) => {
      await promise
      return transaction(work)
    }
    database.executeBatch = async (...statements) => {
      await promise
      return executeBatch(...statements)
    }
    return () => {
      Object.assign(database, { transaction, executeBatch })
      resolve()
    }
  }
  /** Works on a stalled disk, which flows again afterwards, come what may: a held transaction would keep the process. */
  const whileStalled = async (bed: WebTestbed, work: () => Promise<void>) => {
    const flow = stall(bed)
    try {
      await work()
    } finally {
      flow()
    }
  }
  const many = <T>(work: (index: number) => Promise<T>) =>
    Promise.all(Array.from({ length: AT_ONCE }, (_, index) => work(index)))
  const follow = ({ bed, link }: Context) => bed.ask('GET', `/go/${link.slug}`)
  const deliver = ({ bed, merchant }: Context, id: string) => {
    const raw = `{"id":${id}}`
    return fetch(`${bed.base}/webhooks/store-sales`, {
      method: 'POST',
      body: raw,
      headers: orderHeaders(accessOf(merchant), id, raw),
    })
  }
  /** While the disk stalls: none waits for it. */
  const refused = (answers: readonly { status: number; headers: Headers }[]) => {
    for (const { status, headers } of answers) {
      assert.is(status, 503)
      assert.ok(Number(headers.get('retry-after')) >= 1)
    }
  }

  it('redirects with the reference of a recorded click only, without one meanwhile, and recovers', async (context) => {
    const { bed, link } = context
    assert.is((await follow(context)).status, 302)
    await whileStalled(bed, async () => {
      for (const { status, headers } of await many(() => follow(context))) {
        assert.equal([status, headers.get('location')], [302, OFFER.product_url])
      }
    })
    const seen = await many(() => follow(context))
    const stored = await bed.platform.database.reader.selectFrom('clicks').select('id').execute()
    const ids = new Set(stored.map(({ id }) => id))
    for (const answer of seen) {
      assert.is(answer.status, 302, link.slug)
      const reference = new URL(answer.headers.get('location') ?? '').searchParams.get('aff_ref')
      assert.ok(ids.has(reference ?? ''))
    }
  })

  it('acknowledges no event that is not kept, and takes each once when it comes again', async (context) => {
    const { bed } = context
    assert.is((await deliver(context, '1')).status, 200)
    const deliverAll = () => many((index) => deliver(context, String(100 + index)))
    await whileStalled(bed, async () => refused(await deliverAll()))
    for (const { status } of await deliverAll()) assert.is(status, 200)
    const events = await columnsOf(bed.platform, 'inbound_events', ['delivery_id'])
    assert.is(events.length, AT_ONCE + 1)
  })

  it.run()
}
