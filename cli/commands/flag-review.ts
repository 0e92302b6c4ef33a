import { decideFlag } from '../../server/billing/credit-requests.service.ts'
import { OPERATOR } from '../../server/flags/audit.service.ts'
import { type FlagRow, findFlag, listFlags } from '../../server/flags/flags.service.ts'
import { retryEvent } from '../../server/inbox/events.service.ts'
import { retryUnmapped } from '../../server/inbox/set-aside.service.ts'
import { offerRecords, vetOffer } from '../../server/offers/offers.service.ts'
import { Refusal } from '../../server/platform/api/refusal.ts'
import type { Platform } from '../../server/platform/platform.ts'
import { previewSuspension } from '../../server/reports/operator-status.service.ts'
import { findUser, suspendUser } from '../../server/users/users.service.ts'
import type { AppContext } from '../context.ts'
import { nameOf, peopleOf } from '../lists.ts'
import { counted, type Output } from '../terminal/output.ts'
import { printLines } from '../terminal/printable-text.ts'
import { Terminal } from '../terminal/prompts.ts'
import { wrapLine } from '../terminal/table.ts'
import { eventOf, openSubject, type Subject } from './flag-subject.ts'
import { suspensionLines } from './suspension-report.ts'

interface Review {
  platform: Platform
  out: Output
  terminal: Terminal
}

/** `again`: the same flag is asked about once more. */
type Step = 'again' | 'next' | 'quit'

export interface WalkFilter {
  kind?: string
  severity?: FlagRow['severity']
}

/** Goes through the open flags, the urgent ones first, until they are through or the operator has enough. */
export async function walkFlags({ platform, out }: AppContext, filter: WalkFilter): Promise<void> {
  const flags = await openFlagsInOrder(platform, filter)
  const terminal = new Terminal()
  const done = { seen: 0, resolved: 0 }
  try {
    for (const [at, flag] of flags.entries()) {
      say('', out.style('dim', `${at + 1} of ${flags.length}`), ...flagLines(out, flag), '')
      const step = await decide({ platform, out, terminal }, flag)
      done.seen += 1
      const now = await findFlag(platform.database.reader, flag.id)
      if (now?.status === 'resolved') done.resolved += 1
      if (step === 'quit') break
    }
  } finally {
    terminal.close()
  }
  const result = `${done.seen} of ${flags.length} reviewed, ${done.resolved} resolved. The others stay in the queue.`
  say('', flags.length === 0 ? 'Nothing waits for a person.' : result)
}

const COLOUR = { high: 'red', medium: 'yellow', low: 'dim' } as const

/** One flag with its evidence, for the person who decides on it. */
function flagLines(out: Output, flag: FlagRow): string[] {
  const evidence = JSON.parse(flag.evidence) as Record<string, unknown>
  const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))
  return [
    `${out.style(COLOUR[flag.severity], flag.severity)}  ${out.heading(flag.kind)}  since ${out.time(flag.created_at)}`,
    flag.summary,
    ...out
      .pairs([
        ['about', `${flag.subject_type} ${flag.subject_id}`],
        ...Object.entries(evidence).map(([name, value]) => [name, text(value)] as const),
      ])
      .map((line) => `  ${line}`),
  ]
}

function say(...lines: string[]): void {
  printLines(lines.flatMap((line) => wrapLine(line, process.stdout.columns || 80)))
}

const URGENCY = { high: 0, medium: 1, low: 2 }
const MOST_FLAGS = 5000

async function openFlagsInOrder(platform: Platform, filter: WalkFilter): Promise<FlagRow[]> {
  const flags: FlagRow[] = []
  for (let cursor: string | undefined; flags.length < MOST_FLAGS; ) {
    const page = await listFlags(platform, { ...filter, status: 'open', limit: 500, cursor })
    flags.push(...page.items)
    if (page.next_cursor === null) break
    cursor = page.next_cursor
  }
  return flags.sort(
    (one, other) => URGENCY[one.severity] - URGENCY[other.severity] || (one.id < other.id ? -1 : 1),
  )
}

async function decide(review: Review, flag: FlagRow): Promise<Step> {
  for (;;) {
    const subject = await openSubject(review.platform, review.out, flag)
    const choices = choicesFor(flag, subject)
    const answer = await review.terminal.ask(`${choices.map(([label]) => label).join('  ')} > `)
    if (answer === null) return 'quit'
    const [, act] = choices.find(([label]) => label.includes(`[${answer.toLowerCase()}]`)) ?? []
    if (!act) {
      say(answer === '' ? 'Type the letter of what to do: s skips.' : `Unknown choice "${answer}".`)
      continue
    }
    // A refusal is printed, and the review goes on.
    const step = await act(review, flag, subject).catch((error: unknown): Step => {
      if (!(error instanceof Refusal)) throw error
      say(`Refused: ${error.detail}`)
      return 'again'
    })
    if (step !== 'again') return step
  }
}

/** The key that is typed for it stands in brackets. */
type Choice = [label: string, act: (review: Review, flag: FlagRow, subject: Subject) => Promise<Step>]

function choicesFor(flag: FlagRow, subject: Subject): Choice[] {
  const choices: (Choice | false)[] = [
    ['[o]pen', show],
    ['[r]esolve', resolve],
    subject.people.length > 0 && ['s[u]spend', suspend],
    flag.subject_type === 'offer' && ['[v]et', vet],
    eventOf(flag) !== null && ['[t]ry again', tryAgain],
    ['[s]kip', async () => 'next'],
    ['[q]uit', async () => 'quit'],
  ]
  return choices.filter((choice) => choice !== false)
}

async function show({ platform, out }: Review, _flag: FlagRow, subject: Subject): Promise<Step> {
  const person = await peopleOf(platform, subject.people, ({ id }) => id)
  const people = subject.people.map(({ as, id }) => [as, `${nameOf(person(id))} (${id})`] as const)
  const lines = out.pairs([...subject.pairs, ...people])
  say(...(lines.length > 0 ? lines : ['It does not exist.']), '')
  return 'again'
}

async function resolve({ platform, terminal }: Review, flag: FlagRow): Promise<Step> {
  const note = await terminal.ask('What was found and done? ')
  if (note === null) return 'quit'
  if (note === '' || note.length > 2000) {
    say('A note of 1 to 2000 characters is needed; nothing was changed.')
    return 'again'
  }
  await decideFlag(platform, { flagId: flag.id, note, actor: OPERATOR })
  say('Resolved.')
  return 'next'
}

async function suspend(review: Review, flag: FlagRow, subject: Subject): Promise<Step> {
  const { platform, terminal } = review
  const userId = await chosenPerson(review, subject)
  if (userId === null) return 'again'
  const user = await findUser(platform, userId)
  if (user.suspended_at !== null) {
    say(`${user.email} is suspended already.`)
    return 'again'
  }
  say(...suspensionLines(await previewSuspension(platform, user)))
  if (!(await terminal.agrees(`Suspend ${user.role} ${user.email}?`))) {
    say('Nothing was changed.')
    return 'again'
  }
  await suspendUser(platform, { userId, actor: OPERATOR, reason: `${flag.kind}: ${flag.summary}` })
  say(`${user.email} is suspended now. The flag stays open until it is resolved.`)
  return 'again'
}

async function chosenPerson({ platform, terminal }: Review, { people }: Subject): Promise<string | null> {
  const [only] = people
  if (people.length === 1) return only?.id ?? null
  const person = await peopleOf(platform, people, ({ id }) => id)
  say(...people.map(({ as, id }, at) => `  ${at + 1}  ${as}  ${nameOf(person(id))}`))
  const answer = await terminal.ask('Which one (number)? ')
  return people[Number(answer) - 1]?.id ?? null
}

async function vet({ platform, terminal }: Review, flag: FlagRow): Promise<Step> {
  const id = flag.subject_id
  const offer = (await offerRecords(platform, platform.database.reader, [id])).get(id)
  if (!offer) return 'again'
  const terms = `${offer.title} at ${offer.commission_rate / 100} %`
  const answer = await terminal.ask(`${terms}: [a]pprove or [x] reject? `)
  const decision = ({ a: 'approve', x: 'reject' } as const)[answer?.toLowerCase() ?? '']
  if (decision === undefined) {
    say('Nothing was changed.')
    return 'again'
  }
  const commissionRate = offer.commission_rate
  const request = { offerId: id, actor: OPERATOR, decision, reason: null, commissionRate }
  const vetted = await vetOffer(platform, request)
  say(`The offer is ${vetted.vetting} at ${vetted.commission_rate / 100} %.`)
  // The decision settles a flag about the vetting; one of another kind is still there.
  return flag.kind === 'offer_vetting' ? 'next' : 'again'
}

async function tryAgain({ platform }: Review, flag: FlagRow): Promise<Step> {
  const reason = `flag ${flag.id}`
  let what = `event ${eventOf(flag)}`
  if (flag.subject_type === 'processor_event_type') {
    what = `${counted(await retryUnmapped(platform, flag.subject_id, reason), 'event')} of this type`
  } else await retryEvent(platform, eventOf(flag) ?? '', reason)
  say(`The running service tries ${what} again.`)
  return 'next'
}
