import { once } from 'node:events'
import { type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http'
import * as assert from 'uvu/assert'
import type { LinkRecord } from '../links/links.service.ts'
import { addLink, addLiveOffer, addMerchant, OFFER } from '../test/testkit/listings.ts'
import { addUser } from '../test/testkit/people.ts'
import { pluck } from '../test/testkit/pluck.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { rowsOf } from '../test/testkit/rows.ts'
import { webSuite } from '../test/testkit/web.ts'

const BROWSER = { accept: 'text/html', 'user-agent': 'Mozilla/5.0 (Linux; Android 14) Mobile Safari/537.36' }

/** As it is: `fetch` would normalize these paths. */
async function rawRequest(base: string, path: string, headers: OutgoingHttpHeaders = {}) {
  const sent = request(base, { path, headers }).end()
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  const body = Buffer.concat(await answer.toArray()).toString()
  return { status: answer.statusCode, location: answer.headers.location, body }
}

for (const dialect of proofDialects()) {
  const settings = { LINK_FALLBACK_URL: 'https://market.pk/links' }
  const it = webSuite<{ link: LinkRecord }>(`links that people type, on ${dialect}`, dialect, settings)
  it.before(async (context) => {
    const { platform } = context.bed
    const merchant = await addMerchant(platform)
    const offer = await addLiveOffer(platform, merchant)
    context.link = await addLink(platform, merchant, await addUser(platform, 'creator'), offer.id)
  })

  it('lead to the product page, with a click and the glued parameters', async ({ bed, link: { slug } }) => {
    const typed = [
      `/go/${slug.toUpperCase()}/`,
      `//go/${slug}`,
      `/Go/${slug}`,
      `/GO//${slug}%22/`,
      `/go/%E2%81%A6${slug}%E2%81%A9`,
      `/go/${slug}%E2%80`,
      `/go/${slug}%`,
    ]
    const [page, fragment] = OFFER.product_url.split('#')
    const followed = async (path: string) => {
      const { status, location } = await rawRequest(bed.base, path)
      const reference = new URL(location ?? 'https://none').searchParams.get('aff_ref')
      return { status, rest: location?.replace(`${page}&aff_ref=${reference}`, '') }
    }
    for (const path of typed) assert.equal(await followed(path), { status: 302, rest: `#${fragment}` }, path)
    const glued = [`/go/${slug}&brid=abc`, `/go/${slug}%3Fbrid=abc`, `/Go/${slug}/?brid=abc`]
    for (const path of glued) {
      assert.equal(await followed(path), { status: 302, rest: `&brid=abc#${fragment}` }, path)
    }
    const long = 'x'.repeat(1500)
    const longest = { status: 302, rest: `&brid=${long}#${fragment}` }
    assert.equal(await followed(`/go/${slug}&brid=${long}`), longest)
    const clicks = await rowsOf(bed.platform, 'clicks')
    assert.equal(pluck(clicks, 'tracked'), Array(typed.length + 4).fill(1))
  })

  it('lead nowhere unless a slug remains: the problem, a browser to the operator', async ({ bed }) => {
    const paths = ['/go/', '/Go/none', '//go/none', '/go/no/slug', '/go/%E0%A4', `/go/${'.'.repeat(3000)}`]
    for (const path of paths) {
      const answer = await rawRequest(bed.base, path)
      assert.equal([answer.status, answer.location], [404, undefined], path)
      assert.is(JSON.parse(answer.body).code, 'not_found')
      const browser = await rawRequest(bed.base, path, BROWSER)
      assert.equal([browser.status, browser.location], [302, 'https://market.pk/links'], path)
    }
    assert.is((await bed.ask('POST', '/Go/none')).status, 404)
  })

  it.run()
}
