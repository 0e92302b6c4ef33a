import { formatMoney } from '../../../shared/money.ts'
import { type Marketplace, openFlagsOf } from '../testkit/marketplace.ts'
import type { Announcer } from './announcer.ts'
import { CALL_FAULTS } from './call-faults.ts'
import type { HeldCall, ProcessorDouble, Seen } from './processor-double.ts'
import type { Story } from './story.ts'
import { attemptsFor, type Standing, type Subject, standingsOf } from './subjects.ts'

/**
 * How a story ended. `settled`: we and the processor hold the same. `refused`: known not to have happened, and a person
 * knows. `flagged`: we do not hold the same, and a person knows. `silent` must never be.
 */
export type Ending = 'settled' | 'refused' | 'flagged' | 'silent'

export interface StoryOutcome {
  ending: Ending
  /** What must not be. */
  complaints: string[]
  /** Kinds of the open flags about it. */
  flags: string[]
}

const BEFORE_ANY_EVENT: readonly string[] = ['closed', 'pending', 'submitted']

/** While the outcome is open: one attempt, and no state that only an event may bring. */
export async function complaintsInBetween(
  market: Marketplace,
  subjects: readonly Subject[],
  announcer: Announcer,
): Promise<string[]> {
  const attempts = await attemptsFor(market, subjects)
  const standings = await standingsOf(market, subjects)
  return subjects.flatMap(({ kind, id }) => {
    const tries = attempts.get(id)?.length ?? 0
    const state = standings.get(id)?.state ?? 'gone'
    const early = announcer.deliveriesAbout(id).length === 0 && !BEFORE_ANY_EVENT.includes(state)
    return [
      ...(tries === 1 ? [] : [`${kind} ${id} has ${tries} attempts`]),
      ...(early ? [`${kind} ${id} is ${state} without a word of the processor`] : []),
    ]
  })
}

export async function judgeStory(
  market: Marketplace,
  double: ProcessorDouble,
  announcer: Announcer,
  subject: Subject,
  story: Story,
  /** Whether every answer reached a worker that lived on. */
  heard: boolean,
): Promise<StoryOutcome> {
  const held = double.held.filter(({ reference }) => reference === subject.id)
  const seen = double.seen(subject.id)
  const standing = (await standingsOf(market, [subject])).get(subject.id)
  const attempts = (await attemptsFor(market, [subject])).get(subject.id) ?? []
  if (!standing) throw new Error(`${subject.kind} ${subject.id} is gone`)
  const [attempt] = attempts
  const flags = await flagsAbout(market, subject, announcer.deliveriesAbout(subject.id))
  const complaints = [
    ...(held.length > 1 ? [`the processor did it ${held.length} times`] : []),
    ...(attempts.length === 1 ? [] : [`${attempts.length} attempts`]),
    ...keyComplaints(seen, attempt?.id ?? ''),
    ...orderComplaints(seen),
    ...(heard ? haste(seen) : []),
    ...amountComplaints(seen, standing.amount),
  ]
  const refused = attempt?.state === 'refused'
  if (refused && held.length > 0) complaints.push('taken as refused, and the processor did it')
  if (refused && !flags.includes('processor_refusal')) complaints.push('refused, without a flag')
  const agrees = agree(subject, standing, held[0], story)
  const ending = refused ? 'refused' : agrees ? 'settled' : flags.length > 0 ? 'flagged' : 'silent'
  if (ending === 'silent') complaints.push(silence(standing, held[0]))
  return { ending, complaints, flags }
}

/** A repeated call is the same call: one key, which is the attempt's, and one body. */
function keyComplaints(seen: readonly Seen[], attemptId: string): string[] {
  const calls = seen.filter((exchange) => exchange.what === 'call')
  const complaints: string[] = []
  if (calls.some(({ key }) => key !== attemptId)) {
    complaints.push(`called under ${new Set(calls.map(({ key }) => key)).size} keys, not the attempt's alone`)
  }
  if (new Set(calls.map(({ body }) => body)).size > 1) complaints.push('called with several bodies')
  return complaints
}

/** Nothing is called again but after a look-up that knew nothing of it. */
function orderComplaints(seen: readonly Seen[]): string[] {
  return seen.flatMap((exchange, index) => {
    const before = seen[index - 1]
    const again = exchange.what === 'call' && seen.slice(0, index).some(({ what }) => what === 'call')
    if (!again || (before?.what === 'lookup' && before.said === 0)) return []
    return ['called again without having asked what became of the call before']
  })
}

/** A call is repeated no earlier than Retry-After. */
function haste(seen: readonly Seen[]): string[] {
  return seen.flatMap((exchange, index) => {
    const pause = exchange.what === 'call' ? CALL_FAULTS[exchange.fault].waitMs : undefined
    const next = seen[index + 1]
    if (pause === undefined || !next || next.at - exchange.at >= pause) return []
    return [`asked again after ${next.at - exchange.at} ms, Retry-After was ${pause} ms`]
  })
}

function amountComplaints(seen: readonly Seen[], amount: number): string[] {
  const asked = seen.flatMap((exchange) =>
    exchange.what === 'call' ? [String(JSON.parse(exchange.body).amount)] : [],
  )
  return asked.every((text) => text === formatMoney(amount)) ? [] : [`asked for ${asked.join(', ')}`]
}

function agree(subject: Subject, standing: Standing, held: HeldCall | undefined, story: Story): boolean {
  if (!held || held.id !== standing.processorId) return false
  return standing.state === (subject.kind === 'invoice' ? 'charged' : story.word)
}

function silence(standing: Standing, held: HeldCall | undefined): string {
  const there = held ? `holds ${held.id}, ${held.status}` : 'holds nothing'
  return `the processor ${there}; here it is ${standing.state} as ${standing.processorId}; without a flag`
}

/** Kinds of the open flags about the subject itself, or about one of the events that concern it. */
async function flagsAbout(
  { platform }: Marketplace,
  subject: Subject,
  deliveries: readonly string[],
): Promise<string[]> {
  const events = await platform.database.reader
    .selectFrom('inbound_events')
    .select('id')
    .where('delivery_id', 'in', [...deliveries, 'none'])
    .execute()
  const about = new Set([subject.id, ...events.map(({ id }) => id)])
  const open = await openFlagsOf(platform)
  return open.flatMap((flag) => {
    const [kind = '', id = ''] = flag.split(' ')
    return about.has(id) ? [kind] : []
  })
}
