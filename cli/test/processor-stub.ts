import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface HeldItem {
  id: string
  reference: string
  amount: string
  currency: string
  status: string
}

/** A processor that only answers look-ups, with the records that it is given; `down` answers 503. */
export interface ProcessorStub {
  held: HeldItem[]
  down: boolean
  /** Called for each look-up, before its answer. */
  onLookup: () => unknown
  /** Settings by which commands find it. */
  settings: Record<string, string>
  close(): Promise<void>
}

export async function openProcessorStub(): Promise<ProcessorStub> {
  const server = createServer((request, response) => {
    stub.onLookup()
    const reference = new URL(request.url ?? '/', 'http://stub').searchParams.get('reference')
    const items = stub.held.filter((item) => item.reference === reference)
    response.writeHead(stub.down ? 503 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ items }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const stub: ProcessorStub = {
    held: [],
    down: false,
    onLookup: () => undefined,
    settings: {
      PROCESSOR: 'http',
      PROCESSOR_URL: `http://127.0.0.1:${port}`,
      PROCESSOR_API_KEY: 'a key of the stub',
      PROCESSOR_WEBHOOK_SECRETS: `whsec_${Buffer.alloc(24, 9).toString('base64')}`,
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return stub
}
