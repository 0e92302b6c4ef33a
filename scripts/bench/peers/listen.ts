import { createServer, type RequestListener } from 'node:http'

/** Serves on a free local port, reports it, and ends on request. */
export function listen(answer: RequestListener): void {
  const server = createServer({ keepAliveTimeout: 65_000 }, answer)
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('no port')
    process.stdout.write(`http://127.0.0.1:${address.port}\n`)
  })
  process.on('SIGTERM', () => process.exit(0))
}
