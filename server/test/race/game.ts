import type { LinkRecord } from '../../links/links.service.ts'
import type { Processor } from '../../processor/processor.ts'
import type { ProcessorDouble } from '../faults/processor-double.ts'
import { closeOpenCycle, type Marketplace, openCycleOf, type Shop } from '../testkit/marketplace.ts'
import { columnsOf, rowsOf } from '../testkit/rows.ts'
import type { Report } from './racer.ts'
import type { Task } from './tasks.ts'

/** What the contests of one database share. */
export interface Arena {
  market: Marketplace
  /** The processor that the racers call, over HTTP. */
  double: ProcessorDouble
  /** This process's own client of it. */
  processor: Processor
}

export type Outcome = Report['outcome']

/** One contest: what both sides do, and what must have come of it. */
export interface Match {
  tasks: [Task, Task]
  /** By how much the second side's clock is ahead: past the lease that the first one holds. */
  ahead?: number
  /** Answers what is wrong. */
  check(outcomes: [Outcome, Outcome]): Promise<string[]>
}

export interface Game {
  name: string
  /** Makes what its contests share; what it answers makes the match of each round. */
  open(arena: Arena): Promise<(round: number) => Promise<Match>>
}

/** Commission of 1,000 rupees, which is what a payout needs. */
export const SALE = 800_000
export const COMMISSION = 100_000
/** With the platform's fee of a tenth. */
export const BILLED = 110_000

/** The other worker's clock is past the lease of an attempt, or of an event. */
export const PAST_ATTEMPT_LEASE = 26_000
export const PAST_EVENT_LEASE = 16_000

export function differs(what: string, found: unknown, wanted: unknown): string[] {
  const [is, should] = [JSON.stringify(found), JSON.stringify(wanted)]
  return is === should ? [] : [`${what}: ${is}, not ${should}`]
}

export const twice = (task: Task): [Task, Task] => [task, task]

/** The outcomes as text, in an order that does not depend on who won. */
export function outcomeTexts(outcomes: readonly Outcome[]): string[] {
  return outcomes
    .map((outcome) => ('ok' in outcome ? `ok ${JSON.stringify(outcome.ok)}` : JSON.stringify(outcome)))
    .sort()
}

/** How many sides were refused with this code. */
export function refusedAs(outcomes: readonly Outcome[], code: string): number {
  return outcomes.filter((outcome) => 'refused' in outcome && outcome.refused === code).length
}

/** A shop and a creator's link to its offer. */
export async function shopWithLink({ market }: Arena): Promise<{ shop: Shop; link: LinkRecord }> {
  const shop = await market.addShop()
  return { shop, link: await market.addLink(shop, await market.addCreator()) }
}

/** Sells once, and answers the shop's open cycle. */
export async function sell({ market }: Arena, shop: Shop, link: LinkRecord) {
  await market.order(shop, link, SALE)
  await market.drainUntilIdle()
  return openCycleOf(market.platform, shop)
}

/** A closed cycle whose invoice has not been requested yet. */
export async function closedCycle(arena: Arena, shop: Shop, link: LinkRecord): Promise<string> {
  await sell(arena, shop, link)
  return closeOpenCycle(arena.market.platform, shop)
}

export async function payoutsOf({ market }: Arena, creatorId: string) {
  return rowsOf(market.platform, 'payouts', { creator_id: creatorId })
}

/** States of the events that came under these delivery ids, sorted. */
export async function eventStates({ market }: Arena, deliveryIds: readonly string[]): Promise<string[]> {
  const rows = await market.platform.database.reader
    .selectFrom('inbound_events')
    .select('state')
    .where('delivery_id', 'in', deliveryIds)
    .execute()
  return rows.map(({ state }) => state).sort()
}

/** Kinds of the open flags about one subject. */
export async function flagsAbout({ market }: Arena, subjectId: string): Promise<string[]> {
  const rows = await columnsOf(market.platform, 'flags', ['kind'], { subject_id: subjectId, status: 'open' })
  return rows.map(({ kind }) => kind)
}
