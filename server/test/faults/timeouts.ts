import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * Stands in for `AbortSignal.timeout`, so that no test waits for the timeout of a call: it ends when the
 * processor's double says that no answer will come.
 */
export function installTimeouts() {
  const real = AbortSignal.timeout
  const present = new AsyncLocalStorage<string>()
  const waiting = new Map<string, AbortController>()
  AbortSignal.timeout = (ms) => {
    const reference = present.getStore()
    if (reference === undefined) return real.call(AbortSignal, ms)
    const controller = new AbortController()
    waiting.set(reference, controller)
    return controller.signal
  }
  return {
    /** Does `call`, which asks about this reference. */
    during: <T>(reference: string, call: () => Promise<T>): Promise<T> => present.run(reference, call),
    /** The time of what is under way about this reference is over. */
    end(reference: string): void {
      const controller = waiting.get(reference)
      if (!controller) throw new Error(`no call waits for ${reference}`)
      controller.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError'))
    },
    /** Gives the real one back. */
    close(): void {
      AbortSignal.timeout = real
    },
  }
}
