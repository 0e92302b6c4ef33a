import { sql } from 'kysely'
import * as assert from 'uvu/assert'
import { openFlags, resolveFlag } from '../../flags/flags.service.ts'
import { reconcile } from '../../jobs/reconciliation.ts'
import type { LinkRecord } from '../../links/links.service.ts'
import { exportPayouts } from '../../payouts/payout-file.service.ts'
import type { Actor } from '../../platform/api/procedure.ts'
import { MANUAL_SETTINGS, type ManualMarket, manualMarket } from '../../test/testkit/manual-market.ts'
import { marketSuites } from '../../test/testkit/market-suites.ts'
import { attemptsOf, cycleOf, openFlagsOf, payoutOf, type Shop } from '../../test/testkit/marketplace.ts'
import { addUser, setSuspended } from '../../test/testkit/people.ts'
import { rowsOf } from '../../test/testkit/rows.ts'
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

for (const { it } of marketSuites<Context>('manual processor', { settings: MANUAL_SETTINGS, verify: true })) {
  it.before.each(async (context) => {
    const { market } = context
    context.manual = manualMarket(market)
    context.admin = await addUser(market.platform, 'admin')
    context.shop = await market.addShop()
    context.creator = await market.addCreator()
    context.link = await market.addLink(context.shop, context.creator)
  })

  const received = (about: string, reference = 'FT1', amount = BILLED): Confirmation => ({
    ...{ kind: 'invoice', about, outcome: 'paid', amount, reference, reason: null },
  })
  const paid = (about: string, reference = 'FT2'): Confirmation => ({
    ...{ kind: 'payout', about, outcome: 'paid', amount: null, reference, reason: null },
  })
  const failed = (about: string, reason = 'account closed'): Confirmation => ({
    ...{ kind: 'payout', about, outcome: 'failed', amount: null, reference: null, reason },
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
    readBankFile([Buffer.from(content)] as never as AsyncIterable<Uint8Array>, {
      ...columns,
      titles: new Map(),
    })

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
    const call = {
      attemptId: id,
      reference: cycleId,
      amount: BILLED,
      customer: { id: '', email: '', name: '' },
    }
    assert.equal(
      [attempt?.id, await manual.processor.createInvoice(call)],
      [id, { kind: 'created', id: number, hostedUrl: null }],
    )
    const other = await manual.processor.createInvoice({ ...call, attemptId: platform.ids.next() })
    assert.is(other.kind, 'refused')
    const held = await manual.processor.findInvoices({ reference: cycleId, attemptIds: [id] })
    assert.equal(held, {
      kind: 'found',
      items: [{ id: number, reference: cycleId, amount: BILLED, currency: 'PKR', status: 'open' }],
    })
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
    const [first, second] = [
      await manual.invoice(test.shop, test.link),
      await manual.invoice(test.shop, test.link),
    ]
    const { number } = await manual.transferOf(first)
    assert.equal(await verdicts(test, received(first, 'FT1', BILLED - 1)), ['other_amount'])
    assert.equal(
      await verdicts(test, received('INVAAAAAAAAAAAA'), paid(first), received(test.platform.ids.next())),
      [...['unknown', 'unknown', 'unknown']],
    )
    // One transaction: the first gives the reference to its own.
    assert.equal(await verdicts(test, received(number), received(second)), ['record', 'used_reference'])
    assert.equal(await verdicts(test, received(first), received(number), received(first, 'FT9')), [
      ...['repeat', 'repeat', 'settled'],
    ])
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
    assert.equal(await verdicts(test, paid(payoutId), failed(payoutId), failed(payoutId, 'another')), [
      ...['settled', 'repeat', 'settled'],
    ])
    clock.pass(HOUR)
    const [next = ''] = await manual.payOut()
    assert.is((await payoutOf(platform, next)).amount, EARNED)
  })

  it('writes a payout into one file, also for two who write at once', async (test) => {
    const payoutId = await payable(test)
    const [one, other] = await Promise.all([write(test), write(test)])
    const rows = [...one.rows, ...other.rows]
    assert.equal(
      rows.map(({ iban, account_title, amount, number }) => [iban, account_title, amount, number]),
      [['PK36SCBL0000001123456702', 'A CREATOR', EARNED, (await test.manual.transferOf(payoutId)).number]],
    )
    assert.equal((await write(test)).rows, [])
    const trail = (await audited(test)).filter(({ action }) => action === 'manual.payout_file')
    assert.equal(
      trail.map(({ after }) => JSON.parse(after ?? '')),
      [{ again: false, payouts: 1, amount: EARNED }],
    )
    assert.not.match(JSON.stringify(trail), /PK36SCBL/)
  })

  it('loses and doubles nothing when the machine dies between the mark and the file', async (test) => {
    const { manual } = test
    const [first = ''] = [await payable(test)]
    const name = newFileName()
    // Marked, and never written.
    const lost = await write(test, name)
    const second = await payable(test, 'FT7')
    const next = await write(test)
    assert.equal(
      next.rows.map((row) => row.payoutId),
      [second],
    )
    assert.equal((await write(test, name, true)).rows, lost.rows)
    assert.equal((await manual.transferOf(first)).file, name)
    await settle(test, paid(first))
    const refused = await write(test, name, true).catch((error: Error) => error.message)
    assert.match(String(refused), /No payout of file PF\w{8} waits for its outcome/)
  })

  it('leaves payouts of suspended creators out of the file until they are reinstated', async (test) => {
    const payoutId = await payable(test)
    await setSuspended(test.platform, test.creator.userId, true)
    const { rows, leftOut } = await write(test)
    assert.equal([rows, leftOut.map(({ why }) => why)], [[], ['the creator is suspended']])
    await setSuspended(test.platform, test.creator.userId, false)
    assert.equal(
      (await write(test)).rows.map((row) => row.payoutId),
      [payoutId],
    )
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
    assert.equal(
      [problems.unknown, problems.unreadable].map(({ listed }) => listed.map(({ line }) => line)),
      [[4, 5], [6]],
    )
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
    const [lost, forged] = [
      await manual.invoice(test.shop, test.link),
      await manual.invoice(test.shop, test.link),
    ]
    // Confirmed, and its event never came; and an event that no admin stands behind.
    await verdicts(test, received(lost))
    const { number } = await manual.transferOf(forged)
    await test.market.confirmPayment(forged, { invoice_id: number })
    await manual.drain()
    clock.pass(HOUR)
    const { differing } = await reconcile(platform, manual.processor, { pauseMs: 0 })
    assert.equal(
      differing.map(({ ours, differences }) => [ours.id, differences]).sort(),
      [
        [lost, ['paid_there']],
        [forged, ['open_there']],
      ].sort(),
    )
  })

  it('flags what differs between a bank statement and the confirmations', async (test) => {
    const { manual, platform, admin, clock } = test
    const payoutId = await payable(test)
    await settle(test, paid(payoutId))
    const open = await manual.invoice(test.shop, test.link)
    const [{ number: payout }, { number: waits }] = [
      await manual.transferOf(payoutId),
      await manual.transferOf(open),
    ]
    const compare = async (since: number, ...lines: string[]) => {
      const rows = file(['Reference,Debit,Credit,Description', ...lines, ''].join('\n'), STATEMENT_COLUMNS)
      const outcome = await compareStatement(platform, admin.userId, rows, { since, until: clock.now() + 1 })
      return {
        ...outcome,
        differing: outcome.differing.map(({ transfer, differences }) => [transfer.number, differences]),
      }
    }
    const good = ['FT1,,1100.00,from a shop', `FT2,1000.00,,${payout}`]
    const agreed = await compare(0, ...good, 'FT99,5.00,,bank charges')
    assert.equal([agreed.rows, agreed.others, agreed.compared, agreed.differing], [3, 1, 2, []])
    const first = clock.now()
    const differs = await compare(0, `FT2,999.00,,${payout}`, `x,,1100.00,payment ${waits}`)
    assert.equal(Object.fromEntries(differs.differing), {
      [payout]: ['amount_differs'],
      [waits]: ['not_confirmed'],
      [(await transferOfReference(test, 'FT1')).number]: ['not_in_statement'],
    })
    const flags = () => openFlags(platform.database.reader, 'bank_statement_difference')
    assert.is((await flags()).length, 3)
    // A flag says so when both agree again; what a person has looked at is not raised again.
    clock.pass(DAY)
    await compare(first, ...good)
    const agreeing = (await flags()).filter(({ summary }) => /^The bank and we agree again/.test(summary))
    assert.is(agreeing.length, 2)
    for (const { id } of await flags())
      await resolveFlag(platform, { flagId: id, actor: admin.userId, note: 'looked at it' })
    assert.equal((await compare(clock.now(), `x,,1100.00,payment ${waits}`)).differing, [
      [waits, ['not_confirmed']],
    ])
    assert.equal(await flags(), [])
    const trail = (await audited(test)).filter(({ action }) => action === 'manual.reconcile')
    assert.is(trail.length, 4)
  })

  const transferOfReference = async (test: Test, bank_reference: string) => {
    const [row] = await rowsOf(test.platform, 'manual_transfers', { bank_reference })
    assert.ok(row)
    return row
  }

  it.run()
}

for (const { it } of marketSuites<Context>('manual transfers that someone changed', {
  settings: MANUAL_SETTINGS,
})) {
  it('are neither confirmed nor exported nor looked up', async ({ market, platform }) => {
    const manual = manualMarket(market)
    const [shop, creator, admin] = [
      await market.addShop(),
      await market.addCreator(),
      await addUser(platform, 'admin'),
    ]
    const link = await market.addLink(shop, creator)
    const cycleId = await manual.invoice(shop, link)
    const confirmation: Confirmation = {
      ...{ kind: 'invoice', about: cycleId, outcome: 'paid', amount: BILLED, reference: 'FT1', reason: null },
    }
    await confirmTransfers(platform, admin.userId, [confirmation])
    await manual.say(await manual.transferOf(cycleId))
    const [payoutId = ''] = await manual.payOut()
    const actor = admin.userId
    const change = (set: string) =>
      platform.database.transaction((tx) =>
        sql`update manual_transfers set ${sql.raw(set)} where subject_id = ${payoutId}`.execute(tx),
      )
    // As if it stood in no file: the older row is known by its digest, and missed by the head.
    const { row_digest } = await manual.transferOf(payoutId)
    const name = newFileName()
    assert.is((await exportPayouts(platform, { actor, name })).rows.length, 1)
    await change(`file = null, exported_at = null, row_digest = '${row_digest}'`)
    const refused = await exportPayouts(platform, { actor, name: newFileName() }).catch(
      (error: Error) => error.message,
    )
    assert.match(String(refused), /manual_transfers holds an older or a changed row/)
    await change("bank_reference = 'FT0'")
    const words = await confirmTransfers(platform, actor, [
      { ...confirmation, kind: 'payout', about: payoutId, amount: null, reference: 'FT2' },
    ]).catch((error: Error) => error.name)
    assert.is(words, 'TamperedRow')
    assert.equal(await manual.processor.findPayouts({ reference: payoutId, attemptIds: [] }), {
      ...{ kind: 'unavailable', detail: 'its record was changed in the database' },
    })
    assert.ok((await openFlagsOf(platform)).includes('integrity_violation manual_transfers'))
  })

  it.run()
}
