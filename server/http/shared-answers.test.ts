import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type ShownOffer, setOfferStatus, updateOffer, vetOffer } from '../offers/offers.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import type { Platform } from '../platform/platform.ts'
import { updateProfile } from '../profile/profile.service.ts'
import { addLiveOffer, addMerchant } from '../test/testkit/listings.ts'
import { addUser, logIn } from '../test/testkit/people.ts'
import { pluck } from '../test/testkit/pluck.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { openWebTestbed, type WebTestbed } from '../test/testkit/web.ts'
import { reinstateUser, suspendUser } from '../users/users.service.ts'

for (const dialect of proofDialects()) {
  const it = suite(`shared answers on ${dialect}`)
  let bed: WebTestbed
  let platform: Platform
  let merchant: Actor
  let offer: ShownOffer
  it.before.each(async () => {
    bed = await openWebTestbed(dialect)
    platform = bed.platform
    merchant = await addMerchant(platform)
    offer = await addLiveOffer(platform, merchant)
  })
  it.after.each(() => bed.close())

  const listed = async () => (await bed.ask('GET', '/offers')).body.items as ShownOffer[]
  const tagOf = (answer: { headers: Headers }) => answer.headers.get('etag') ?? ''

  it('carry a tag, and a client that sends it gets 304', async () => {
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

  it('change at once with what they show', async () => {
    const tag = tagOf(await bed.ask('GET', '/offers'))
    await updateOffer(platform, merchant.userId, offer.id, { title: 'Another title' })
    assert.equal(pluck(await listed(), 'title'), ['Another title'])
    assert.is((await bed.ask('GET', '/offers', { headers: { 'if-none-match': tag } })).status, 200)
    await setOfferStatus(platform, merchant.userId, offer.id, 'paused')
    assert.equal(await listed(), [])
    assert.is((await bed.ask('GET', `/offers/${offer.id}`)).status, 404)
    await setOfferStatus(platform, merchant.userId, offer.id, 'live')
    assert.is((await listed()).length, 1)
  })

  it('change at once with the name of the merchant that they show', async () => {
    const shown = async () => {
      const one = (await bed.ask('GET', `/offers/${offer.id}`)).body as unknown as ShownOffer
      return [one, ...(await listed())].map((found) => found.merchant.display_name)
    }
    const [before] = await shown()
    assert.equal(await shown(), [before, before])
    await updateProfile(platform, merchant.userId, { displayName: 'Another name' })
    assert.equal(await shown(), ['Another name', 'Another name'])
    const cleared: (string | null)[] = []
    platform.caches.onInvalidation((name) => cleared.push(name))
    const others = [await addUser(platform, 'creator'), await addMerchant(platform), merchant]
    for (const { userId } of others) await updateProfile(platform, userId, { displayName: 'Another name' })
    assert.not(cleared.includes('offers'), 'neither by a name that no offer shows, nor by the same one')
  })

  it('change at once with a suspension, a reinstatement and a vetting', async () => {
    const ids = async () => pluck(await listed(), 'id')
    const get = async (token?: string) => (await bed.ask('GET', `/offers/${offer.id}`, { token })).status
    const admin = await logIn(platform, await addUser(platform, 'admin'))
    const because = { actor: merchant.userId, userId: merchant.userId, reason: 'a test' }
    assert.equal(await ids(), [offer.id])
    await suspendUser(platform, because)
    assert.equal([await ids(), await get(), await get(admin)], [[], 404, 200])
    await reinstateUser(platform, because)
    assert.equal([await ids(), await get()], [[offer.id], 200])
    const changedAt = async () => (await bed.ask('GET', `/offers/${offer.id}`)).body.updated_at
    const before = await changedAt()
    bed.clock.pass(1000)
    await vetOffer(platform, { offerId: offer.id, actor: merchant.userId, decision: 'approve', reason: null })
    assert.is.not(await changedAt(), before)
  })

  it('are in the words that each offer has over tRPC, kept or not', async () => {
    const title = 'A "quoted" \\ کُرتا 🔥 \u2028 < & \u007f'
    const terms = { title, description: 'two\nlines\tand more', product_ids: ['1', '2'] }
    await addLiveOffer(platform, merchant, terms)
    for (const limit of [1, 2, 3]) {
      const text = await (await fetch(`${bed.base}/offers?limit=${limit}`)).text()
      const input = encodeURIComponent(JSON.stringify({ limit }))
      const over = await bed.ask('GET', `/trpc/offers.list?input=${input}`)
      assert.is(text, JSON.stringify((over.body.result as { data: unknown }).data))
      assert.is(text, JSON.stringify(JSON.parse(text)))
    }
  })

  it('are kept apart by address, and from answers to callers with a token', async () => {
    const [few, more] = [await bed.ask('GET', '/offers?limit=1'), await bed.ask('GET', '/offers?limit=2')]
    assert.equal(few.body, more.body)
    const token = await logIn(platform, merchant)
    for (const [path, request, expected] of [
      [`/offers/${offer.id}`, { token }, 200],
      ['/offers', { token: 'x' }, 200],
      ['/offers?limit=no', {}, 400],
    ] as const) {
      const { status, headers } = await bed.ask('GET', path, request)
      assert.equal([status, headers.get('cache-control'), headers.get('etag')], [expected, 'no-store', null])
    }
    const tagged = await bed.ask('GET', '/offers?limit=1&fbclid=1')
    assert.is(tagOf(tagged), tagOf(few), 'unknown parameters make no answer of their own')
  })

  it.run()
}
