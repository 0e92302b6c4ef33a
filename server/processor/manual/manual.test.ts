import { Readable } from 'node:stream'
import { sql } from 'kysely'
import * as assert from 'uvu/assert'
import { openFlags, resolveFlag } from '../../flags/flags.service.ts'
import { reconcile } from '../../jobs/reconciliation.ts'
import type { LinkRecord } from '../../links/links.service.ts'
import { exportPayouts } from '../../payouts/payout-file.service.ts'
import type { Actor } from '../../platform/api/procedure.ts'
import { TamperedRow } from '../../platform/database/protected-rows.ts'
import { MANUAL_SETTINGS, type ManualMarket, manualMarket } from '../../test/testkit/manual-market.ts'
import { marketSuites } from '../../test/testkit/market-suites.ts'
import { attemptsOf, cycleOf, openFlagsOf, payoutOf, type Shop } from '../../test/testkit/marketplace.ts'
import { addUser, setSuspended } from '../../test/testkit/people.ts'
import { assertMapped, pluck, pluckAll } from '../../test/testkit/pluck.ts'
import { messageOf, rejectionOf } from '../../test/testkit/rejection.ts'
import { rowOf, rowsOf } from '../../test/testkit/rows.ts'
import { DAY, HOUR } from '../../test/testkit/testbed.ts'
import { type BankRow, readBankFile } from './bank-file.ts'
import { readBankResults } from './bank-results.service.ts'
import { RESULT_COLUMNS, STATEMENT_COLUMNS } from './bank-rows.rule.ts'
import { compareStatement } from './statement.service.ts'
import { type Confirmation, confirmTransfers, newFileName } from './transfers.service.ts'

interface Context {
  manual: ManualMarket
  admin: Actor
  shop: Shop
  creator: Actor
  link: LinkRecord
}

/** Earns 1,000.00 for the creator, and 100.00 for the platform. */
const BILLED = 110_000
const EARNED = 100_000

const received = (about: string, reference = 'FT1', amount = BILLED): Confirmation => ({
  ...{ kind: 'invoice', about, outcome: 'paid', amount, reference, reason: null },
})
const paid = (about: string, reference = 'FT2'): Confirmation => ({
  ...{ kind: 'payout', about, outcome: 'paid', amount: null, reference, reason: null },
})
const failed = (about: string, reason = 'account closed'): Confirmation => ({
  ...{ kind: 'payout', about, outcome: 'failed', amount: null, reference: null, reason },
})

for (const { it } of marketSuites<Context>('manual processor', { settings: MANUAL_SETTINGS, verify: true })) {
  it.before.each(async (context) => {
    const { market } = context
    context.manual = manualMarket(market)
    context.admin = await addUser(market.platform, 'admin')
    context.shop = await market.addShop()
    context.creator = await market.addCreator()
    context.link = await market.addLink(context.shop, context.creator)
  })

  type Test = Context & Parameters<Parameters<typeof it>[1]>[0]
  const verdicts = async ({ platform, admin }: Test, ...confirmations: Confirmation[]) =>
    (await confirmTransfers(platform, admin.userId, confirmations)).map(({ verdict }) => verdict)
  /** Says it, and sends its event. */
  const settle = async (test: Test, confirmation: Confirmation) => {
    assert.equal(await verdicts(test, confirmation), ['record'])
    await test.manual.say(await test.manual.transferOf(confirmation.about))
  }
  /** A charged cycle, and the payout of what it released. */
  const payable = async (test: Test, reference = 'FT1') => {
    await settle(test, received(await test.manual.invoice(test.shop, test.link), reference))
    const [payoutId = ''] = await test.manual.payOut()
    return payoutId
  }
  const write = (test: Test, name = newFileName(), again = false) =>
    exportPayouts(test.platform, { actor: test.admin.userId, name, again })
  const audited = async ({ platform }: Test) =>
    (await rowsOf(platform, 'audit_entries')).filter(({ action }) => action.startsWith('manual.'))
  const file = (content: string, columns: { required: readonly string[]; optional: readonly string[] }) =>
    readBankFile(Readable.from([Buffer.from(content)]), { ...columns, titles: new Map() })

  it('gives each invoice and payout one number, however often it is asked', async (test) => {
    const { manual, platform } = test
    const cycleId = await manual.invoice(test.shop, test.link)
    const { number, id, state } = await manual.transferOf(cycleId)
    assert.match(number, /^INV[A-Z2-7]{12}$/)
    const cycle = await cycleOf(platform, cycleId)
    assert.equal([cycle.processor_invoice_id, state, cycle.state], [number, 'open', 'closed'])
    const [mail] = await rowsOf(platform, 'mails', { kind: 'billing_cycle.closed' })
    const instructions = MANUAL_SETTINGS.MANUAL_PAYMENT_INSTRUCTIONS.replace('\\n', '\n')
    assert.equal(JSON.parse(mail?.facts ?? '{}').transfer, { number, instructions })
    const [attempt] = await attemptsOf(platform, cycleId)
    assert.is(attempt?.id, id)
    const { createInvoice, findInvoices } = manual.processor
    const billed = { reference: cycleId, amount: BILLED }
    const call = { attemptId: id, ...billed, customer: { id: '', email: '', name: '' } }
    assert.equal(await createInvoice(call), { kind: 'created', id: number, hostedUrl: null })
    assert.is((await createInvoice({ ...call, attemptId: platform.ids.next() })).kind, 'refused')
    const held = await findInvoices({ reference: cycleId, attemptIds: [id] })
    const item = { id: number, ...billed, currency: 'PKR', status: 'open' }
    assert.equal(held, { kind: 'found', items: [item] })
  })

  it('moves money by the event alone', async (test) => {
    const { manual, platform } = test
    const cycleId = await manual.invoice(test.shop, test.link)
    const entries = async () => (await rowsOf(platform, 'ledger_entries')).length
    const before = await entries()
    assert.equal(await verdicts(test, received(cycleId)), ['record'])
    await manual.drain()
    assert.equal([(await cycleOf(platform, cycleId)).state, await entries()], ['closed', before])
    await manual.say(await manual.transferOf(cycleId))
    const { state, processor_payment_reference } = await cycleOf(platform, cycleId)
    assert.equal([state, processor_payment_reference, await entries()], ['charged', 'FT1', before + 1])
    const [payoutId = ''] = await manual.payOut()
    assert.equal(await verdicts(test, paid(payoutId)), ['record'])
    await manual.drain()
    assert.is((await payoutOf(platform, payoutId)).state, 'submitted')
    await manual.say(await manual.transferOf(payoutId))
    assert.is((await payoutOf(platform, payoutId)).state, 'paid')
  })

  it('refuses another amount, an unknown one, a used reference and another word, and records a word once', async (test) => {
    const { manual } = test
    const first = await manual.invoice(test.shop, test.link)
    const second = await manual.invoice(test.shop, test.link)
    const { number } = await manual.transferOf(first)
    assert.equal(await verdicts(test, received(first, 'FT1', BILLED - 1)), ['other_amount'])
    const unknown = [received('INVAAAAAAAAAAAA'), paid(first), received(test.platform.ids.next())]
    assert.equal(await verdicts(test, ...unknown), ['unknown', 'unknown', 'unknown'])
    // One transaction: the first gives the reference to its own.
    assert.equal(await verdicts(test, received(number), received(second)), ['record', 'used_reference'])
    const later = [received(first), received(number), received(first, 'FT9')]
    assert.equal(await verdicts(test, ...later), ['repeat', 'repeat', 'settled'])
    await manual.say(await manual.transferOf(first))
    await manual.say(await manual.transferOf(first))
    const actions = (await audited(test)).map(({ action, actor, subject_id }) => [action, actor, subject_id])
    assert.equal(actions, [['manual.received', test.admin.userId, first]])
    assert.equal(await openFlagsOf(test.platform), [])
  })

  it('gives the amount of a failed payout back, and takes no other word about it', async (test) => {
    const { manual, platform, clock } = test
    const payoutId = await payable(test)
    await settle(test, failed(payoutId))
    const { state, failure_reason } = await payoutOf(platform, payoutId)
    assert.equal([state, failure_reason], ['failed', 'account closed'])
    const later = [paid(payoutId), failed(payoutId), failed(payoutId, 'another')]
    assert.equal(await verdicts(test, ...later), ['settled', 'repeat', 'settled'])
    clock.pass(HOUR)
    const [next = ''] = await manual.payOut()
    assert.is((await payoutOf(platform, next)).amount, EARNED)
  })

  it('writes a payout into one file, also for two who write at once', async (test) => {
    const payoutId = await payable(test)
    const [one, other] = await Promise.all([write(test), write(test)])
    const { number } = await test.manual.transferOf(payoutId)
    assert.equal(pluckAll([...one.rows, ...other.rows], 'iban', 'account_title', 'amount', 'number'), [
      ['PK36SCBL0000001123456702', 'A CREATOR', EARNED, number],
    ])
    assert.equal((await write(test)).rows, [])
    const trail = (await audited(test)).filter(({ action }) => action === 'manual.payout_file')
    const written = { again: false, payouts: 1, amount: EARNED }
    assertMapped(trail, ({ after }) => JSON.parse(after ?? ''), [written])
    assert.not.match(JSON.stringify(trail), /PK36SCBL/)
  })

  it('loses and doubles nothing when the machine dies between the mark and the file', async (test) => {
    const { manual } = test
    const first = await payable(test)
    const name = newFileName()
    // Marked, and never written.
    const lost = await write(test, name)
    const second = await payable(test, 'FT7')
    const next = await write(test)
    assert.equal(pluck(next.rows, 'payoutId'), [second])
    assert.equal((await write(test, name, true)).rows, lost.rows)
    assert.equal((await manual.transferOf(first)).file, name)
    await settle(test, paid(first))
    assert.match(await messageOf(write(test, name, true)), /No payout of file PF\w{8} waits for its outcome/)
  })

  it('leaves payouts of suspended creators out of the file until they are reinstated', async (test) => {
    const payoutId = await payable(test)
    await setSuspended(test.platform, test.creator.userId, true)
    const { rows, leftOut } = await write(test)
    assert.equal([rows, leftOut.map(({ why }) => why)], [[], ['the creator is suspended']])
    await setSuspended(test.platform, test.creator.userId, false)
    assert.equal(pluck((await write(test)).rows, 'payoutId'), [payoutId])
  })

  it('leaves a payout whose outcome the journal has out of the file', async (test) => {
    const payoutId = await payable(test)
    // An event that no admin stands behind.
    await test.market.settlePayout(payoutId, 'confirmed')
    await test.manual.drain()
    const { rows, leftOut } = await write(test)
    assert.equal([rows, pluck(leftOut, 'why')], [[], ['the journal has its outcome already']])
  })

  it("reads the bank's result file, whole, before it says anything", async (test) => {
    const payoutId = await payable(test)
    const { number } = await test.manual.transferOf(payoutId)
    const { number: invoice } = await test.manual.transferOf(await test.manual.invoice(test.shop, test.link))
    const read = (...lines: string[]) =>
      readBankResults(
        test.platform.database.reader,
        file(['reference,amount,status,bank_reference,reason', ...lines, ''].join('\n'), RESULT_COLUMNS),
      )
    const results = await read(
      `${number},"1,000.00",paid,FT8,`,
      `${number},1000,PAID,ft8,`,
      'PAYAAAAAAAAAAAA,5,paid,FT9,',
      `${invoice},1100,paid,FT10,`,
      'no number,5,paid,FT11,',
      'PAYBBBBBBBBBBBB,5,pending,,',
    )
    const { rows, duplicates, undecided, problems } = results
    assert.equal([rows, duplicates, undecided], [6, 1, 1])
    assert.equal(pluck(problems.unknown.listed, 'line'), [4, 5])
    assert.equal(pluck(problems.unreadable.listed, 'line'), [6])
    assert.equal(results.confirmations, [{ line: 2, ...paid(number, 'FT8'), amount: EARNED }])
    // Rows that disagree say nothing.
    const torn = await read(`${number},1000,paid,FT8,`, `${number},1000,failed,,gone`)
    assert.equal([torn.confirmations, torn.problems.contradiction.count], [[], 1])
    assert.equal(await verdicts(test, ...results.confirmations), ['record'])
    await test.manual.say(await test.manual.transferOf(number))
    assert.is((await payoutOf(test.platform, payoutId)).state, 'paid')
    assert.equal(await verdicts(test, ...(await read(`${number},1000,paid,FT8,`)).confirmations), ['repeat'])
  })

  it('reads a result file of 100,000 rows', async (test) => {
    const { number } = await test.manual.transferOf(await payable(test))
    async function* rows(): AsyncGenerator<BankRow> {
      for (let line = 1; line <= 100_000; line += 1) {
        const row: Record<string, string> = { reference: number, amount: '1000', status: 'paid' }
        yield { line, cell: (column) => row[column] ?? '' }
      }
    }
    const { confirmations, duplicates } = await readBankResults(test.platform.database.reader, rows())
    assert.equal([confirmations.length, duplicates], [1, 99_999])
  })

  it('flags what differs between the confirmations and the records here', async (test) => {
    const { manual, platform, clock } = test
    const lost = await manual.invoice(test.shop, test.link)
    const forged = await manual.invoice(test.shop, test.link)
    // Confirmed, and its event never came; and an event that no admin stands behind.
    await verdicts(test, received(lost))
    const { number } = await manual.transferOf(forged)
    await test.market.confirmPayment(forged, { invoice_id: number })
    await manual.drain()
    clock.pass(HOUR)
    const { differing } = await reconcile(platform, manual.processor, { pauseMs: 0 })
    const found = Object.fromEntries(differing.map(({ ours, differences }) => [ours.id, differences]))
    assert.equal(found, { [lost]: ['paid_there'], [forged]: ['open_there'] })
  })

  it('flags what differs between a bank statement and the confirmations', async (test) => {
    const { manual, platform, admin, clock } = test
    const payoutId = await payable(test)
    await settle(test, paid(payoutId))
    const { number: payout } = await manual.transferOf(payoutId)
    const { number: waits } = await manual.transferOf(await manual.invoice(test.shop, test.link))
    const { number: invoice } = await rowOf(platform, 'manual_transfers', { bank_reference: 'FT1' })
    const compare = async (since: number, ...lines: string[]) => {
      const rows = file(['Reference,Debit,Credit,Description', ...lines, ''].join('\n'), STATEMENT_COLUMNS)
      const period = { since, until: clock.now() + 1 }
      const { differing, ...counts } = await compareStatement(platform, admin.userId, rows, period)
      const found = differing.map(({ transfer, differences }) => [transfer.number, differences])
      return { ...counts, differing: Object.fromEntries(found) }
    }
    const good = ['FT1,,1100.00,from a shop', `FT2,1000.00,,${payout}`]
    const agreed = await compare(0, ...good, 'FT99,5.00,,bank charges')
    assert.equal([agreed.rows, agreed.others, agreed.compared, agreed.differing], [3, 1, 2, {}])
    const first = clock.now()
    const differs = await compare(0, `FT2,999.00,,${payout}`, `x,,1100.00,payment ${waits}`)
    const found = { [payout]: ['amount_differs'], [waits]: ['not_confirmed'] }
    assert.equal(differs.differing, { ...found, [invoice]: ['not_in_statement'] })
    const flags = () => openFlags(platform.database.reader, 'bank_statement_difference')
    assert.is((await flags()).length, 3)
    // A flag says so when both agree again; what a person has looked at is not raised again.
    clock.pass(DAY)
    await compare(first, ...good)
    const agreeing = (await flags()).filter(({ summary }) => /^The bank and we agree again/.test(summary))
    assert.is(agreeing.length, 2)
    for (const { id } of await flags())
      await resolveFlag(platform, { flagId: id, actor: admin.userId, note: 'looked at it' })
    const known = await compare(clock.now(), `x,,1100.00,payment ${waits}`)
    assert.equal(known.differing, { [waits]: ['not_confirmed'] })
    assert.equal(await flags(), [])
    const trail = (await audited(test)).filter(({ action }) => action === 'manual.reconcile')
    assert.is(trail.length, 4)
  })

  it.run()
}

for (const { it } of marketSuites<Context>('manual transfers that someone changed', {
  settings: MANUAL_SETTINGS,
})) {
  it('are neither confirmed nor exported nor looked up', async ({ market, platform }) => {
    const manual = manualMarket(market)
    const { userId: actor } = await addUser(platform, 'admin')
    const shop = await market.addShop()
    const link = await market.addLink(shop, await market.addCreator())
    await manual.settle(await manual.invoice(shop, link), actor)
    const [payoutId = ''] = await manual.payOut()
    const change = (set: string) =>
      platform.database.transaction((tx) =>
        sql`update manual_transfers set ${sql.raw(set)} where subject_id = ${payoutId}`.execute(tx),
      )
    // As if it stood in no file: the older row is known by its digest, and missed by the head.
    const { row_digest } = await manual.transferOf(payoutId)
    const name = newFileName()
    assert.is((await exportPayouts(platform, { actor, name })).rows.length, 1)
    await change(`file = null, exported_at = null, row_digest = '${row_digest}'`)
    const refused = await messageOf(exportPayouts(platform, { actor, name: newFileName() }))
    assert.match(refused, /manual_transfers holds an older or a changed row/)
    await change("bank_reference = 'FT0'")
    assert.instance(await rejectionOf(confirmTransfers(platform, actor, [paid(payoutId)])), TamperedRow)
    const detail = 'its record was changed in the database'
    const looked = await manual.processor.findPayouts({ reference: payoutId, attemptIds: [] })
    assert.equal(looked, { kind: 'unavailable', detail })
    assert.ok((await openFlagsOf(platform)).includes('integrity_violation manual_transfers'))
  })

  it.run()
}
