import { call, registerMerchant } from '../testkit/service-bed.ts'
import { openStalledPostgres } from './stalling.ts'

const OFFER = {
  title: 'Brass lamp',
  product_url: 'https://shop.pk/products/lamp',
  category: 'Home',
  niche: 'Lamps',
  commission_rate: 12.5,
}

export interface StalledCall {
  name: string
  status: number
  retryAfter: number
  ms: number
}

/** Ordinary calls that need PostgreSQL, made while it is stalled and again afterwards. */
export async function callWhileStalled(): Promise<{ stalled: StalledCall[]; offersAfter: number }> {
  const { world, stall, flow, close } = await openStalledPostgres()
  try {
    const url = await world.up()
    const token = await registerMerchant(url)
    const requests: [string, string, Parameters<typeof call>[3]][] = [
      ['GET', '/offers', {}],
      ['GET', '/trpc/offers.list', {}],
      ['GET', '/me', { token }],
      ['GET', '/summary', { token }],
      ['POST', '/offers', { token, body: OFFER }],
    ]
    await stall()
    const stalled = await Promise.all(
      requests.map(async ([method, path, request]) => {
        const start = performance.now()
        const { status, headers } = await call(url, method, path, request)
        const ms = performance.now() - start
        return { name: `${method} ${path}`, status, retryAfter: Number(headers.get('retry-after')), ms }
      }),
    )
    flow()
    await world.insist(200, { method: 'GET', path: '/me', headers: { authorization: `Bearer ${token}` } })
    const offers = await world.look(({ database }) =>
      database.reader.selectFrom('offers').select('id').execute(),
    )
    return { stalled, offersAfter: offers.length }
  } finally {
    await close()
  }
}
