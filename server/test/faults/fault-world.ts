import { closeDueCycles } from '../../billing/close-cycle.service.ts'
import { nextEventDueAt } from '../../inbox/inbox.service.ts'
import { makeDueCalls } from '../../jobs/processor-calls.ts'
import { drainUntilIdle } from '../../jobs/worker.ts'
import { runPayouts } from '../../payouts/payout-run.service.ts'
import type { Processor } from '../../processor/processor.ts'
import type { TestDialect } from '../testkit/databases.ts'
import { giveDestination, type Marketplace, openMarketplace } from '../testkit/marketplace.ts'
import { changeUser } from '../testkit/people.ts'
import { columnsOf } from '../testkit/rows.ts'
import { DAY, HOUR, MINUTE } from '../testkit/testbed.ts'
import { writeUnsynced } from '../testkit/unsynced.ts'
import { Announcer } from './announcer.ts'
import { CONTRACT_PARTS, type Contract, type ContractParts } from './contracts.ts'
import { complaintsInBetween, judgeStory, type StoryOutcome } from './judge.ts'
import { ProcessorDouble } from './processor-double.ts'
import type { Round, Story } from './story.ts'
import { type Subject, Subjects } from './subjects.ts'
import { installTimeouts } from './timeouts.ts'

/** The batch size of a worker; a whole batch dies with it. */
export const MOST_STORIES = 20
/** Enough to reach the flags for an attempt without an outcome and for an event that cannot be applied. */
const MOST_ROUNDS = 14
/** For so many rounds the schedules run as well. */
const SCHEDULED_ROUNDS = 3
const NO_LISTENER = 'http://127.0.0.1:1'
const OTHER_IBAN = 'PK24SCBL0000001171495101'

/** A marketplace that pays and bills through a real adapter, against a processor that misbehaves as configured. */
export class FaultWorld {
  readonly market: Marketplace
  readonly #double: ProcessorDouble
  readonly #announcer: Announcer
  readonly #parts: ContractParts
  readonly #timeouts = installTimeouts()
  readonly #client: ReturnType<ContractParts['client']>
  readonly #processor: Processor
  readonly #subjects: Subjects
  /** Whether nothing listens for the call that is made now. */
  #away = false

  static async open(dialect: TestDialect, contract: Contract): Promise<FaultWorld> {
    const parts = CONTRACT_PARTS[contract]
    const market = await openMarketplace(dialect, parts.settings)
    await writeUnsynced(market.bed.testDatabase.database)
    const wire = parts.wire(market)
    const announcer = new Announcer(market, wire)
    const moments = {
      now: () => market.clock.now(),
      onSilence: (reference: string) => world.#timeouts.end(reference),
      async onEventFirst(held: ProcessorDouble['held'][number]) {
        await announcer.announceEarly(held)
        await world.#drain()
      },
    }
    const world = new FaultWorld(market, await ProcessorDouble.open(moments, wire), announcer, parts)
    await world.#makeStrangers().catch(async (error: unknown) => {
      await world.close()
      throw error
    })
    return world
  }

  private constructor(
    market: Marketplace,
    double: ProcessorDouble,
    announcer: Announcer,
    parts: ContractParts,
  ) {
    this.market = market
    this.#double = double
    this.#announcer = announcer
    this.#parts = parts
    this.#client = parts.client(
      () => (this.#away ? NO_LISTENER : double.url),
      () => market.clock.now(),
    )
    this.#processor = askedThrough(this.#client, (what, reference, ask) => {
      // The address is read as soon as the call is made, before anything else can run.
      this.#away = what !== 'title' && double.isAway(what, reference)
      return this.#timeouts.during(reference, ask)
    })
    this.#subjects = new Subjects(market, this.#processor, () => this.#settle())
  }

  async close(): Promise<void> {
    this.#timeouts.close()
    await this.#client.close()
    await this.#double.close()
    await this.market.close()
  }

  /** An invoice and a payout of another account, whose ids a confused processor may answer. */
  async #makeStrangers(): Promise<void> {
    await this.#subjects.invoices(1)
    await this.#settle()
    await this.#subjects.payouts(1)
    await this.#settle()
    for (const held of this.#double.held) this.#double.othersIds[held.kind] = held.id
  }

  /** Lets stories of one kind happen side by side, in rounds that they share; answers what became of each. */
  async tell(stories: readonly Story[], rounds: readonly Round[]): Promise<StoryOutcome[]> {
    if (stories.length > MOST_STORIES) throw new Error('more stories than a worker takes up at once')
    const subjects = await this.#cast(stories)
    const complaints: string[] = []
    for (let round = 0; round < MOST_ROUNDS; round += 1) {
      const { wait, dies } = rounds[round] ?? { wait: 'due', dies: false }
      if (round > 0 && !(await this.#pass(wait))) break
      await (dies ? this.#dyingWorker() : makeDueCalls(this.market.platform, this.#processor))
      if (round === 0) await this.#changeEverything(subjects)
      if (round < SCHEDULED_ROUNDS) await this.#runSchedules()
      complaints.push(...(await complaintsInBetween(this.market, subjects, this.#announcer)))
    }
    await this.#announcer.announceAll(this.#double.held)
    await this.#applyEvents()
    const judged: StoryOutcome[] = []
    const heard = rounds.every(({ dies }) => !dies)
    for (const [index, subject] of subjects.entries()) {
      const story = stories[index] as Story
      judged.push(await judgeStory(this.market, this.#double, this.#announcer, subject, story, heard))
    }
    judged[0]?.complaints.push(...complaints, ...this.#double.complaints.splice(0))
    for (const { id } of subjects) this.#double.plan(id, { calls: [], lookups: [] })
    // A payout that failed is made once more.
    await this.#settle()
    await runPayouts(this.market.platform, this.#processor)
    await this.#settle()
    return judged
  }

  /** An event that contradicted another leaves a creator whose payouts wait for a person: the next payouts need others. */
  forgetCreators(): void {
    this.#subjects.forgetCreators()
  }

  /** Makes what the stories are about, each with the processor's behaviour towards it. To make one kind, what waits of the other is sent. */
  async #cast(stories: readonly Story[]): Promise<Subject[]> {
    const kinds = new Set(stories.map(({ kind }) => kind))
    if (kinds.size > 1) throw new Error('stories of two kinds')
    const count = stories.length
    const subjects = kinds.has('payout')
      ? await this.#subjects.payouts(count)
      : await this.#subjects.invoices(count)
    return subjects.map((subject, index) => {
      const story = stories[index] as Story
      this.#double.plan(subject.id, story)
      this.#announcer.expect(subject, story)
      return subject
    })
  }

  #waiting() {
    const columns = ['next_try_at', 'lease_until'] as const
    return columnsOf(this.market.platform, 'processor_attempts', columns, { state: 'waiting' })
  }

  /** Moves the clock to the next due attempt. Returns false if nothing waits. */
  async #pass(wait: Round['wait']): Promise<boolean> {
    const { clock } = this.market
    const waiting = await this.#waiting()
    if (waiting.length === 0) return false
    const due = Math.max(...waiting.map((row) => Math.max(row.next_try_at, row.lease_until)))
    clock.pass({ due: Math.max(0, due - clock.now()), minute: MINUTE, hour: HOUR, day: DAY }[wait])
    return true
  }

  /** A worker that hears every answer and records none: for the rest of the world it has died in between. */
  async #dyingWorker(): Promise<void> {
    const { platform, clock } = this.market
    const now = clock.now()
    const due = (await this.#waiting()).filter((row) => row.next_try_at <= now && row.lease_until <= now)
    if (due.length === 0) return
    let left = due.length
    const { promise: dead, resolve: die } = Promise.withResolvers<void>()
    const dying = askedThrough(this.#processor, async (what, _reference, ask) => {
      const answer = await ask()
      if (what === 'title') return answer
      left -= 1
      if (left === 0) die()
      return new Promise<never>(() => {})
    })
    await Promise.race([dead, makeDueCalls(platform, dying)])
  }

  /** What was frozen with the attempt must not follow a new name or a new account. */
  async #changeEverything(subjects: readonly Subject[]): Promise<void> {
    const { platform } = this.market
    for (const { kind, userId } of subjects) {
      await changeUser(platform, userId, { display_name: 'Renamed' })
      if (kind === 'payout') await giveDestination(platform, userId, OTHER_IBAN)
    }
  }

  /** The schedule goes on while outcomes are unknown, and must not take them for open business. */
  async #runSchedules(): Promise<void> {
    await closeDueCycles(this.market.platform)
    await runPayouts(this.market.platform, this.#processor)
  }

  async #drain(): Promise<void> {
    const { platform } = this.market
    const { eventRules } = this.#parts
    await drainUntilIdle({ platform, processor: this.#processor, eventRules })
  }

  /** Applies what the processor said, until nothing waits for another try. */
  async #applyEvents(): Promise<void> {
    const { platform, clock } = this.market
    for (;;) {
      await this.#drain()
      const due = await nextEventDueAt(platform, 'processor')
      if (due === null) return
      clock.pass(Math.max(1, due - clock.now()))
    }
  }

  /** From here on the processor behaves: all that waits is sent and settled. */
  async #settle(): Promise<void> {
    for (let round = 0; round < MOST_ROUNDS; round += 1) {
      await this.#applyEvents()
      await makeDueCalls(this.market.platform, this.#processor)
      const announced = await this.#announcer.announceAll(this.#double.held)
      if (announced === 0 && !(await this.#pass('due'))) return
    }
    throw new Error('what waits does not come to an end')
  }
}

type Around = <T>(what: 'call' | 'lookup' | 'title', reference: string, ask: () => Promise<T>) => Promise<T>

/** The same processor, whatever is asked of it `around` asks. */
function askedThrough(processor: Processor, around: Around): Processor {
  const { accountTitle } = processor
  return {
    payoutUnit: processor.payoutUnit,
    needsBillingAccount: processor.needsBillingAccount ?? false,
    createInvoice: (call) => around('call', call.reference, () => processor.createInvoice(call)),
    createPayout: (call) => around('call', call.reference, () => processor.createPayout(call)),
    findInvoices: (keys) => around('lookup', keys.reference, () => processor.findInvoices(keys)),
    findPayouts: (keys) => around('lookup', keys.reference, () => processor.findPayouts(keys)),
    ...(accountTitle && { accountTitle: (iban) => around('title', iban, () => accountTitle(iban)) }),
  }
}
