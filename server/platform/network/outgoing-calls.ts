import type { Agent } from 'undici'

type CallOptions = Omit<NonNullable<Parameters<typeof import('undici').request>[1]>, 'dispatcher' | 'signal'>

export type OutgoingCalls = ReturnType<typeof openOutgoingCalls>

/** HTTP calls to one other service, over a connection pool of their own. Loads undici with the first call, to keep commands fast. */
export function openOutgoingCalls(options: Agent.Options) {
  let closed = false
  let opened: ReturnType<typeof open> | null = null
  async function open() {
    const { Agent, request } = await import('undici')
    const agent = new Agent(options)
    // After `close` nothing may be sent.
    if (closed) await agent.destroy()
    return { agent, request }
  }
  return {
    /** Does not follow redirects. Fails unless the whole response arrives within `timeoutMs`. */
    async request(url: string | URL, options: CallOptions, timeoutMs: number) {
      opened ??= open()
      const { agent, request } = await opened
      return request(url, { ...options, dispatcher: agent, signal: AbortSignal.timeout(timeoutMs) })
    },
    /** Closes the connections; calls in flight fail. */
    async close() {
      closed = true
      await (await opened)?.agent.destroy()
    },
  }
}
