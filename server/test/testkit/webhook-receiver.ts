import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface ReceivedWebhook {
  id: string
  headers: IncomingHttpHeaders
  body: { type: string; timestamp: string; data: Record<string, unknown> }
  /** As it was received. */
  text: string
}

/** A merchant's or creator's own system, on a free loopback port. */
export interface WebhookReceiver {
  url: string
  received: ReceivedWebhook[]
  /** What the next requests are answered with; 204 at first. */
  answer: (response: ServerResponse, webhook: ReceivedWebhook) => void
  close(): void
}

export async function openWebhookReceiver(): Promise<WebhookReceiver> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8')
      const id = String(request.headers['webhook-id'])
      const webhook = { id, headers: request.headers, body: JSON.parse(text), text }
      receiver.received.push(webhook)
      receiver.answer(response, webhook)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const receiver: WebhookReceiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`,
    received: [],
    answer: (response) => response.writeHead(204).end(),
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
  return receiver
}
