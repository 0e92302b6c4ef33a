/** The least that a webhook's receiver can be: it reads the body and says 200. With BENCH_HMAC_SECRET it checks it too. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { listen } from './listen.ts'

const secret = process.env.BENCH_HMAC_SECRET
const ANSWER = JSON.stringify({ received: true })

listen((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = Buffer.concat(chunks)
    const claimed = Buffer.from(String(request.headers['x-shopify-hmac-sha256'] ?? ''), 'base64')
    const holds =
      secret === undefined || timingSafeEqual(createHmac('sha256', secret).update(body).digest(), claimed)
    response.writeHead(holds ? 200 : 401, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(ANSWER),
    })
    response.end(ANSWER)
  })
})
