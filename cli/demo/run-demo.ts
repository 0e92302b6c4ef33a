import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { z } from 'zod'
import { formatMoney, type Paisa } from '../../shared/money.ts'
import { application } from '../../shared/schemas/applications.ts'
import { cyclePage } from '../../shared/schemas/billing.ts'
import { resolvedLink } from '../../shared/schemas/links.ts'
import { offer } from '../../shared/schemas/offers.ts'
import { payoutPage } from '../../shared/schemas/payouts.ts'
import { type Sale, salePage } from '../../shared/schemas/sales.ts'
import { store } from '../../shared/schemas/stores.ts'
import { session, user } from '../../shared/schemas/users.ts'
import type { Verdict } from '../commands/ledger.actions.ts'
import { amountOf } from '../replay/fixture-files.ts'
import type { wireReport } from '../replay/replay-report.ts'
import { BILLING_ACCOUNT, COUPON_CODE, CREATORS, MERCHANT, OFFERS, SHOP_DOMAIN } from '../story.ts'
import { sum } from '../terminal/output.ts'
import { type DemoProcessor, type DemoProcessorName, openDemoProcessor } from './demo-processor.ts'
import { type DemoService, demoSetting, startDemoService } from './demo-service.ts'
import { addition, type Paint, rupees, StepReport } from './report.ts'

export interface DemoOptions {
  print(line: string): void
  paint: Paint
  processor: DemoProcessorName
  /** Keeps service and folder after the last step. */
  keep: boolean
  /** Aborted to end the demo: it then cleans up and throws. */
  signal: AbortSignal
  /** Called with the process id of the service. */
  onStart?(pid: number): void
  /** Called before each step. */
  onStep?(title: string): void
}

/** Who acts in the story. */
interface Account {
  role: 'merchant' | 'creator'
  name: string
  email: string
  password: string
  token: string
}

export type DemoResult = Awaited<ReturnType<typeof runDemo>>

/**
 * Shows the whole chain, from an empty database to a paid payout, against the real service in its own process. Throws `DemoStopped` when it
 * cannot go on; then, and unless `keep` is given, nothing is left behind.
 */
export async function runDemo(options: DemoOptions) {
  const started = performance.now()
  const { print, paint, keep, signal, onStart, onStep } = options
  print(paint('dim', 'One order, all the way to a paid payout; amounts in rupees.\n'))
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-demo-'))
  let service: DemoService | null = null
  let isKept = false
  const reports: StepReport[] = []
  const step: Stage['step'] = async (title, work) => {
    signal.throwIfAborted()
    print(`${paint('dim', `${String(reports.length + 1).padStart(2)}.`)}  ${paint('bold', title)}`)
    onStep?.(title)
    const report = new StepReport(title)
    reports.push(report)
    const result = await work(report)
    for (const line of report.lines(paint)) print(line)
    return result
  }
  try {
    const setting = demoSetting(folder, signal)
    const processor = await openDemoProcessor(options.processor, setting)
    Object.assign(setting.environment, processor.settings)
    service = await startDemoService(setting, { port: processor.port, detached: keep, onStart })
    const { figures, invariants, accounts, webhookSecret } = await tellStory({ service, processor, step })
    const checks = reports.flatMap((report) => report.checks)
    const kept = {
      url: service.url,
      sandbox_url: service.sandboxUrl,
      processor_url: processor.describe(service)[0],
      pid: service.pid,
      folder,
      database_url: service.databaseUrl,
      accounts,
      store: { shop_domain: SHOP_DOMAIN, webhook_secret: webhookSecret },
    }
    isKept = keep
    return {
      /** Whether everything came out as the fixtures' manifest and the arithmetic say, and the books hold. */
      ok: checks.every((check) => check.ok),
      took_ms: Math.round(performance.now() - started),
      steps: reports.map(({ title, rows }) => ({ title, rows })),
      checks,
      figures,
      invariants,
      kept: keep ? kept : null,
    }
  } finally {
    if (isKept) service?.release()
    else {
      await service?.stop()
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

interface Stage {
  service: DemoService
  processor: DemoProcessor
  step<Result>(title: string, work: (report: StepReport) => Result | Promise<Result>): Promise<Result>
}

/** Sent while the first billing cycle is open: the fixture, and what it is in a few words. */
const FIRST_ORDERS: Record<string, string> = {
  'note-attributes-before-landing-site': 'reference kept in the cart',
  'named-product-among-others': 'only the offer’s product counts',
  'cash-on-delivery-paid-late': 'cash on delivery',
  'coupon-code': 'the creator’s coupon code, without a click',
  'test-order': 'test order',
  'other-currency': 'paid in US dollars',
  'unknown-reference': 'reference of no click',
  'self-purchase': 'bought by the creator',
  'other-product': 'another product',
}
/** Sent after that cycle has been closed, so that something is left unbilled in the end. */
const LATER_ORDER: Record<string, string> = { 'id-above-2-53': 'an order id above 2^53' }

/** Commission and platform fee of each accepted order. */
interface Earned {
  commission: Paisa[]
  fee: Paisa[]
}

async function tellStory(stage: Stage) {
  const { service, processor, step } = stage
  const { people, slug, webhookSecret } = await openMarket(stage)
  const { merchant, creator, other } = people
  const replay = (...args: string[]) =>
    service.command<ReturnType<typeof wireReport>>('webhooks', 'replay', ...args, '--url', service.url)

  /** Sends orders, each after a visit to the link. Returns what the accepted ones earned, and the event of the first order. */
  const reportOrders = async (report: StepReport, orders: Record<string, string>) => {
    const names = Object.keys(orders)
    const { items } = await replay(...names, '--same', '--link', slug)
    report.row('$', `affiliate webhooks replay ${names[0]}${names.length > 1 ? ' …' : ''} --link ${slug}`)
    for (const { fixture, expected, as_expected, sale } of items) {
      const decision = sale?.rejection_reason ?? sale?.acceptance_status ?? 'no sale'
      const amounts = sale ? [sale.net_amount, sale.commission, sale.platform_fee] : []
      report.row(sale?.order_name ?? fixture, decision, ...amounts.map(column), orders[fixture] ?? '')
      report.check(`${fixture}: ${expected}`, as_expected ? 'as expected' : decision, 'as expected')
    }
    report.check('orders that were decided', items.length, names.length)
    const paid = items.flatMap(({ sale }) => (sale?.acceptance_status === 'accepted' ? [sale] : []))
    const earned: Earned = {
      commission: paid.map((sale) => amountOf(sale.commission)),
      fee: paid.map((sale) => amountOf(sale.platform_fee)),
    }
    return { earned, eventId: items[0]?.event?.id ?? '' }
  }

  const { earned: first, eventId } = await step(
    'The store reports orders, signed as Shopify signs them',
    (report) => reportOrders(report, FIRST_ORDERS),
  )

  await step('A redelivery and a forgery change nothing', async (report) => {
    const before = (await salesOf(merchant)).length
    const again = await replay(eventId, '--times', '2')
    const forged = await replay(eventId, '--corrupt', 'signature')
    const answers = [...again.items, ...forged.items].flatMap((item) => item.answers).join(' ')
    const after = (await salesOf(merchant)).length
    report.row('answers', answers, 'the same order twice more, then with a wrong signature')
    report.row('sales', `${before} before, ${after} after`)
    report.check('answers', answers, '200 200 401')
    report.check('sales after the repetitions', after, before)
  })

  await step('Each account sees only its own sales', async (report) => {
    const own = accepted(await salesOf(merchant))
    const sales = await salesOf(creator)
    const earned = accepted(sales)
    const none = await salesOf(other)
    report.row(merchant.name, `${own.length} accepted sales`)
    report.row(creator.name, `${earned.length} accepted sales, platform fee not shown`)
    report.row(other.name, `${none.length} sales`)
    report.check('accepted sales that the creator sees', earned.length, own.length)
    report.check('sales that the other creator sees', none.length, 0)
    const fees = sales.filter((sale) => sale.platform_fee !== undefined)
    report.check('fees that the creator sees', fees.length, 0)
  })

  await step('The billing cycle closes; the processor charges the merchant', async (report) => {
    const cycle = async () => (await merchant.call('GET', '/billing-cycles', cyclePage)).items.at(-1)
    await processor.prepare(service)
    const open = await cycle()
    if (!open) throw new Error('the accepted sales opened no billing cycle')
    await service.command('billing', 'close', '--as-of', open.period_end)
    report.row('$', `affiliate billing close --as-of ${open.period_end}`)
    const charged = await service.until('the cycle to be charged', async () => {
      const found = await cycle()
      return found?.state === 'charged' ? found : null
    })
    report.row('commission', amountText(charged.commission_total), addition(first.commission))
    report.row('platform fee', amountText(charged.fee_total), addition(first.fee))
    report.row('charged', amountText(charged.amount_due), processor.confirmation)
    const due = sum([...first.commission, ...first.fee])
    report.check('amount of the cycle', amountOf(charged.amount_due), due)
  })

  const { earned: later } = await step('One more order comes in, for the next cycle', (report) =>
    reportOrders(report, LATER_ORDER),
  )

  /** Runs payouts until there is one more, and waits until it is settled. */
  const payOut = async (report: StepReport, what: string, end: (reason?: string | null) => string[]) => {
    const newest = async () => (await creator.call('GET', '/payouts', payoutPage)).items
    const before = (await newest()).length
    const settled = await service.until(what, async () => {
      const payouts = await newest()
      // A run asks the processor about a failed payout first; without an answer it leaves it for the next run.
      if (payouts.length === before) return void (await service.command('payouts', 'run'))
      const [payout] = payouts
      return payout?.state === 'paid' || payout?.state === 'failed' ? payout : null
    })
    report.row('$', 'affiliate payouts run')
    report.row('payout', amountText(settled.amount), settled.state, ...end(settled.failure_reason))
    return settled
  }

  await step('The first payout fails, and its amount goes back', async (report) => {
    const { failure } = processor
    if ('impossible' in failure) return report.row('skipped', failure.impossible)
    await failure.plan(service)
    const failed = await payOut(report, 'the first payout to fail', (reason) => [reason ?? ''])
    const { released } = await balanceOf(creator)
    report.row('released', amountText(released), 'back in the balance')
    report.check('state of the first payout', failed.state, 'failed')
    report.check('reason of the failure', failed.failure_reason ?? 'none', failure.reason)
    report.check('balance after the failure', released, formatMoney(sum(first.commission)))
  })

  await step('The next payout arrives', async (report) => {
    const paid = await payOut(report, 'the payout to be paid', () => [processor.confirmation])
    const earned = sum(first.commission)
    report.check('state of the payout', paid.state, 'paid')
    report.check('amount of the payout', amountOf(paid.amount), earned - (earned % processor.payoutUnit))
  })

  const figures = await step('The closing statement, to be added up by hand', (report) =>
    closingStatement(stage, report, people, { first, later }),
  )

  const invariants = await step('The books are verified', async (report) => {
    const { ok, items } = await service.command<Verdict>('ledger', 'verify')
    const broken = items.filter(({ breaches }) => breaches.length > 0)
    report.row('$', 'affiliate ledger verify')
    const all = sum(items.map((item) => item.rows))
    report.row('invariants', `${items.length - broken.length} of ${items.length} hold, over ${all} rows`)
    for (const { statement } of broken) report.row('broken', statement)
    report.check('ledger verify holds', ok && broken.length === 0, true)
    return items.map(({ name, statement, rows, breaches }) => ({ name, statement, rows, breaches }))
  })
  const accounts = Object.values(people).map(({ call: _, ...account }): Account => account)
  return { figures, invariants, accounts, webhookSecret }
}

type Person = Account & {
  /** Calls the API as this account. */
  call<Schema extends z.ZodType>(
    method: 'GET' | 'POST' | 'PATCH',
    path: string,
    schema: Schema,
    body?: unknown,
  ): Promise<z.output<Schema>>
}
type People = Record<'merchant' | 'creator' | 'other', Person>

/** From an empty database to a live offer with one approved creator. */
async function openMarket({ service, processor, step }: Stage) {
  const webhookSecret = randomBytes(32).toString('hex')
  await step('The service starts over an empty database', (report) => {
    report.row('service', service.url, `process ${service.pid}`)
    report.row('processor', ...processor.describe(service))
    report.row('database', service.databaseUrl)
  })

  const people: People = await step('A merchant and two creators register', async (report) => {
    const password = randomBytes(12).toString('base64url')
    const register = async (
      role: Account['role'],
      { email, displayName: name }: typeof MERCHANT,
    ): Promise<Person> => {
      const body = { email, password, role, display_name: name }
      const { token } = await service.call('POST', '/auth/register', session, { body })
      report.row(role, name, email)
      const call: Person['call'] = (method, path, schema, sent) =>
        service.call(method, path, schema, { token, body: sent })
      return { role, name, email, password, token, call }
    }
    return {
      merchant: await register('merchant', MERCHANT),
      creator: await register('creator', CREATORS[0]),
      other: await register('creator', CREATORS[1]),
    }
  })
  const { merchant, creator, other } = people

  await step('The merchant connects a store; the creator names an account', async (report) => {
    const claim = { shop_domain: SHOP_DOMAIN, webhook_secret: webhookSecret }
    const connected = await merchant.call('POST', '/stores', store, claim)
    report.row('store', connected.shop_domain, 'its webhook secret is encrypted and never shown again')
    if (processor.needsBillingAccount) {
      await merchant.call('PATCH', '/me', user, { billing_account: BILLING_ACCOUNT })
      report.row('invoices from', `account ending in ${BILLING_ACCOUNT.iban.slice(-4)}`)
    }
    const { iban, displayName } = CREATORS[0]
    const destination = { iban, account_title: displayName.toUpperCase() }
    const me = await creator.call('PATCH', '/me', user, { payout_destination: destination })
    report.row('payouts to', `account ending in ${me.payout_destination?.iban_last4}`)
    report.check('end of the IBAN', me.payout_destination?.iban_last4 ?? 'none', iban.slice(-4))
  })

  const slug = await step('The merchant publishes an offer, and approves one creator', async (report) => {
    const [suit] = OFFERS
    const { id: offerId } = await merchant.call('POST', '/offers', offer, suit)
    const live = await merchant.call('PATCH', `/offers/${offerId}/status`, offer, { status: 'live' })
    const terms = `${live.commission_rate} % for ${live.attribution_window_days} days after a click`
    report.row('offer', live.title, terms)
    report.check('status of the offer', live.status, 'live')
    const decide = async (applicant: Person, decision: unknown) => {
      const { id } = await applicant.call('POST', `/offers/${offerId}/applications`, application, {})
      return merchant.call('PATCH', `/applications/${id}`, application, decision)
    }
    const approved = await decide(creator, { decision: 'approve', coupon_code: COUPON_CODE })
    const rejected = await decide(other, { decision: 'reject', reason: 'We look for fashion channels.' })
    const rate = approved.locked_commission_rate ?? 'none'
    const locked = `rate locked at ${rate} %, coupon code ${COUPON_CODE}`
    report.row(approved.creator.display_name, approved.status, locked)
    report.row(rejected.creator.display_name, rejected.status, rejected.decision_reason ?? '')
    report.check('locked rate', rate, suit?.commission_rate ?? 'none')
    report.check('link of the rejected application', rejected.affiliate_link?.slug ?? 'none', 'none')
    if (!approved.affiliate_link) throw new Error('the approval made no affiliate link')
    const { slug } = approved.affiliate_link
    const link = await service.call('GET', `/affiliate-links/${slug}`, resolvedLink)
    report.row('link', link.url)
    report.check('link is active', link.active, true)
    return slug
  })
  return { people, slug, webhookSecret }
}

/** Compares what the service and the journal hold with what the orders add up to. */
async function closingStatement(
  { service, processor }: Stage,
  report: StepReport,
  { merchant, creator }: People,
  { first, later }: { first: Earned; later: Earned },
): Promise<Figures> {
  const { items: accounts } = await service.command<Balances>('ledger', 'balances')
  const total = (name: string) =>
    sum(accounts.map(({ account, balance }) => (account === name ? amountOf(balance) : 0)))
  const sales = await salesOf(merchant)
  const { items: cycles } = await merchant.call('GET', '/billing-cycles', cyclePage)
  const due = (...states: string[]) =>
    formatMoney(sum(cycles.map((cycle) => (states.includes(cycle.state) ? amountOf(cycle.amount_due) : 0))))
  const { pending, released, in_transit, paid } = await balanceOf(creator)
  const figures: Figures = {
    merchant: {
      accepted: accepted(sales).length,
      rejected: sales.length - accepted(sales).length,
      unbilled: formatMoney(total('merchant_unbilled')),
      billed: due('closed', 'charged'),
      paid: due('charged'),
    },
    creator: { pending, released, in_transit, paid },
    platform: {
      fees: formatMoney(0 - total('platform_fees')),
      credits: formatMoney(total('platform_credits')),
      clearing: formatMoney(total('processor_clearing')),
    },
  }
  const commissions = [...first.commission, ...later.commission]
  const fees = [...first.fee, ...later.fee]
  const rows: [who: string, what: string, amount: string, how: string][] = [
    [merchant.name, 'commission', formatMoney(sum(commissions)), addition(commissions)],
    ['', 'platform fee', formatMoney(sum(fees)), addition(fees)],
    ['', 'paid', figures.merchant.paid, 'all that was billed'],
    ['', 'unbilled', figures.merchant.unbilled, 'the later order'],
    [creator.name, 'paid', paid, addition(first.commission)],
    ['', 'released', released, 'less than the unit of payouts'],
    ['', 'pending', pending, 'the later order'],
    ['The platform', 'fees', figures.platform.fees, addition(fees)],
    ['', 'clearing', figures.platform.clearing, 'paid by the merchant, less what the creator was paid'],
  ]
  for (const [who, what, value, how] of rows) report.row(who, what, column(value), how)
  const expected = expectedFigures(first, later, processor.payoutUnit)
  for (const party of ['merchant', 'creator', 'platform'] as const) {
    const found = new Map<string, unknown>(Object.entries(figures[party]))
    for (const [name, must] of Object.entries(expected[party]))
      report.check(`closing ${party} ${name}`, found.get(name), must)
  }
  report.check('released in the journal', formatMoney(0 - total('creator_released')), released)
  report.check('unpaid invoices', total('merchant_receivable'), 0)
  return figures
}

/** Closing figures on the wire, by addition alone: counts as numbers, amounts as decimal strings. */
function expectedFigures(first: Earned, later: Earned, payoutUnit: Paisa) {
  const [commission, fee] = [sum(first.commission), sum(first.fee)]
  const [openCommission, openFee] = [sum(later.commission), sum(later.fee)]
  const released = commission % payoutUnit
  const orders = Object.keys(FIRST_ORDERS).length + Object.keys(LATER_ORDER).length
  const accepted = first.commission.length + later.commission.length
  const billed = formatMoney(commission + fee)
  return {
    merchant: {
      accepted,
      rejected: orders - accepted,
      unbilled: formatMoney(openCommission + openFee),
      billed,
      paid: billed,
    },
    creator: {
      pending: formatMoney(openCommission),
      released: formatMoney(released),
      in_transit: '0.00',
      paid: formatMoney(commission - released),
    },
    platform: {
      fees: formatMoney(fee + openFee),
      credits: '0.00',
      clearing: formatMoney(fee + released),
    },
  }
}

type Figures = ReturnType<typeof expectedFigures>

/** What `ledger balances --json` prints. */
interface Balances {
  items: { account: string; balance: string }[]
}

async function salesOf({ call }: Person): Promise<Sale[]> {
  return (await call('GET', '/sales?limit=100', salePage)).items
}

async function balanceOf({ call }: Person) {
  const { balance } = await call('GET', '/me', user)
  if (!balance) throw new Error('a creator has a balance')
  return balance
}

function accepted(sales: readonly Sale[]): Sale[] {
  return sales.filter((sale) => sale.acceptance_status === 'accepted')
}

/** An amount on the wire, for people. */
function amountText(wire: string): string {
  return rupees(amountOf(wire))
}

function column(wire: string): string {
  return amountText(wire).padStart(9)
}
