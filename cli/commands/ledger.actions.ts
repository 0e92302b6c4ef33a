import type { Command } from 'commander'
import { calendarPeriodAt } from '../../server/billing/billing-period.rule.ts'
import { type OperatorEffects, operatorEffects } from '../../server/inbox/operator-deliveries.service.ts'
import { lastSeal, type Seal, sealLedger } from '../../server/ledger/seals/seals.service.ts'
import { compareWithStorage, openSealStorage } from '../../server/ledger/seals/stored-seals.service.ts'
import type { Config } from '../../server/platform/config.ts'
import { findAppKeys } from '../../server/platform/crypto/app-keys.ts'
import type { AppKeys } from '../../server/platform/crypto/key-ring.ts'
import type { Queries } from '../../server/platform/database/database.ts'
import { openDatabase } from '../../server/platform/database/open-database.ts'
import { NIL_ID } from '../../server/platform/ids.ts'
import { accountBalances } from '../../server/reports/statement.service.ts'
import { describeKeys, type JournalKeying } from '../../server/verification/chain.ts'
import { Scope } from '../../server/verification/scope.ts'
import { compareWithKept } from '../../server/verification/seals.ts'
import {
  prepareVerifiedMark,
  readVerifiedMark,
  storeVerifiedMark,
  type VerifiedMark,
} from '../../server/verification/verified-mark.ts'
import { type Books, type InvariantResult, verifyBooks } from '../../server/verification/verify-books.ts'
import { CURRENCY } from '../../shared/money.ts'
import { readMoment } from '../arguments.ts'
import { assertMigrated, reads, readsDatabase, withDatabase, writes } from '../context.ts'
import { Failure, wrongUsage } from '../failures.ts'
import { nameOf, peopleOf, userIdOf } from '../lists.ts'
import { counted, displayMoney, formatMoney, many, type Output, sum, wireTime } from '../terminal/output.ts'
import { showStatement } from './statement-output.ts'

/** The owner of the accounts that are no user's. */
const PLATFORM = 'platform'
/** What `--against` says for SEAL_STORAGE instead of a digest. */
const STORAGE = 'storage'

type VerifyOptions = { full?: boolean; all?: boolean; replica?: boolean; against?: string }

/** Reads only, except that it stores what a successful run has covered, for the next one. */
export function verify(
  { full, all = false, against, replica = false }: VerifyOptions,
  command: Command,
): Promise<void> {
  return withDatabase(
    command,
    async ({ config, database, out }) => {
      await assertMigrated(database)
      if (against === STORAGE && config.SEAL_STORAGE === undefined) {
        throw new Failure('SEAL_STORAGE is not set. Set it to where the seals are stored, or name a digest.')
      }
      const books = { database, keys: readKeys(config) }
      const stored = full || against !== undefined ? null : await readVerifiedMark(books)
      const mark = typeof stored === 'string' ? null : stored
      const nextMark = await prepareVerifiedMark(books, Date.now())
      const results = await runChecks(books, out, mark)
      if (against !== undefined && against !== STORAGE) results.push(await checkAgainst(books, against))
      if (config.SEAL_STORAGE !== undefined) results.push(await checkStorage(config, database.reader))
      const broken = results.filter((result) => result.breaches.length > 0)
      const effects = await operatorEffects(database.reader)
      const state = {
        mark,
        problem: typeof stored === 'string' ? stored : null,
        isMarkStored:
          !replica && broken.length === 0 && nextMark !== null && (await storeMark(config, nextMark)),
        last: await lastSeal(database.reader),
        keying: await describeKeys(books),
      }
      out.show({ ...verdictOf(results, state), operator_events: effects }, () => [
        ...verifyLines(out, results, state, all),
        ...operatorLines(out, effects, all),
      ])
      if (broken.length === 0) return
      const names = broken.map(({ name }) => name).join(', ')
      const rows = broken.flatMap(({ breaches }) => breaches.map(({ subject }) => subject))
      throw new Failure(`The books do not hold: ${names}; rows: ${shortList(rows)}`)
    },
    { readOnly: true, replica },
  )
}

/** Returns `false` without permission to write, on a full disk or behind a long write: the next run then checks the same rows again. */
async function storeMark(config: Config, mark: string): Promise<boolean> {
  const database = await openDatabase(config.DATABASE_URL, { create: false })
  try {
    await storeVerifiedMark(database, mark)
    return true
  } catch {
    return false
  } finally {
    await database.close()
  }
}

/** Throws `Failure` when there is no key: without it the journal cannot be checked. */
export function readKeys(config: Config): AppKeys {
  const keys = findAppKeys(config)
  if (keys) return keys
  throw new Failure(
    'The journal can only be checked with the key that it was made with. Set APP_KEY, or DATA_DIR to the folder that holds app.key.',
    { code: 'unavailable' },
  )
}

/** Checks every invariant, for what is new since the mark, or for all rows. */
export function runChecks(
  books: Books,
  out: Output,
  mark: VerifiedMark | null = null,
): Promise<InvariantResult[]> {
  return verifyBooks(books, {
    scope: new Scope(mark?.covered ?? null),
    onProgress: (name, done, total) => out.progress(`check ${done + 1} of ${total}: ${name}`),
  })
}

async function checkAgainst({ database, keys }: Books, digest: string): Promise<InvariantResult> {
  const start = performance.now()
  const { rows, breaches } = await compareWithKept(database.reader, keys, digest)
  const statement = 'The journal still holds all that was sealed under the digest that was kept elsewhere.'
  return { name: 'as-sealed', statement, rows, breaches, ms: performance.now() - start }
}

/** A storage that cannot be read is a breach, since nothing was compared with it. */
async function checkStorage(config: Config, db: Queries): Promise<InvariantResult> {
  const start = performance.now()
  const storage = await openSealStorage(config)
  if (!storage) throw new Error('no seal storage')
  const { rows, breaches } = await compareWithStorage(db, storage)
    .catch((error: unknown) => {
      const detail = `it cannot be read: ${error instanceof Error ? error.message || error.name : error}`
      return { rows: 0, breaches: [{ subject: 'seal storage', detail }] }
    })
    .finally(() => storage.close())
  const statement = 'The seals that were stored outside the database are still in it, unchanged.'
  return { name: 'as-stored', statement, rows, breaches, ms: performance.now() - start }
}

interface JournalState {
  /** What an earlier verification has covered; `null`: every row was checked. */
  mark: VerifiedMark | null
  /** Why the stored mark cannot be used. */
  problem: string | null
  isMarkStored: boolean
  last: Seal | null
  keying: JournalKeying
}

function verdictOf(results: readonly InvariantResult[], state: JournalState) {
  const { mark, problem, isMarkStored, last, keying } = state
  return {
    ok: results.every((result) => result.breaches.length === 0),
    full: mark === null,
    since: mark && {
      seal: mark.covered.seal.position,
      digest: mark.covered.seal.digest,
      sealed_at: wireTime(mark.sealedAt),
      verified_at: wireTime(mark.verifiedAt),
    },
    mark_problem: problem,
    mark_stored: isMarkStored,
    items: results.map((result) => ({ ...result, ms: Math.round(result.ms) })),
    last_seal: last && wireSeal(last),
    journal_keys: keying.keys.map(({ keyId, entries, since, retiredBy, use }) => {
      return { id: keyId, use, entries, since: since && wireTime(since), retired_by_seal: retiredBy }
    }),
  }
}

/** What `ledger verify --json` prints. */
export type Verdict = ReturnType<typeof verdictOf>

function wireSeal({ position, sealedAt, digest }: Seal) {
  return { position, sealed_at: wireTime(sealedAt), digest }
}

/** What is broken and one line of sum; with `all` each invariant, the last seal and the keys too. */
function verifyLines(
  out: Output,
  results: readonly InvariantResult[],
  state: JournalState,
  all: boolean,
): string[] {
  const total = sum(results.map(({ rows }) => rows))
  const broken = results.filter((result) => result.breaches.length > 0)
  const table = out.table(results, [
    { title: 'Invariant', cell: (result) => result.name },
    { title: 'Rows', right: true, cell: (result) => result.rows },
    { title: 'Breaches', right: true, cell: (result) => result.breaches.length },
    { title: 'What must hold', flexible: true, cell: (result) => result.statement },
    { title: 'ms', right: true, cell: (result) => Math.round(result.ms) },
  ])
  const verdict =
    broken.length === 0
      ? out.style('green', `All ${results.length} invariants hold`)
      : out.style('red', `${broken.length} of ${results.length} invariants are broken`)
  return [
    ...(all ? [...table, ''] : []),
    ...broken.flatMap((result) => [
      out.style('red', `${result.name} is broken: ${result.statement}`),
      ...result.breaches.map(({ subject, detail }) => `  ${subject}: ${detail}`),
      '',
    ]),
    `${verdict} (${many(total, 'row')} checked${state.mark === null ? '' : `, new since seal ${state.mark.covered.seal.position}`}).`,
    ...(state.problem === null
      ? []
      : [out.style('yellow', `The mark of the last verification cannot be used: ${state.problem}.`)]),
    ...(all ? journalLines(out, state) : []),
  ]
}

function journalLines(out: Output, { mark, last, keying }: JournalState): string[] {
  return [
    mark === null
      ? 'Every row was checked.'
      : `What was verified at ${out.time(mark.verifiedAt)}, up to seal ${mark.covered.seal.digest} of ${out.time(mark.sealedAt)}, was left out; --full checks it too.`,
    last
      ? `Last seal: ${last.digest} (number ${last.position}, of ${out.time(last.sealedAt)})`
      : 'The journal was never sealed.',
    ...keyLines(out, keying),
  ]
}

/** What rests on events that an operator sent: a note, not a breach. */
function operatorLines(
  out: Output,
  { sales, billing_cycles, payouts }: OperatorEffects,
  all: boolean,
): string[] {
  const effects = { sale: sales, 'charged billing cycle': billing_cycles, 'settled payout': payouts }
  const named = Object.entries(effects).filter(([, ids]) => ids.length > 0)
  if (named.length === 0) return []
  const counts = named.map(([what, ids]) => counted(ids.length, what)).join(', ')
  return [
    `From events that an operator sent with "webhooks replay": ${counts}${all ? '' : ' (--all names them)'}.`,
    ...(all
      ? named.map(([what, ids]) => `  ${counted(ids.length, what)}: ${out.shortIds(shortList(ids))}`)
      : []),
  ]
}

/** The keys that the journal was made with. */
function keyLines(out: Output, { keys }: JournalKeying): string[] {
  return keys.map(({ keyId, use, entries, since, retiredBy }) => {
    const made = `${entries} ${entries === 1 ? 'entry' : 'entries'}`
    const when = since === null ? '' : ` since ${out.time(since)}`
    const end = retiredBy === null ? '' : `, none after seal ${retiredBy}`
    return `Key ${keyId}, ${KEY_USES[use]}: ${made}${when}${end}`
  })
}

const KEY_USES: Record<JournalKeying['keys'][number]['use'], string> = {
  current: 'APP_KEY',
  former: 'of APP_KEYS_FORMER',
  unknown: 'unknown key',
}

export const seal = writes(async ({ platform, out }) => {
  const { seal: made, moved } = await sealLedger(platform)
  out.show({ created: moved > 0, ledgers: moved, seal: made && wireSeal(made) }, () => {
    if (made === null) return ['There is nothing to seal: the journal is empty.']
    const when = `number ${made.position}, of ${out.time(made.sealedAt)}`
    return [
      made.digest,
      moved > 0
        ? `Sealed: ${when}; ${counted(moved, 'ledger')} moved since the one before.`
        : `Nothing was written since the last seal: ${when}.`,
      'Keep the digest where no one who can write to this database can change it. Later, this shows whether the books of today are unchanged:',
      '  affiliate ledger verify --against DIGEST',
    ]
  })
})

const MOST_NAMED = 5

function shortList(rows: readonly string[]): string {
  const distinct = [...new Set(rows)]
  const more = distinct.length - MOST_NAMED
  return distinct.slice(0, MOST_NAMED).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

export const balances = reads(async ({ platform, out }, user: string | undefined) => {
  const isPlatform = user === PLATFORM
  const ownerId = isPlatform ? null : await userIdOf(platform, user)
  const all = await accountBalances(platform.database.reader, ownerId)
  const person = await peopleOf(platform, all, (row) => row.owner_id)
  const rows = all.filter((row) => !isPlatform || row.owner_id === NIL_ID)
  const items = rows.map(({ account, owner_id: id, balance, postings }) => {
    return { account, owner: id === NIL_ID ? null : person(id), balance: formatMoney(balance), postings }
  })
  const total = sum(rows.map(({ balance }) => balance))
  out.show({ items, total: formatMoney(total), currency: CURRENCY }, () => {
    const lines = rows.map(({ account, owner_id: id, balance, postings }) => {
      const owner = id === NIL_ID ? PLATFORM : nameOf(person(id))
      const text = { account: String(account), owner, postings: String(postings) }
      return { ...text, debit: side(balance), credit: side(-balance) }
    })
    const debit = displayMoney(sum(rows.map(({ balance }) => Math.max(balance, 0))))
    const credit = displayMoney(sum(rows.map(({ balance }) => Math.max(-balance, 0))))
    if (user === undefined) lines.push({ account: 'Total', owner: '', debit, credit, postings: '' })
    return out.table(lines, [
      { title: 'Account', cell: (line) => line.account },
      { title: 'Owner', flexible: true, cell: (line) => line.owner },
      { title: 'Debit', right: true, cell: (line) => line.debit },
      { title: 'Credit', right: true, cell: (line) => line.credit },
      { title: 'Postings', right: true, cell: (line) => line.postings },
    ])
  })
})

function side(amount: number): string {
  return amount > 0 ? displayMoney(amount) : ''
}

type StatementOptions = { from?: string; to?: string }

/** Works from the database alone, and opens it for reading only. */
export const statement = readsDatabase(
  async ({ config, database, out }, user: string, options: StatementOptions) => {
    const period = periodOf(options, config)
    await assertMigrated(database)
    await showStatement(out, database, user, period)
  },
)

/** The calendar month that the given end lies in, or that is now. */
function periodOf(options: StatementOptions, config: Config): { from: number; to: number } {
  const [from, to] = [readMoment(options.from, config), readMoment(options.to, config)]
  const now = Date.now()
  const month = calendarPeriodAt(to === null ? now : to - 1, 'monthly', config.BILLING_TIMEZONE)
  const period = { from: from ?? month.start, to: to ?? Math.max(month.end, (from ?? 0) + 1) }
  if (period.from < period.to) return period
  throw wrongUsage('--from must lie before --to.')
}
