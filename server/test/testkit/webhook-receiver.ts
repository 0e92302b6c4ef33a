import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text as textOf } from 'node:stream/consumers'

export interface ReceivedWebhook {
  id: string
  headers: IncomingHttpHeaders
  body: { type: string; timestamp: string; data: Record<string, unknown> }
  /** As it was received. */
  text: string
}

export type WebhookReceiver = Awaited<ReturnType<typeof openWebhookReceiver>>

/** A merchant's or creator's own system, on a free loopback port. */
export async function openWebhookReceiver() {
  const server = createServer((request, response) => {
    const { headers } = request
    void textOf(request).then((text) => {
      const webhook = { id: String(headers['webhook-id']), headers, body: JSON.parse(text), text }
      receiver.received.push(webhook)
      receiver.answer(response, webhook)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`,
    received: [] as ReceivedWebhook[],
    /** Answers the next requests; with 204 at first. */
    answer(response: ServerResponse, _webhook: ReceivedWebhook): void {
      response.writeHead(204).end()
    },
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
  return receiver
}
