import type { Platform } from '../server/platform/platform.ts'
import { attemptState, listAttempts } from '../server/processor/attempts.service.ts'
import { Failure } from './failures.ts'
import { type Output, wireNames, wireTime } from './terminal/output.ts'

/** Where the call to the processor stands for what has not got through yet. */
interface CallState {
  /** `failed`: the processor had it, and reported since that it failed. */
  state: 'waiting' | 'refused' | 'failed'
  tries: number
  /** Epoch ms; `null` when there is no automatic retry. */
  nextTryAt: number | null
  detail: string | null
}

/** By the id of the payout or billing cycle; what has got through, or was never asked for, is missing. */
export async function callStates(
  { database }: Platform,
  kind: 'invoice' | 'payout',
  ids: readonly string[],
): Promise<Map<string, CallState>> {
  const states = new Map<string, CallState>()
  for (const id of ids) {
    const last = (await listAttempts(database.reader, kind, id)).at(-1)
    const state = last && attemptState(last)
    if (!state || state === 'created') continue
    const nextTryAt = state === 'waiting' ? last.next_try_at : null
    states.set(id, { state, tries: last.tries, nextTryAt, detail: last.detail })
  }
  return states
}

/** Why it waits, as text; `retry` is the command that tries it again. */
export function callText(out: Output, call: CallState | undefined, retry: string): string {
  if (!call) return '–'
  if (call.state === 'refused') return `refused: ${call.detail ?? ''}; then "affiliate ${retry}"`
  if (call.state === 'failed') return `failed at the processor; then "affiliate ${retry}"`
  if (call.tries === 0 && call.detail === null) return 'waits to be sent'
  return `${call.detail ?? 'no outcome yet'}; tried again ${out.time(call.nextTryAt)}`
}

export function wireCall(call: CallState | undefined) {
  return call ? wireNames({ ...call, nextTryAt: wireTime(call.nextTryAt) }) : null
}

/** For the exit code of a close or a payout run. */
export function failIfSomeFailed(outcomes: readonly { kind: string }[]): void {
  const failed = outcomes.filter(({ kind }) => kind === 'failed').length
  if (failed > 0) throw new Failure(`${failed} of ${outcomes.length} failed. See "affiliate flagged list".`)
}
