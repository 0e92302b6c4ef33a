import { type Command, InvalidArgumentError } from 'commander'
import type { OperatorEffects } from '../../../server/inbox/operator-deliveries.service.ts'
import type { Seal } from '../../../server/ledger/seals/seals.service.ts'
import type { Config } from '../../../server/platform/config.ts'
import type { AppKeys } from '../../../server/platform/crypto/key-ring.ts'
import type { Queries } from '../../../server/platform/database/database.ts'
import type { OwnedBalance } from '../../../server/users/accounts.service.ts'
import type { JournalKeying } from '../../../server/verification/journal-keys.ts'
import type { VerifiedMark } from '../../../server/verification/verified-mark.ts'
import type { Books, InvariantResult } from '../../../server/verification/verify-books.ts'
import { CURRENCY } from '../../../shared/money.ts'
import { addGroup, exampleText } from '../../command.ts'
import { assertMigrated, READS, withApp, withDatabase } from '../../context.ts'
import { Failure, wrongUsage } from '../../failures.ts'
import { displayMoney, formatMoney, type Output, wireTime } from '../../terminal/output.ts'
import { addStatementCommand } from './statement.ts'

export function addLedgerCommands(program: Command): void {
  const group = addGroup(program, 'ledger', 'the journal: check the books, seal them, show balances')
  group
    .command('verify')
    .description(
      'check every invariant of the books, for what is new since the last verified seal; exit 1 when a row breaks one',
    )
    .option('--full', 'check all rows, also those that an earlier run has verified')
    .option('--replica', 'with --full: check the replica of DATABASE_READ_URL, and store nothing')
    .option(
      '--against <digest>',
      'check all rows, and compare with the digest of a seal that was kept elsewhere, or with "storage", the seals in SEAL_STORAGE (which every run does where that is set)',
      digestOf,
    )
    .addHelpText(
      'after',
      exampleText('ledger verify', 'ledger verify --full', `ledger verify --against ${'0123abcd'.repeat(8)}`),
    )
    .action((options: VerifyOptions, command: Command) => verify(options, command))
  group
    .command('seal')
    .description('seal the journal now, and print the digest to keep elsewhere: on paper, in a mail')
    .addHelpText('after', exampleText('ledger seal', 'ledger seal --json'))
    .action((_options: object, command: Command) => seal(command))
  group
    .command('balances')
    .description('the balance of every account, or of one owner')
    .argument('[owner]', `id or e-mail of a user, or "${PLATFORM}"`)
    .addHelpText('after', exampleText('ledger balances', 'ledger balances creator@example.com --json'))
    .action((user: string | undefined, _options: object, command: Command) => balances(user, command))
  addStatementCommand(group)
}

interface VerifyOptions {
  full?: boolean
  replica?: boolean
  against?: string
}

/** The owner of the accounts that are no user's. */
const PLATFORM = 'platform'

/** What `--against` says for SEAL_STORAGE instead of a digest. */
const STORAGE = 'storage'

function digestOf(text: string): string {
  const digest = text.trim().toLowerCase()
  if (digest === STORAGE) return digest
  if (/^[0-9a-f]{8}\.[0-9a-f]{64}$/.test(digest)) return digest
  throw new InvalidArgumentError(
    'It must be a digest as "affiliate ledger seal" printed it: 8 characters, a dot and 64 more.',
  )
}

/** Reads only, except that it stores what a successful run has covered, for the next one. */
function verify(options: VerifyOptions, command: Command): Promise<void> {
  const { against, replica = false } = options
  if (replica && !options.full)
    throw wrongUsage('Pass --full with --replica: what is new is checked on the primary.')
  return withDatabase(
    command,
    async ({ config, database, out }) => {
      await assertMigrated(database)
      const { lastSeal } = await import('../../../server/ledger/seals/seals.service.ts')
      if (against === STORAGE && config.SEAL_STORAGE === undefined) {
        throw new Failure('SEAL_STORAGE is not set. Set it to where the seals are stored, or name a digest.')
      }
      const books = { database, keys: await readKeys(config) }
      const { prepareVerifiedMark } = await import('../../../server/verification/verified-mark.ts')
      const basis = await basisOf(books, options)
      const nextMark = await prepareVerifiedMark(books, Date.now())
      const results = await runChecks(books, out, basis.mark)
      if (against !== undefined && against !== STORAGE) results.push(await checkAgainst(books, against))
      if (against === STORAGE || config.SEAL_STORAGE !== undefined) {
        results.push(await checkStorage(config, database.reader))
      }
      out.endProgress()
      const broken = results.filter((result) => result.breaches.length > 0)
      const { describeKeys } = await import('../../../server/verification/journal-keys.ts')
      const { operatorEffects } = await import('../../../server/inbox/operator-deliveries.service.ts')
      const operatorSent = await operatorEffects(database.reader)
      const state = {
        basis,
        isMarkStored:
          !replica && broken.length === 0 && nextMark !== null && (await storeMark(config, nextMark)),
        last: await lastSeal(database.reader),
        keying: await describeKeys(books),
      }
      out.show({ ...verdictOf(results, state), operator_events: operatorSent }, () => [
        ...verifyLines(out, results, state),
        ...operatorLines(operatorSent),
      ])
      if (broken.length === 0) return
      const rows = broken.flatMap((result) => result.breaches.map((breach) => breach.subject))
      throw new Failure(
        `The books do not hold: ${broken.map((result) => result.name).join(', ')}; rows: ${shortList(rows)}`,
      )
    },
    { ...READS, replica },
  )
}

/** What a run rests on: an earlier verification, or none, in which case it checks everything. */
interface Basis {
  mark: VerifiedMark | null
  /** Why the stored mark cannot be used. */
  problem: string | null
}

async function basisOf(books: Books, { full, against }: VerifyOptions): Promise<Basis> {
  if (full || against !== undefined) return { mark: null, problem: null }
  const { readVerifiedMark } = await import('../../../server/verification/verified-mark.ts')
  const mark = await readVerifiedMark(books)
  return typeof mark === 'string' ? { mark: null, problem: mark } : { mark, problem: null }
}

/** Returns `false` without permission to write, on a full disk or behind a long write: the next run then checks the same rows again. */
async function storeMark(config: Config, mark: string): Promise<boolean> {
  const { openDatabase } = await import('../../../server/platform/database/open-database.ts')
  const { storeVerifiedMark } = await import('../../../server/verification/verified-mark.ts')
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
export async function readKeys(config: Config): Promise<AppKeys> {
  const { findAppKeys } = await import('../../../server/platform/crypto/app-keys.ts')
  const keys = findAppKeys(config)
  if (keys) return keys
  throw new Failure(
    'The journal can only be checked with the key that it was made with. Set APP_KEY, or DATA_DIR to the folder that holds app.key.',
    { code: 'unavailable' },
  )
}

/** Checks every invariant, for what is new since the mark, or for all rows. */
export async function runChecks(
  books: Books,
  out: Output,
  mark: VerifiedMark | null = null,
): Promise<InvariantResult[]> {
  const { verifyBooks } = await import('../../../server/verification/verify-books.ts')
  const { Scope } = await import('../../../server/verification/scope.ts')
  return verifyBooks(books, {
    scope: new Scope(mark?.covered ?? null),
    onProgress: (name, done, total) => out.progress(`check ${done + 1} of ${total}: ${name}`),
  })
}

async function checkAgainst({ database, keys }: Books, digest: string): Promise<InvariantResult> {
  const { compareWithKept } = await import('../../../server/verification/seals.ts')
  const start = performance.now()
  const { rows, breaches } = await compareWithKept(database.reader, keys, digest)
  return {
    name: 'as-sealed',
    statement: 'The journal still holds all that was sealed under the digest that was kept elsewhere.',
    rows,
    breaches,
    ms: performance.now() - start,
  }
}

/** A storage that cannot be read is a breach, since nothing was compared with it. */
async function checkStorage(config: Config, db: Queries): Promise<InvariantResult> {
  const { openSealStorage } = await import('../../../server/ledger/seals/stored-seals.service.ts')
  const { compareWithStorage } = await import('../../../server/ledger/seals/stored-seals.service.ts')
  const start = performance.now()
  const storage = await openSealStorage(config)
  if (!storage) throw new Error('no seal storage')
  const { rows, breaches } = await compareWithStorage(db, storage)
    .catch((error: unknown) => {
      const detail = `it cannot be read: ${error instanceof Error ? error.message || error.name : error}`
      return { rows: 0, breaches: [{ subject: 'seal storage', detail }] }
    })
    .finally(() => storage.close())
  return {
    name: 'as-stored',
    statement: 'The seals that were stored outside the database are still in it, unchanged.',
    rows,
    breaches,
    ms: performance.now() - start,
  }
}

interface JournalState {
  basis: Basis
  isMarkStored: boolean
  last: Seal | null
  keying: JournalKeying
}

function verdictOf(results: readonly InvariantResult[], { basis, isMarkStored, last, keying }: JournalState) {
  const { mark, problem } = basis
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

function wireSeal({ position, sealedAt, digest }: Seal) {
  return { position, sealed_at: wireTime(sealedAt), digest }
}

function verifyLines(
  out: Output,
  results: readonly InvariantResult[],
  { basis, last, keying }: JournalState,
): string[] {
  const total = results.reduce((sum, result) => sum + result.rows, 0)
  const broken = results.filter((result) => result.breaches.length > 0)
  return [
    ...out.table(
      [
        { title: 'Invariant' },
        { title: 'Rows', right: true },
        { title: 'Breaches', right: true },
        { title: 'ms', right: true },
        { title: 'What must hold', flexible: 'wrap' },
      ],
      results.map((result) => [
        result.name,
        String(result.rows),
        String(result.breaches.length),
        String(Math.round(result.ms)),
        result.statement,
      ]),
    ),
    ...broken.flatMap((result) => [
      '',
      out.style('red', `${result.name} is broken:`),
      ...result.breaches.map(({ subject, detail }) => `  ${subject}: ${detail}`),
    ]),
    '',
    ...(broken.length === 0
      ? [out.style('green', `All ${results.length} invariants hold (${total} rows checked).`)]
      : []),
    basisLine(out, basis),
    last
      ? `Last seal: ${last.digest} (number ${last.position}, of ${out.time(last.sealedAt)})`
      : 'The journal was never sealed.',
    ...keyLines(out, keying),
  ]
}

function basisLine(out: Output, { mark, problem }: Basis): string {
  if (problem !== null)
    return out.style('yellow', `The mark of the last verification cannot be used: ${problem}.`)
  if (!mark) return 'Every row was checked.'
  const { covered, sealedAt, verifiedAt } = mark
  const { position, digest } = covered.seal
  return `Checked what is new since seal ${position}, ${digest}, of ${out.time(sealedAt)}, verified at ${out.time(verifiedAt)}. All rows: --full`
}

/** What rests on events that an operator sent: a note, not a breach. */
function operatorLines({ sales, billing_cycles, payouts }: OperatorEffects): string[] {
  const lines = [
    ['sale', sales],
    ['charged billing cycle', billing_cycles],
    ['settled payout', payouts],
  ] as const
  const named = lines.filter(([, ids]) => ids.length > 0)
  if (named.length === 0) return []
  return [
    '',
    'These rest on events that an operator sent with "webhooks replay":',
    ...named.map(([what, ids]) => `  ${ids.length} ${what}${ids.length === 1 ? '' : 's'}: ${shortList(ids)}`),
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

function seal(command: Command): Promise<void> {
  return withApp(command, async ({ app, out }) => {
    const { sealLedger } = await import('../../../server/ledger/seals/seals.service.ts')
    const { seal: made, moved } = await sealLedger(app.platform)
    const document = { created: moved > 0, ledgers: moved, seal: made && wireSeal(made) }
    out.show(document, () => sealLines(out, made, moved))
  })
}

function sealLines(out: Output, made: Seal | null, moved: number): string[] {
  if (made === null) return ['There is nothing to seal: the journal is empty.']
  const when = `number ${made.position}, of ${out.time(made.sealedAt)}`
  const news =
    moved > 0
      ? `Sealed: ${when}; ${moved} ledger${moved > 1 ? 's' : ''} moved since the one before.`
      : `Nothing was written since the last seal: ${when}.`
  return [
    made.digest,
    news,
    'Keep the digest where no one who can write to this database can change it. Later, this shows whether the books of today are unchanged:',
    '  affiliate ledger verify --against DIGEST',
  ]
}

const MOST_NAMED = 5

function shortList(rows: readonly string[]): string {
  const distinct = [...new Set(rows)]
  const more = distinct.length - MOST_NAMED
  return distinct.slice(0, MOST_NAMED).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

function balances(user: string | undefined, command: Command): Promise<void> {
  return withApp(
    command,
    async ({ app, out }) => {
      const { listBalances } = await import('../../../server/users/accounts.service.ts')
      const { findUser } = await import('../../../server/users/users.service.ts')
      const isPlatform = user === PLATFORM
      const owner = user === undefined || isPlatform ? null : await findUser(app.platform, user)
      const all = await listBalances(app.platform, owner?.id ?? null)
      const rows = isPlatform ? all.filter((row) => row.owner === null) : all
      const total = rows.reduce((sum, row) => sum + row.balance, 0)
      const document = { items: rows.map(wireBalance), total: formatMoney(total), currency: CURRENCY }
      out.show(document, () => balanceTable(out, rows, user === undefined))
    },
    READS,
  )
}

function balanceTable(out: Output, rows: readonly OwnedBalance[], whole: boolean): string[] {
  const debits = rows.reduce((sum, row) => sum + Math.max(row.balance, 0), 0)
  const credits = rows.reduce((sum, row) => sum - Math.min(row.balance, 0), 0)
  const total = ['Total', '', displayMoney(debits), displayMoney(credits), '']
  return out.table(
    [
      { title: 'Account' },
      { title: 'Owner', flexible: true },
      { title: 'Debit', right: true },
      { title: 'Credit', right: true },
      { title: 'Postings', right: true },
    ],
    [
      ...rows.map(({ account, owner, balance, postings }) => [
        account,
        owner === null ? PLATFORM : (owner.email ?? owner.id),
        balance > 0 ? displayMoney(balance) : '',
        balance < 0 ? displayMoney(-balance) : '',
        String(postings),
      ]),
      ...(whole ? [total] : []),
    ],
  )
}

function wireBalance({ account, owner, balance, postings }: OwnedBalance) {
  return {
    account,
    owner: owner && { id: owner.id, email: owner.email, display_name: owner.displayName },
    balance: formatMoney(balance),
    postings,
  }
}
