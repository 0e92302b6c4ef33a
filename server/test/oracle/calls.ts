import { type Call, known, raiseFlag, type State } from './state.ts'

/**
 * How the processor takes a call: `ok`; it takes effect and its answer is `lost`; no effect and no answer (`dropped`); a final no
 * (`refused`); known not to have happened (`throttled`).
 */
export type CallAnswer = 'ok' | 'lost' | 'dropped' | 'refused' | 'throttled'

/** The answer to the nth call (from 0) for one cycle or payout. */
export type AnswerTo = (subject: string, nth: number) => CallAnswer

const TRIES_BEFORE_FLAG = 12
/** How long the processor may take to show a call whose answer was lost. A first call may wait as long before it is looked up. */
const TEN_MINUTES = 600_000

/** Tries every call that has no outcome, once. */
export function makeCalls(state: State, answerTo: AnswerTo, now: number): void {
  for (const call of state.calls) if (call.state === 'waiting') tryCall(state, call, answerTo, now)
}

function tryCall(state: State, call: Call, answerTo: AnswerTo, now: number): void {
  // Without an outcome so far: it is looked up, and called again with the same key only when it is not known there.
  if (call.tries > 0 && state.lookupsDown) postpone(state, call)
  else if (call.tries > 0 && call.held !== null) succeed(state, call, now)
  else if (waitsForReinstatement(state, call)) return
  else if (state.lookupsDown && isFirstOfOld(call, now)) postpone(state, call)
  else makeCall(state, call, answerTo, now)
}

/** Whether this is the first try of a call that has waited: even that is looked up before it. */
function isFirstOfOld({ tries, queuedAt }: Call, now: number): boolean {
  return tries === 0 && now > queuedAt + TEN_MINUTES
}

function makeCall(state: State, call: Call, answerTo: AnswerTo, now: number): void {
  const answer = answerTo(call.subject, call.made)
  call.made += 1
  if (answer === 'ok' || answer === 'lost') call.held = call.kind === 'invoice' ? 'open' : 'processing'
  if (answer === 'ok') succeed(state, call, now)
  else if (answer === 'refused' && isLastWord(call, now)) refuse(state, call)
  else postpone(state, call)
  if (answer === 'lost' || answer === 'dropped') call.unheardAt = now
}

/** A refusal may be about a call before it that was made and not heard of: it counts once that would have been seen. */
function isLastWord({ unheardAt }: Call, now: number): boolean {
  return unheardAt === null || now >= unheardAt + TEN_MINUTES
}

function refuse(state: State, call: Call): void {
  call.tries += 1
  call.state = 'refused'
  raiseFlag(state, 'processor_refusal', call.subject)
}

function waitsForReinstatement(state: State, call: Call): boolean {
  if (call.kind === 'invoice') return false
  const payout = state.payouts.find(({ name }) => name === call.subject)
  return known(state.people, payout?.creator ?? '').suspended
}

function postpone(state: State, call: Call): void {
  call.tries += 1
  if (call.tries === TRIES_BEFORE_FLAG) raiseFlag(state, 'processor_disagrees', call.subject)
}

function succeed(state: State, call: Call, now: number): void {
  call.tries += 1
  call.state = 'created'
  const payout = state.payouts.find(({ name }) => name === call.subject)
  if (!payout) return
  payout.state = 'submitted'
  payout.submittedAt = now
}
