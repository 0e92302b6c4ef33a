import fastify, { type FastifyInstance } from 'fastify'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type ClickRecorder, createClickRecorder } from '../clicks/clicks.service.ts'
import { type LinkRecord, resolveTarget } from '../links/links.service.ts'
import { type ShownOffer, setOfferStatus, updateOffer } from '../offers/offers.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { Caches } from '../platform/cache/caches.ts'
import type { Database } from '../platform/database/database.ts'
import { updateRows } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import type { TestDialect } from '../test/testkit/databases.ts'
import { addLink, addLiveOffer, addMerchant, OFFER } from '../test/testkit/listings.ts'
import { addUser, setSuspended } from '../test/testkit/people.ts'
import { pluck, pluckAll } from '../test/testkit/pluck.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { rowsOf } from '../test/testkit/rows.ts'
import { openTestbed, type Testbed } from '../test/testkit/testbed.ts'
import { sendProblem } from './errors.ts'
import { registerRedirect } from './redirect.ts'

const BROWSER = 'Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 Chrome/130.0.0.0 Mobile Safari/537.36'
const [BEFORE, AFTER] = OFFER.product_url.split('#') as [string, string]

interface Web {
  server: FastifyInstance
  clicks: ClickRecorder
  go(slug: string, options?: { method?: string; headers?: Record<string, string> }): Promise<Response>
}

/** The route on a real socket, alone: what the whole server puts around it is tested with the server. */
async function serve(platform: Platform): Promise<Web> {
  const server = fastify({ genReqId: () => platform.ids.next() })
  server.setErrorHandler((error, request, reply) => sendProblem(platform, request, reply, error))
  const clicks = createClickRecorder(platform)
  registerRedirect(server, { platform, clicks })
  const address = await server.listen({ host: '127.0.0.1', port: 0 })
  return {
    server,
    clicks,
    go: (slug, { method = 'GET', headers = {} } = {}) =>
      fetch(`${address}/go/${slug}`, {
        method,
        redirect: 'manual',
        headers: { 'user-agent': BROWSER, ...headers },
      }),
  }
}

function referenceOf(response: Response): string | null {
  return new URL(response.headers.get('location') ?? 'https://none').searchParams.get('aff_ref')
}

/** Asserts a redirect to this address. */
function leadsTo({ status, headers }: Response, location: string): void {
  assert.equal([status, headers.get('location')], [302, location])
}

function downError(dialect: TestDialect): Error {
  const code = dialect === 'sqlite' ? 'SQLITE_IOERR' : '57P01'
  return Object.assign(new Error('the database is down'), { code })
}

for (const dialect of proofDialects()) {
  const it = suite(`redirect on ${dialect}`)
  let bed: Testbed
  let platform: Platform
  let web: Web
  let merchant: Actor
  let creator: Actor
  let offer: ShownOffer
  let link: LinkRecord
  it.before(async () => {
    bed = await openTestbed(dialect)
    platform = bed.platform
    web = await serve(platform)
  })
  it.before.each(async () => {
    merchant = await addMerchant(platform)
    creator = await addUser(platform, 'creator')
    offer = await addLiveOffer(platform, merchant)
    link = await addLink(platform, merchant, creator, offer.id)
  })
  it.after(async () => {
    await web.server.close()
    await bed.close()
  })

  /** Those on the link. */
  const clicks = () => rowsOf(platform, 'clicks', { link_id: link.id })

  it('sends a visitor on with the reference of a stored click', async () => {
    const answer = await web.go(link.slug)
    assert.is(answer.headers.get('referrer-policy'), 'strict-origin-when-cross-origin')
    assert.is(await answer.text(), '')
    const id = referenceOf(answer)
    leadsTo(answer, `${BEFORE}&aff_ref=${id}#${AFTER}`)
    assert.is(answer.headers.get('x-request-id'), id)
    const now = platform.clock.now()
    assert.equal(pluckAll(await clicks(), 'id', 'tracked', 'kind', 'created_at'), [[id, 1, 'visit', now]])
  })

  it('does not answer before the click has committed', async () => {
    const gate = Promise.withResolvers<void>()
    const writing = Promise.withResolvers<void>()
    const database: Database = {
      ...platform.database,
      async executeBatch(...statements) {
        writing.resolve()
        await gate.promise
        return platform.database.executeBatch(...statements)
      },
    }
    const web = await serve({ ...platform, database })
    let answered = false
    const answer = web.go(link.slug)
    void answer.then(() => {
      answered = true
    })
    await writing.promise
    await new Promise((resolve) => setImmediate(resolve))
    assert.not.ok(answered)
    gate.resolve()
    const id = referenceOf(await answer)
    assert.equal(pluck(await clicks(), 'id'), [id])
    await web.server.close()
  })

  it('sends bots, prefetches and HEAD on too, logged as such', async () => {
    const answers = [
      await web.go(link.slug, { method: 'HEAD' }),
      await web.go(link.slug, { headers: { 'user-agent': 'curl/8.5.0' } }),
      await web.go(link.slug, { headers: { 'sec-purpose': 'prefetch;prerender' } }),
    ]
    assert.equal(pluck(answers, 'status'), [302, 302, 302])
    const kinds = ['head', 'bot', 'prefetch']
    const expected = answers.map((answer, index) => [referenceOf(answer), kinds[index], 1])
    assert.equal(pluckAll(await clicks(), 'id', 'kind', 'tracked'), expected)
  })

  it('sends what a page embeds to the plain page, untracked', async () => {
    const goFor = (destination: string) => web.go(link.slug, { headers: { 'sec-fetch-dest': destination } })
    for (const destination of ['image', 'iframe', 'empty'])
      leadsTo(await goFor(destination), OFFER.product_url)
    assert.ok(referenceOf(await goFor('document')))
    const expected = [...Array(3).fill(['embedded', 0]), ['visit', 1]]
    assert.equal(pluckAll(await clicks(), 'kind', 'tracked'), expected)
  })

  it('logs every visit, and marks those that repeat one of the same visitor on the same link', async () => {
    const second = await addLink(platform, merchant, creator, (await addLiveOffer(platform, merchant)).id)
    const otherPhone = BROWSER.replace('Android 14', 'Android 13')
    const references = [
      await web.go(link.slug),
      await web.go(link.slug),
      await web.go(link.slug, { headers: { 'user-agent': otherPhone } }),
      await web.go(second.slug),
      await web.go(link.slug, { headers: { 'user-agent': 'curl/8.5.0' } }),
      await web.go(link.slug),
    ].map(referenceOf)
    const rows = await rowsOf(platform, 'clicks')
    assert.equal(
      references.map((reference) => rows.find(({ id }) => id === reference)?.repeated),
      [0, 1, 0, 0, 0, 1],
    )
  })

  it('sends visitors to the plain product page when nothing can be earned', async () => {
    await setSuspended(platform, creator.userId, true)
    leadsTo(await web.go(link.slug), OFFER.product_url)
    await setSuspended(platform, creator.userId, false)
    for (const status of ['paused', 'ended'] as const) {
      await setOfferStatus(platform, merchant.userId, offer.id, status)
      leadsTo(await web.go(link.slug), OFFER.product_url)
    }
    assert.equal(pluckAll(await clicks(), 'kind', 'tracked'), Array(3).fill(['visit', 0]))
  })

  it('answers 410 for a suspended merchant and 404 for what is no link, without a click', async () => {
    await setSuspended(platform, merchant.userId, true)
    const gone = await web.go(link.slug)
    assert.is(gone.status, 410)
    assert.match(gone.headers.get('content-type') ?? '', /^application\/problem\+json/)
    const { request_id, ...problem } = (await gone.json()) as Record<string, unknown>
    assert.ok(request_id)
    const detail = 'This affiliate link is no longer active.'
    assert.equal(problem, { type: 'about:blank', title: 'Gone', status: 410, code: 'gone', detail })
    const page = await web.go(link.slug, { headers: { accept: 'text/html,*/*;q=0.8' } })
    assert.is(page.status, 410)
    assert.match(await page.text(), /<html lang="en".*no longer active/s)
    const strangers = '23456789ab x %00%00%00%00 %2e%2e%2fgo https:%2f%2fevil.pk KURTA üüüüüüüüü'
    for (const slug of strangers.split(' ')) {
      const answer = await web.go(slug)
      assert.equal([answer.status, answer.headers.get('location')], [404, null], slug)
      assert.is(((await answer.json()) as { code: string }).code, 'not_found')
      const shown = await web.go(slug, { headers: { accept: 'text/html' } })
      assert.is(shown.status, 404)
      assert.match(await shown.text(), /<html lang="en".*<a href="\?lang=ur" .*does not work/s)
      const urdu = await web.go(slug, { headers: { accept: 'text/html', 'accept-language': 'ur' } })
      assert.match(await urdu.text(), /<html lang="ur" dir="rtl">.*یہ لنک کام نہیں کر رہا/s)
      const policy =
        /^default-src 'none'; img-src data:; style-src 'sha256-[^']+'; base-uri 'none'; form-action 'none'/
      assert.match(shown.headers.get('content-security-policy') ?? '', policy)
    }
    assert.equal(await clicks(), [])
  })

  it('takes the page from the offer, and from the request only parameters that the page has not', async () => {
    const product_url = 'https://kurta.pk/p?b=%20x&aff_ref=forged&c#top'
    const saved = await updateOffer(platform, merchant.userId, offer.id, { product_url })
    assert.is(saved.product_url, 'https://kurta.pk/p?b=%20x&c#top')
    // As if it had been written by other means.
    await platform.database.transaction((tx) => updateRows(tx, 'offers', { id: offer.id }, { product_url }))
    const visit = 'aff_ref=mine&url=https://evil.pk&b=2&%63=3&utm=a+b&utm=%D8%B3#evil'
    const answer = await web.go(`${link.slug}?${visit}`, { headers: { 'x-forwarded-host': 'evil.pk' } })
    const reference = referenceOf(answer)
    leadsTo(
      answer,
      `https://kurta.pk/p?b=%20x&c&aff_ref=${reference}&url=https://evil.pk&utm=a+b&utm=%D8%B3#top`,
    )
    assert.is((await clicks())[0]?.id, reference)
    await setOfferStatus(platform, merchant.userId, offer.id, 'paused')
    const untracked = await web.go(`${link.slug}?aff_ref=mine&fbclid=x`)
    leadsTo(untracked, 'https://kurta.pk/p?b=%20x&c&fbclid=x#top')
  })

  it('keeps the sub id of a visit on its click, and does not forward it', async () => {
    for (const query of ['sub=reel-12&utm=a', 'sub=%D8%B9%DB%8C%D8%AF', 'sub=%00', 'utm=a', 'sub=a&sub=b']) {
      const answer = await web.go(`${link.slug}?${query}`)
      assert.not.match(answer.headers.get('location') ?? '', /[?&]sub=/)
    }
    assert.equal(pluck(await clicks(), 'sub_id'), ['reel-12', 'عید', null, null, 'a'])
  })

  it('sends visitors to the plain product page while the database is down, if the link is known', async () => {
    const fail = () => {
      throw downError(dialect)
    }
    const executeBatch = async () => fail()
    const noWrites: Platform = { ...platform, database: { ...platform.database, executeBatch } }
    const reader = { getExecutor: fail } as unknown as Database['reader']
    // As if each value were outdated when it is read.
    const caches = new Caches({ lifetimeMs: 0 })
    const noReads: Platform = { ...platform, caches, database: { ...platform.database, reader } }
    const web = await serve(noReads)
    for (const headers of [{}, { accept: 'text/html' }] as Record<string, string>[]) {
      const answer = await web.go(link.slug, { headers })
      assert.equal([answer.status, answer.headers.get('location')], [503, null])
      assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/)
      const text = await answer.text()
      assert.match(text, headers.accept ? /<html.*<a href="">Try again/s : /"code":"unavailable"/)
    }
    await resolveTarget({ ...noReads, database: platform.database }, link.slug)
    const writeless = await serve(noWrites)
    for (const { go } of [web, writeless])
      leadsTo(await go(`${link.slug}?utm=a&sub=b`), `${BEFORE}&utm=a#${AFTER}`)
    assert.equal([web.clicks.lost(), writeless.clicks.lost()], [1, 1])
    assert.equal(await clicks(), [])
    await web.server.close()
    await writeless.server.close()
  })

  it.run()
}
