import { existsSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import { getCycle, listCycles } from '../../server/billing/billing.service.ts'
import { csvCell, csvLine } from '../../server/exports/csv.rule.ts'
import { RECONCILED_DAYS } from '../../server/jobs/reconciliation.ts'
import { exportPayouts, type LeftOut, type PayoutFileRow } from '../../server/payouts/payout-file.service.ts'
import { getPayout, listPayouts } from '../../server/payouts/payouts.service.ts'
import { isId } from '../../server/platform/ids.ts'
import {
  type BankResults,
  type ListedRow,
  MOST_LISTED,
  readBankResults,
} from '../../server/processor/manual/bank-results.service.ts'
import {
  RESULT_COLUMNS,
  readNumber,
  STATEMENT_COLUMNS,
} from '../../server/processor/manual/bank-rows.rule.ts'
import { readReference } from '../../server/processor/manual/confirmation.rule.ts'
import { compareStatement, describeStatement } from '../../server/processor/manual/statement.service.ts'
import {
  type Confirmation,
  type Confirmed,
  confirmTransfers,
  newFileName,
  openTransfers,
  sumOpenTransfers,
  type TransferRow,
  transfersNamed,
} from '../../server/processor/manual/transfers.service.ts'
import { wireSum } from '../../server/reports/operator-status.service.ts'
import { DAY_MS } from '../../shared/durations.ts'
import { CURRENCY, type Paisa } from '../../shared/money.ts'
import { readMoment } from '../arguments.ts'
import { type AppContext, confirm, movesMoney, reads, writes } from '../context.ts'
import { Failure, wrongUsage } from '../failures.ts'
import { nameOf, peopleOf } from '../lists.ts'
import { actingAdmin, type ByAdmin } from '../manual/acting-admin.ts'
import { withBankFile } from '../manual/bank-file-input.ts'
import { type Delivered, deliverEvents, reachService } from '../manual/deliver.ts'
import { counted, displayMoney, formatMoney, many, sum, sumText, wireTime } from '../terminal/output.ts'
import { money } from '../terminal/table.ts'

function assertManual({ config }: AppContext): void {
  if (config.PROCESSOR === 'manual') return
  throw new Failure(`PROCESSOR is ${config.PROCESSOR}; these commands need PROCESSOR=manual.`)
}

/*
 * What is due.
 */

/** Cycles and payouts that are looked at for confirmations that were not applied. */
const MOST_UNAPPLIED = 1000

export const due = reads(async (context, { limit }: { limit: number }) => {
  assertManual(context)
  const { platform, out } = context
  const { reader } = platform.database
  const [invoices, payouts] = [
    await openTransfers(reader, 'invoice', limit),
    await openTransfers(reader, 'payout', limit),
  ]
  const owners = new Map<string, string>()
  for (const { subject_id: id } of invoices) owners.set(id, (await getCycle(reader, id))?.merchant_id ?? '')
  for (const { subject_id: id } of payouts) owners.set(id, (await getPayout(reader, id))?.creator_id ?? '')
  const person = await peopleOf(platform, [...owners.values()], (id) => id)
  const ownerOf = ({ subject_id }: TransferRow) => person(owners.get(subject_id) ?? '')
  const sums = await sumOpenTransfers(reader)
  const sumOf = (kind: TransferRow['kind'], exported: number) =>
    sums.find((one) => one.kind === kind && one.exported === exported) ?? { count: 0, amount: 0 }
  const [receive, pay, wait] = [sumOf('invoice', 0), sumOf('payout', 0), sumOf('payout', 1)]
  const unapplied = await unappliedTransfers(context)
  const wire = (row: TransferRow) => ({ ...wireTransfer(row), owner: ownerOf(row) })
  const document = {
    to_receive: { ...wireSum(receive), items: invoices.map(wire) },
    to_export: wireSum(pay),
    exported: wireSum(wait),
    payouts: payouts.map(wire),
    not_applied: unapplied.map(wireTransfer),
    currency: CURRENCY,
  }
  const common = [
    { title: 'Number', cell: (row: TransferRow) => row.number },
    money('Amount', (row: TransferRow) => row.amount),
  ]
  const since = out.moment('Since', (row: TransferRow) => row.created_at)
  const who = (title: string) => ({ title, flexible: true, cell: (row: TransferRow) => nameOf(ownerOf(row)) })
  out.show(document, () => [
    `${out.heading('To receive')}: ${sumText(receive)}`,
    ...(invoices.length > 0 ? out.table(invoices, [who('Merchant'), ...common, since]) : []),
    `${out.heading('To pay')}: to export ${sumText(pay)}; exported ${sumText(wait)}`,
    ...(payouts.length > 0
      ? out.table(payouts, [who('Creator'), ...common, { title: 'File', cell: ({ file }) => file }, since])
      : []),
    ...(unapplied.length > 0
      ? [
          `${out.heading('Confirmed and not applied')}: repeat the command for ${unapplied
            .slice(0, 3)
            .map(({ number }) => number)
            .join(', ')}${unapplied.length > 3 ? ` and ${unapplied.length - 3} more` : ''}`,
        ]
      : []),
  ])
})

/** Transfers whose outcome was recorded, but whose cycle or payout has not moved: their event did not arrive, or was set aside. */
async function unappliedTransfers({ platform }: AppContext): Promise<TransferRow[]> {
  const { reader } = platform.database
  const page = { limit: MOST_UNAPPLIED, before: null }
  const cycles = await listCycles(platform, { merchantId: null, state: 'closed', ...page })
  const payouts = await listPayouts(reader, null, { state: 'submitted', ...page })
  const transfers = await transfersNamed(
    reader,
    [...cycles, ...payouts].map(({ id }) => id),
  )
  return transfers.filter(({ state }) => state !== 'open')
}

function wireTransfer(row: TransferRow) {
  const { number, kind, subject_id, amount, state, file, bank_reference, reason } = row
  return {
    number,
    kind,
    subject_id,
    amount: formatMoney(amount),
    state,
    file,
    bank_reference,
    reason,
    exported_at: wireTime(row.exported_at),
    created_at: wireTime(row.created_at),
    settled_at: wireTime(row.settled_at),
  }
}

/*
 * One confirmation.
 */

interface ReceivedOptions extends ByAdmin {
  amount: Paisa
  reference: string
}

export const received = movesMoney(async (context, cycle: string, options: ReceivedOptions) => {
  const { amount, reference } = options
  await confirmOne(context, options, {
    kind: 'invoice',
    about: nameIn(cycle, 'a billing cycle or an invoice'),
    outcome: 'paid',
    amount,
    reference: referenceIn(reference),
    reason: null,
  })
})

interface PaidOptions extends ByAdmin {
  reference?: string
  from?: string
  columns?: string
}

export const paid = movesMoney(async (context, payout: string | undefined, options: PaidOptions) => {
  if (options.from !== undefined) return applyResults(context, options.from, options)
  await confirmOne(context, options, {
    kind: 'payout',
    about: nameIn(payout ?? '', 'a payout'),
    outcome: 'paid',
    amount: null,
    reference: referenceIn(options.reference ?? ''),
    reason: null,
  })
})

export const failed = movesMoney(
  async (context, payout: string, { reason, ...options }: ByAdmin & { reason: string }) => {
    await confirmOne(context, options, {
      kind: 'payout',
      about: nameIn(payout, 'a payout'),
      outcome: 'failed',
      amount: null,
      reference: null,
      reason,
    })
  },
)

/** An id or a transfer's number. Refuses (exit 2) anything else. */
function nameIn(text: string, what: string): string {
  const id = text.trim().toLowerCase()
  const name = isId(id) ? id : readNumber(text)
  if (name !== null) return name
  throw wrongUsage(`"${text}" is not the id or number of ${what}. See "affiliate manual due".`)
}

function referenceIn(text: string): string {
  const reference = readReference(text)
  if (reference !== null) return reference
  throw wrongUsage(`"${text}" is not a bank reference: give 1 to 64 letters, digits, spaces and . / : _ -`)
}

/** Records what the admin says, sends its event, and shows the result. Repeating it has the same result. */
async function confirmOne(context: AppContext, by: ByAdmin, confirmation: Confirmation): Promise<void> {
  assertManual(context)
  const { platform, out } = context
  const admin = await actingAdmin(context, by)
  const { kind, about, outcome } = confirmation
  const named = await transfersNamed(platform.database.reader, [about])
  const found = named.find((row) => row.kind === kind)
  if (!found) throw new Failure(unknownText(about), { code: 'not_found' })
  await refuseOtherCharge(context, found)
  const what = kind === 'invoice' ? 'was received' : outcome === 'paid' ? 'was paid' : 'failed'
  // A bank that has the file may still pay it, and a failed payout is paid again.
  const hint =
    outcome === 'failed' && found.file !== null ? `, although the bank has it in file ${found.file}` : ''
  await confirm(
    context,
    `${displayMoney(found.amount)} under ${found.number} ${what}${hint}? It cannot be undone.`,
  )
  const caller = await reachService(context, by.url)
  const [confirmed] = await confirmTransfers(platform, admin.id, [confirmation])
  if (!confirmed?.transfer || !isRecorded(confirmed)) {
    throw new Failure(refusalText(confirmed as Confirmed, confirmation))
  }
  const [delivered] = await deliverEvents(context, caller, [confirmed.transfer])
  const { transfer, event, problem } = delivered as Delivered
  if (problem !== null) throw new Failure(`${transfer.number} is confirmed, but ${problem}.`)
  const subject =
    kind === 'invoice'
      ? `Billing cycle ${transfer.subject_id} is charged`
      : `Payout ${transfer.subject_id} is ${transfer.state}`
  const words = transfer.bank_reference === null ? transfer.reason : `reference ${transfer.bank_reference}`
  out.show({ ...wireTransfer(transfer), event_id: event?.id ?? null }, () => [
    `${subject}: ${displayMoney(transfer.amount)}, ${words}.`,
  ])
}

/** A cycle that another payment charged: an event now would only be flagged. */
async function refuseOtherCharge({ platform }: AppContext, transfer: TransferRow): Promise<void> {
  if (transfer.kind !== 'invoice' || transfer.state !== 'open') return
  const cycle = await getCycle(platform.database.reader, transfer.subject_id)
  if (cycle?.state !== 'charged') return
  throw new Failure(
    `Billing cycle ${cycle.id} is charged already, by payment ${cycle.processor_payment_reference}. Nothing was done.`,
  )
}

const isRecorded = ({ verdict }: Confirmed) => verdict === 'record' || verdict === 'repeat'

function refusalText(
  { verdict, transfer, holder }: Confirmed,
  { about, amount, reference }: Confirmation,
): string {
  const name = transfer?.number ?? about
  switch (verdict) {
    case 'other_amount':
      return `${name} is about ${displayMoney(transfer?.amount ?? 0)}, not ${displayMoney(amount ?? 0)}. Nothing was done.`
    case 'used_reference':
      return `Reference ${reference} was used for ${holder} already. Nothing was done.`
    case 'settled': {
      const { state, bank_reference, reason } = transfer as TransferRow
      const words = bank_reference === null ? `reason "${reason}"` : `reference ${bank_reference}`
      return `${name} was confirmed as ${state} already, with ${words}. Nothing was done.`
    }
    default:
      return unknownText(about)
  }
}

function unknownText(about: string): string {
  return `Nothing that waits for a bank transfer is ${about}. See "affiliate manual due".`
}

/*
 * The bank's result file.
 */

const CONFIRMED_AT_ONCE = 500

async function applyResults(context: AppContext, file: string, by: PaidOptions): Promise<void> {
  assertManual(context)
  const { platform, out } = context
  const admin = await actingAdmin(context, by)
  const results = await withBankFile(file, RESULT_COLUMNS, by.columns, (rows) =>
    readBankResults(platform.database.reader, rows),
  )
  const { confirmations } = results
  const ofOutcome = (outcome: string) => confirmations.filter((one) => one.outcome === outcome).length
  if (confirmations.length > 0) {
    const what = `${counted(ofOutcome('paid'), 'payout')} paid, ${ofOutcome('failed')} failed`
    await confirm(context, `${what}, by ${file}? It cannot be undone.`)
  }
  const caller = await reachService(context, by.url)
  const applied = { paid: 0, failed: 0, repeated: 0 }
  const refused: ListedRow[] = []
  for (let at = 0; at < confirmations.length; at += CONFIRMED_AT_ONCE) {
    const batch = confirmations.slice(at, at + CONFIRMED_AT_ONCE)
    const confirmed = await confirmTransfers(platform, admin.id, batch)
    const recorded = confirmed.flatMap((one, index) => {
      const given = batch[index] as (typeof batch)[number]
      if (isRecorded(one) && one.transfer) return [{ ...one, transfer: one.transfer, line: given.line }]
      refused.push({ line: given.line, number: given.about, why: refusalText(one, given) })
      return []
    })
    const delivered = await deliverEvents(
      context,
      caller,
      recorded.map(({ transfer }) => transfer),
    )
    for (const [index, { transfer, problem }] of delivered.entries()) {
      const { verdict = '', line = 0 } = recorded[index] ?? {}
      if (problem !== null) refused.push({ line, number: transfer.number, why: problem })
      else if (verdict === 'repeat') applied.repeated += 1
      else applied[transfer.state === 'paid' ? 'paid' : 'failed'] += 1
    }
  }
  showResults(context, file, results, applied, refused)
  const troubles = refused.length + sum(Object.values(results.problems).map(({ count }) => count))
  if (troubles > 0) throw new Failure(`${many(troubles, 'row')} of ${file} were not applied; see above.`)
  out.endProgress()
}

function showResults(
  { out }: AppContext,
  file: string,
  { rows, duplicates, undecided, problems }: BankResults,
  applied: Record<'paid' | 'failed' | 'repeated', number>,
  refused: readonly ListedRow[],
): void {
  const listed = [...refused.slice(0, MOST_LISTED), ...Object.values(problems).flatMap((one) => one.listed)]
  const counts = {
    rows,
    ...applied,
    duplicates,
    undecided,
    refused: refused.length,
    ...Object.fromEntries(Object.entries(problems).map(([kind, { count }]) => [kind, count])),
  }
  out.show({ file, ...counts, items: listed }, () => [
    ...out.pairs([
      ['Rows', rows.toLocaleString('en')],
      ['Paid', `${many(applied.paid, 'payout')}; ${applied.failed.toLocaleString('en')} failed`],
      [
        'Known',
        `${many(applied.repeated, 'payout')} confirmed before, ${many(duplicates, 'row')} repeated in the file`,
      ],
      ['Undecided', many(undecided, 'row')],
      ['Refused', `${many(refused.length, 'row')} with another amount, outcome or reference, or not applied`],
      ['Unknown', many(problems.unknown.count, 'row')],
      ['Contradicting', many(problems.contradiction.count, 'row')],
      ['Unreadable', many(problems.unreadable.count, 'row')],
    ]),
    ...(listed.length === 0
      ? []
      : [
          '',
          ...out.table(listed, [
            { title: 'Line', right: true, cell: ({ line }) => line },
            { title: 'Number', cell: ({ number }) => number },
            { title: 'Why', flexible: 'wrap', cell: ({ why }) => why },
          ]),
        ]),
  ])
}

/*
 * The file for the bank.
 */

interface PayoutFileOptions extends ByAdmin {
  again?: string
}

export const payoutFile = movesMoney(
  async (context, given: string | undefined, options: PayoutFileOptions) => {
    assertManual(context)
    const { platform, out } = context
    const admin = await actingAdmin(context, options)
    const again = options.again?.trim().toUpperCase()
    const name = again ?? newFileName()
    const file = resolve(given ?? `payouts-${name}.csv`)
    await confirm(context, `Write whole IBANs to ${file}?`)
    const part = await openPart(file)
    let written = false
    try {
      const { rows, leftOut } = await exportPayouts(platform, {
        actor: admin.id,
        name,
        again: again !== undefined,
      })
      if (rows.length > 0) {
        await part.fill(payoutCsv(rows)).catch((error: Error) => {
          throw new Failure(
            `${file}: ${error.message}. The payouts are marked as exported: write them with "affiliate manual payout-file --again ${name}".`,
          )
        })
        written = true
      }
      const total = sum(rows.map(({ amount }) => amount))
      const document = {
        name,
        file: written ? file : null,
        payouts: rows.length,
        amount: formatMoney(total),
        currency: CURRENCY,
        left_out: leftOut.map(({ payoutId: payout_id, number, why }) => ({ payout_id, number, why })),
      }
      out.show(document, () => [
        ...(written
          ? [
              `Wrote ${counted(rows.length, 'payout')}, ${displayMoney(total)} in all, to ${file}`,
              'It holds whole bank accounts and is readable by you only. Delete it once the bank has it.',
              `When the bank has answered: affiliate manual paid --from RESULTS. If the file is lost: --again ${name}`,
            ]
          : ['No payout waits to be exported; no file was written.']),
        ...leftOutLines(leftOut),
      ])
    } finally {
      await part.close()
    }
  },
)

function leftOutLines(leftOut: readonly LeftOut[]): string[] {
  return leftOut.map(({ number, why }) => `Left out: ${number}: ${why}.`)
}

/** Lines of CSV: the title as text, so that no spreadsheet program takes it for a formula. */
function payoutCsv(rows: readonly PayoutFileRow[]): string {
  const lines = rows.map(({ account_title, iban, amount, number }) =>
    csvLine([csvCell(account_title, 'text'), csvCell(iban, 'text'), formatMoney(amount), number]),
  )
  return [csvLine(['beneficiary_title', 'iban', 'amount', 'reference']), ...lines].join('')
}

/** A private file beside `file`, which `fill` writes and puts into its place when it is on disk. `close` removes what has no place. */
async function openPart(file: string) {
  const part = `${file}.part`
  const refuse = (text: string) => new Failure(`${text} Nothing was exported.`)
  if (existsSync(file)) throw refuse(`${file} exists. Name a new file.`)
  const handle = await open(part, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    throw refuse(
      error.code === 'EEXIST'
        ? `${part} is left from a command that ended early. Delete it.`
        : `${error.message}.`,
    )
  })
  return {
    async fill(text: string) {
      await handle.writeFile(text)
      await handle.sync()
      await rename(part, file)
    },
    async close() {
      await handle.close()
      await rm(part, { force: true })
    },
  }
}

/*
 * The bank's statement.
 */

interface ReconcileOptions extends ByAdmin {
  columns?: string
  since?: string
  until?: string
}

export const reconcile = writes(async (context, file: string, options: ReconcileOptions) => {
  assertManual(context)
  const { platform, config, out } = context
  const admin = await actingAdmin(context, options)
  const now = platform.clock.now()
  const period = {
    since: readMoment(options.since, config) ?? now - RECONCILED_DAYS * DAY_MS,
    until: readMoment(options.until, config) ?? now,
  }
  const { rows, others, compared, differing } = await withBankFile(
    file,
    STATEMENT_COLUMNS,
    options.columns,
    (read) => compareStatement(platform, admin.id, read, period),
  )
  const items = differing.map(({ transfer, differences, lines, flag }) => ({
    ...wireTransfer(transfer),
    differences,
    lines,
    flag,
  }))
  const shown = differing.slice(0, MOST_LISTED)
  const document = {
    file,
    since: wireTime(period.since),
    until: wireTime(period.until),
    rows,
    others,
    compared,
    items,
  }
  out.show(document, () => [
    ...(shown.length === 0
      ? []
      : [
          ...out.table(shown, [
            { title: 'Number', cell: ({ transfer }) => transfer.number },
            money('Amount', ({ transfer }) => transfer.amount),
            { title: 'Line', cell: ({ lines }) => lines.join(', ') || null },
            {
              title: 'Difference',
              flexible: 'wrap',
              cell: ({ differences }) => describeStatement(differences),
            },
          ]),
          '',
        ]),
    `${many(rows, 'row')}, ${many(others, 'row')} about nothing of ours; ${compared.toLocaleString('en')} compared, ${differing.length.toLocaleString('en')} differ.`,
  ])
  if (differing.length > 0) throw new Failure(`${differing.length} differ; see "affiliate flagged list".`)
})
