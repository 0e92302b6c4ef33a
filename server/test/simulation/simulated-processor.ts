import type { CallOutcome, LookupKeys, LookupOutcome, Processor } from '../../processor/processor.ts'
import type { AnswerTo, CallAnswer } from '../oracle/calls.ts'
import { type Answer, ScriptedProcessor } from '../testkit/scripted-processor.ts'

const ANSWERS: Record<CallAnswer, Answer> = {
  ok: 'ok',
  lost: 'lose',
  dropped: 'drop',
  refused: 'refuse',
  throttled: 'throttle',
}

/**
 * The scripted processor with an answer for each call by what it is about, so that it makes no difference in which order calls for
 * several cycles and payouts come in.
 */
export class SimulatedProcessor implements Processor {
  readonly scripted = new ScriptedProcessor()
  payoutUnit = 1
  readonly #answerTo: AnswerTo
  readonly #nameOf: (reference: string) => Promise<string>
  readonly #made = new Map<string, number>()

  constructor(answerTo: AnswerTo, nameOf: (reference: string) => Promise<string>) {
    this.#answerTo = answerTo
    this.#nameOf = nameOf
  }

  async createInvoice(call: Parameters<Processor['createInvoice']>[0]): Promise<CallOutcome> {
    this.#prepare(call.reference, await this.#nameOf(call.reference))
    return this.scripted.createInvoice(call)
  }

  async createPayout(call: Parameters<Processor['createPayout']>[0]): Promise<CallOutcome> {
    this.#prepare(call.reference, await this.#nameOf(call.reference))
    return this.scripted.createPayout(call)
  }

  findInvoices(keys: LookupKeys): Promise<LookupOutcome> {
    return this.scripted.findInvoices(keys)
  }

  findPayouts(keys: LookupKeys): Promise<LookupOutcome> {
    return this.scripted.findPayouts(keys)
  }

  /** Sets the script for the call that follows in the same turn. */
  #prepare(reference: string, name: string): void {
    const nth = this.#made.get(reference) ?? 0
    this.#made.set(reference, nth + 1)
    this.scripted.answers = [ANSWERS[this.#answerTo(name, nth)]]
    this.scripted.nextId = (kind) => processorId(kind, reference)
  }
}

/** The processor's own id of what it holds under one of our references. */
export function processorId(kind: 'inv' | 'po', reference: string): string {
  return `${kind}-${reference}`
}
