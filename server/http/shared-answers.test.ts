import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type ShownOffer, setOfferStatus, updateOffer, vetOffer } from '../offers/offers.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { updateProfile } from '../profile/profile.service.ts'
import { addLiveOffer, addMerchant } from '../test/testkit/listings.ts'
import { addUser } from '../test/testkit/people.ts'
import { pluck } from '../test/testkit/pluck.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { openWebTestbed, type WebTestbed } from '../test/testkit/web.ts'
import { reinstateUser, suspendUser } from '../users/users.service.ts'

interface Context {
  bed: WebTestbed
  merchant: Actor
  offer: ShownOffer
}

for (const dialect of proofDialects()) {
  const it = suite<Context>(`shared answers on ${dialect}`)
  it.before.each(async (context) => {
    context.bed = await openWebTestbed(dialect)
    context.merchant = await addMerchant(context.bed.platform)
    context.offer = await addLiveOffer(context.bed.platform, context.merchant)
  })
  it.after.each(({ bed }) => bed.close())

  const tagOf = (answer: { headers: Headers }) => answer.headers.get('etag') ?? ''

  it('carry a tag, and a client that sends it gets 304', async ({ bed, offer }) => {
    for (const path of ['/offers', '/offers?limit=5&sort=commission_desc', `/offers/${offer.id}`]) {
      const first = await bed.ask('GET', path)
      assert.is(first.status, 200)
      assert.is(first.headers.get('cache-control'), 'public, no-cache')
      assert.match(first.headers.get('vary') ?? '', /\bauthorization\b/i)
      assert.match(tagOf(first), /^"[\w-]{22}"$/)
      const given = [tagOf(first), `W/${tagOf(first)}`, `"another", ${tagOf(first)}`, '*']
      for (const tag of given) {
        const again = await bed.ask('GET', path, { headers: { 'if-none-match': tag } })
        assert.equal([again.status, again.body, tagOf(again)], [304, {}, tagOf(first)], tag)
        assert.is(again.headers.get('content-length'), null)
      }
      for (const tag of ['"another"', 'x', '', tagOf(first).slice(1)]) {
        const whole = await bed.ask('GET', path, { headers: { 'if-none-match': tag } })
        assert.equal([whole.status, whole.body], [200, first.body], tag)
      }
    }
  })

  it('change at once with what they show', async ({ bed, merchant, offer }) => {
    const { platform } = bed
    const shown = async () => (await bed.ask('GET', '/offers')).body.items as { id: string; title: string }[]
    const tag = tagOf(await bed.ask('GET', '/offers'))
    await updateOffer(platform, merchant.userId, offer.id, { title: 'Another title' })
    assert.equal(pluck(await shown(), 'title'), ['Another title'])
    assert.is((await bed.ask('GET', '/offers', { headers: { 'if-none-match': tag } })).status, 200)
    await setOfferStatus(platform, merchant.userId, offer.id, 'paused')
    assert.equal(await shown(), [])
    assert.is((await bed.ask('GET', `/offers/${offer.id}`)).status, 404)
    await setOfferStatus(platform, merchant.userId, offer.id, 'live')
    assert.is((await shown()).length, 1)
  })

  it('change at once with the name of the merchant that they show', async ({ bed, merchant, offer }) => {
    const shown = async () => {
      const one = (await bed.ask('GET', `/offers/${offer.id}`)).body as unknown as ShownOffer
      const listed = (await bed.ask('GET', '/offers')).body.items as ShownOffer[]
      return [one, ...listed].map((found) => found.merchant.display_name)
    }
    const [before] = await shown()
    assert.equal(await shown(), [before, before])
    await updateProfile(bed.platform, merchant.userId, { displayName: 'Another name' })
    assert.equal(await shown(), ['Another name', 'Another name'])
    const cleared: (string | null)[] = []
    bed.platform.caches.onInvalidation((name) => cleared.push(name))
    const others = [await addUser(bed.platform, 'creator'), await addMerchant(bed.platform), merchant]
    for (const { userId } of others)
      await updateProfile(bed.platform, userId, { displayName: 'Another name' })
    assert.not(cleared.includes('offers'), 'neither by a name that no offer shows, nor by the same one')
  })

  it('change at once with a suspension, a reinstatement and a vetting', async ({ bed, merchant, offer }) => {
    const { platform } = bed
    const ids = async () =>
      ((await bed.ask('GET', '/offers')).body.items as { id: string }[]).map(({ id }) => id)
    const because = { actor: merchant.userId, userId: merchant.userId, reason: 'a test' }
    assert.equal(await ids(), [offer.id])
    await suspendUser(platform, because)
    assert.equal(await ids(), [])
    await reinstateUser(platform, because)
    assert.equal(await ids(), [offer.id])
    const changedAt = async () => (await bed.ask('GET', `/offers/${offer.id}`)).body.updated_at
    const before = await changedAt()
    bed.clock.pass(1000)
    await vetOffer(platform, { offerId: offer.id, actor: merchant.userId, decision: 'approve', reason: null })
    assert.is.not(await changedAt(), before)
  })

  it('are in the words that each offer has over tRPC, kept or not', async ({ bed, merchant }) => {
    const title = 'A "quoted" \\ کُرتا 🔥 \u2028 < & \u007f'
    await addLiveOffer(bed.platform, merchant, {
      title,
      description: 'two\nlines\tand more',
      product_ids: ['1', '2'],
    })
    for (const path of ['/offers?limit=1', '/offers?limit=2', '/offers?limit=3']) {
      const text = await (await fetch(`${bed.base}${path}`)).text()
      const input = encodeURIComponent(JSON.stringify({ limit: Number(path.at(-1)) }))
      const over = (await bed.ask('GET', `/trpc/offers.list?input=${input}`)).body as {
        result: { data: unknown }
      }
      assert.is(text, JSON.stringify(over.result.data))
      assert.is(text, JSON.stringify(JSON.parse(text)))
    }
  })

  it('are kept apart by address, and from answers to callers with a token', async ({ bed, offer }) => {
    const [few, more] = [await bed.ask('GET', '/offers?limit=1'), await bed.ask('GET', '/offers?limit=2')]
    assert.equal(few.body, more.body)
    const { body } = await bed.ask('POST', '/auth/register', {
      body: { email: 'm@example.pk', password: 'correct horse battery', role: 'merchant', display_name: 'M' },
    })
    const own = await bed.ask('GET', `/offers/${offer.id}`, { token: String(body.token) })
    assert.equal(
      [own.status, own.headers.get('cache-control'), own.headers.get('etag')],
      [200, 'no-store', null],
    )
    const stale = await bed.ask('GET', '/offers', { token: 'x' })
    assert.equal([stale.status, stale.headers.get('cache-control')], [200, 'no-store'])
    const tagged = await bed.ask('GET', '/offers?limit=1&fbclid=1')
    assert.is(
      tagged.headers.get('etag'),
      few.headers.get('etag'),
      'unknown parameters make no answer of their own',
    )
    const wrong = await bed.ask('GET', '/offers?limit=no')
    assert.equal([wrong.status, wrong.headers.get('cache-control')], [400, 'no-store'])
  })

  it.run()
}
