import type { Agent, Dispatcher } from 'undici'

type CallOptions = Omit<NonNullable<Parameters<typeof import('undici').request>[1]>, 'dispatcher' | 'signal'>

/** HTTP calls to one other service, over connections of their own. */
export interface OutgoingCalls {
  /** Follows no redirect. Fails when the answer's head and body have not come within `timeoutMs` of its sending. */
  request(
    url: string | URL,
    options: CallOptions,
    timeoutMs: number,
  ): Promise<Dispatcher.ResponseData<unknown>>
  /** Ends the connections; calls in flight then fail. */
  close(): Promise<void>
}

/** Loads undici with the first call: most commands make none, and a fifth of their start would go into loading it. */
export function openOutgoingCalls(options: Agent.Options): OutgoingCalls {
  let closed = false
  let opened: ReturnType<typeof open> | null = null
  async function open() {
    const { Agent, request } = await import('undici')
    const agent = new Agent(options)
    // Whoever has closed it counts on it that nothing is sent any more.
    if (closed) await agent.destroy()
    return { agent, request }
  }
  return {
    async request(url, options, timeoutMs) {
      opened ??= open()
      const { agent, request } = await opened
      return request(url, { ...options, dispatcher: agent, signal: AbortSignal.timeout(timeoutMs) })
    },
    async close() {
      closed = true
      await (await opened)?.agent.destroy()
    },
  }
}
