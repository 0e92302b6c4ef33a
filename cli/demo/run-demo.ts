import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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
import type { wireReport } from '../replay/replay-report.ts'
import { BILLING_ACCOUNT, COUPON_CODE, CREATORS, MERCHANT, OFFERS, SHOP_DOMAIN } from '../story.ts'
import { sum } from '../terminal/output.ts'
import { type DemoProcessor, type DemoProcessorName, openDemoProcessor } from './demo-processor.ts'
import { DemoService, demoSetting } from './demo-service.ts'
import { addition, type Check, type Paint, paisa, rupees, StepReport, stepLines } from './report.ts'

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

/** Closing figures on the wire: counts as numbers, amounts as decimal strings. */
export interface Figures {
  merchant: { accepted: number; rejected: number; unbilled: string; billed: string; paid: string }
  creator: { pending: string; released: string; in_transit: string; paid: string }
  platform: { fees: string; credits: string; clearing: string }
}

/** Who acts in the story. */
interface Account {
  role: 'merchant' | 'creator'
  name: string
  email: string
  password: string
  token: string
}

/** What `--keep` leaves running, and everything needed to use and to end it. */
export interface Kept {
  url: string
  /** `null` with another processor than the sandbox. */
  sandbox_url: string | null
  processor_url: string
  pid: number
  folder: string
  database_url: string
  accounts: Account[]
  store: { shop_domain: string; webhook_secret: string }
}

export interface DemoResult {
  /** Whether everything came out as the fixtures' manifest and the arithmetic say, and the books hold. */
  ok: boolean
  took_ms: number
  steps: { title: string; rows: string[][] }[]
  checks: Check[]
  figures: Figures
  invariants: Pick<Verdict['items'][number], 'name' | 'statement' | 'rows' | 'breaches'>[]
  kept: Kept | null
}

/**
 * Shows the whole chain, from an empty database to a paid payout, against the real service in its own process. Throws `DemoStopped` when it
 * cannot go on; then, and unless `keep` is given, nothing is left behind.
 */
export async function runDemo(options: DemoOptions): Promise<DemoResult> {
  const started = performance.now()
  options.print(options.paint('dim', 'One order, all the way to a paid payout; amounts in rupees.\n'))
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-demo-'))
  let service: DemoService | null = null
  let kept: Kept | null = null
  try {
    const setting = demoSetting(folder, options.signal)
    const processor = await openDemoProcessor(options.processor, setting)
    const environment = { ...setting.environment, ...processor.settings }
    service = await DemoService.start(
      { ...setting, environment },
      { port: processor.port, detached: options.keep, onStart: options.onStart },
    )
    const demo = new Demo(service, processor, options)
    const { figures, invariants, accounts, webhookSecret } = await demo.run()
    const checks = demo.reports.flatMap((report) => report.checks)
    if (options.keep) {
      kept = {
        url: service.url,
        sandbox_url: service.sandboxUrl,
        processor_url: processor.describe(service)[0],
        pid: service.pid,
        folder,
        database_url: environment.DATABASE_URL ?? '',
        accounts,
        store: { shop_domain: SHOP_DOMAIN, webhook_secret: webhookSecret },
      }
    }
    return {
      ok: checks.every((check) => check.ok),
      took_ms: Math.round(performance.now() - started),
      steps: demo.reports.map(({ title, rows }) => ({ title, rows })),
      checks,
      figures,
      invariants,
      kept,
    }
  } finally {
    if (kept) service?.release()
    else {
      await service?.stop()
      rmSync(folder, { recursive: true, force: true })
    }
  }
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
type People = Record<'merchant' | 'creator' | 'other', Account>

/** What commands print with `--json`. */
type Replays = ReturnType<typeof wireReport>
type Balances = { items: { account: string; balance: string }[] }

/** Of each accepted order. */
interface Earned {
  commission: Paisa[]
  fee: Paisa[]
}

/** The steps, in their order. */
class Demo {
  readonly reports: (StepReport & { title: string })[] = []
  readonly #service: DemoService
  readonly #processor: DemoProcessor
  readonly #options: DemoOptions

  constructor(service: DemoService, processor: DemoProcessor, options: DemoOptions) {
    this.#service = service
    this.#processor = processor
    this.#options = options
  }

  async run() {
    const service = this.#service
    const webhookSecret = randomBytes(32).toString('hex')
    await this.#step('The service starts over an empty database', async (report) => {
      report.row('service', service.url, `process ${service.pid}`)
      report.row('processor', ...this.#processor.describe(service))
      report.row('database', service.setting.environment.DATABASE_URL ?? '')
    })
    const people = await this.#step('A merchant and two creators register', (report) =>
      this.#register(report),
    )
    const { merchant, creator } = people
    await this.#step('The merchant connects a store; the creator names an account', (report) =>
      this.#connect(report, people, webhookSecret),
    )
    const slug = await this.#step('The merchant publishes an offer, and approves one creator', (report) =>
      this.#publish(report, people),
    )
    const { earned: first, eventId } = await this.#step(
      'The store reports orders, signed as Shopify signs them',
      (report) => this.#report(report, slug, FIRST_ORDERS),
    )
    await this.#step('A redelivery and a forgery change nothing', (report) =>
      this.#repeat(report, eventId, merchant),
    )
    await this.#step('Each account sees only its own sales', (report) => this.#compareViews(report, people))
    await this.#step('The billing cycle closes; the processor charges the merchant', (report) =>
      this.#charge(report, merchant, first),
    )
    const { earned: later } = await this.#step('One more order comes in, for the next cycle', (report) =>
      this.#report(report, slug, LATER_ORDER),
    )
    await this.#step('The first payout fails, and its amount goes back', (report) =>
      this.#failPayout(report, creator, first.commission),
    )
    await this.#step('The next payout arrives', (report) => this.#payOut(report, creator, first.commission))
    const figures = await this.#step('The closing statement, to be added up by hand', (report) =>
      this.#close(report, people, first, later),
    )
    const invariants = await this.#step('The books are verified', (report) => this.#verify(report))
    return { figures, invariants, accounts: Object.values(people), webhookSecret }
  }

  async #step<Result>(title: string, work: (report: StepReport) => Promise<Result>): Promise<Result> {
    const { print, paint, onStep, signal } = this.#options
    signal.throwIfAborted()
    print(`${paint('dim', `${String(this.reports.length + 1).padStart(2)}.`)}  ${paint('bold', title)}`)
    onStep?.(title)
    const report = Object.assign(new StepReport(), { title })
    this.reports.push(report)
    const result = await work(report)
    for (const line of stepLines(report, paint)) print(line)
    return result
  }

  async #register(report: StepReport): Promise<People> {
    const password = randomBytes(12).toString('base64url')
    const one = async (role: Account['role'], { email, displayName: name }: typeof MERCHANT) => {
      const body = { email, password, role, display_name: name }
      const { token } = await this.#service.call('POST', '/auth/register', session, { body })
      report.row(role, name, email)
      return { role, name, email, password, token }
    }
    return {
      merchant: await one('merchant', MERCHANT),
      creator: await one('creator', CREATORS[0]),
      other: await one('creator', CREATORS[1]),
    }
  }

  async #connect(report: StepReport, { merchant, creator }: People, webhookSecret: string): Promise<void> {
    const service = this.#service
    const { token } = merchant
    const body = { shop_domain: SHOP_DOMAIN, webhook_secret: webhookSecret }
    const connected = await service.call('POST', '/stores', store, { token, body })
    report.row('store', connected.shop_domain, 'its webhook secret is encrypted and never shown again')
    if (this.#processor.needsBillingAccount) {
      await service.call('PATCH', '/me', user, { token, body: { billing_account: BILLING_ACCOUNT } })
      report.row('invoices from', `account ending in ${BILLING_ACCOUNT.iban.slice(-4)}`)
    }
    const { iban, displayName } = CREATORS[0]
    const destination = { payout_destination: { iban, account_title: displayName.toUpperCase() } }
    const me = await service.call('PATCH', '/me', user, { token: creator.token, body: destination })
    report.row('payouts to', `account ending in ${me.payout_destination?.iban_last4}`)
    report.check('end of the IBAN', me.payout_destination?.iban_last4 ?? 'none', iban.slice(-4))
  }

  async #publish(report: StepReport, { merchant: { token }, creator, other }: People): Promise<string> {
    const service = this.#service
    const [suit] = OFFERS
    const made = await service.call('POST', '/offers', offer, { token, body: suit })
    const live = await service.call('PATCH', `/offers/${made.id}/status`, offer, {
      token,
      body: { status: 'live' },
    })
    report.row(
      'offer',
      live.title,
      `${live.commission_rate} % for ${live.attribution_window_days} days after a click`,
    )
    report.check('status of the offer', live.status, 'live')
    const decide = async (applicant: { token: string }, body: unknown) => {
      const path = `/offers/${made.id}/applications`
      const { id } = await service.call('POST', path, application, { token: applicant.token, body: {} })
      return service.call('PATCH', `/applications/${id}`, application, { token, body })
    }
    const approved = await decide(creator, { decision: 'approve', coupon_code: COUPON_CODE })
    const rejected = await decide(other, { decision: 'reject', reason: 'We look for fashion channels.' })
    const rate = approved.locked_commission_rate ?? 'none'
    report.row(
      approved.creator.display_name,
      approved.status,
      `rate locked at ${rate} %, coupon code ${COUPON_CODE}`,
    )
    report.row(rejected.creator.display_name, rejected.status, rejected.decision_reason ?? '')
    report.check('locked rate', rate, suit?.commission_rate ?? 'none')
    report.check('link of the rejected application', rejected.affiliate_link?.slug ?? 'none', 'none')
    if (!approved.affiliate_link) throw new Error('the approval made no affiliate link')
    const { slug } = approved.affiliate_link
    const link = await service.call('GET', `/affiliate-links/${slug}`, resolvedLink)
    report.row('link', link.url)
    report.check('link is active', String(link.active), 'true')
    return slug
  }

  /** Sends orders, each after a visit to the link. Returns what the accepted ones earned, and the event of the first order. */
  async #report(report: StepReport, slug: string, orders: Record<string, string>) {
    const names = Object.keys(orders)
    const { items } = await this.#replay(...names, '--same', '--link', slug)
    report.row('$', `affiliate webhooks replay ${names[0]}${names.length > 1 ? ' …' : ''} --link ${slug}`)
    for (const { fixture, expected, as_expected, sale } of items) {
      const decision = sale?.rejection_reason ?? sale?.acceptance_status ?? 'no sale'
      const amounts = sale ? [sale.net_amount, sale.commission, sale.platform_fee] : []
      report.row(
        sale?.order_name ?? fixture,
        decision,
        ...amounts.map((amount) => rupees(paisa(amount)).padStart(9)),
        orders[fixture] ?? '',
      )
      report.check(`${fixture}: ${expected}`, as_expected ? 'as expected' : decision, 'as expected')
    }
    report.check('orders that were decided', items.length, names.length)
    const accepted = items.flatMap(({ sale }) => (sale?.acceptance_status === 'accepted' ? [sale] : []))
    const earned: Earned = {
      commission: accepted.map((sale) => paisa(sale.commission)),
      fee: accepted.map((sale) => paisa(sale.platform_fee)),
    }
    return { earned, eventId: items[0]?.event?.id ?? '' }
  }

  async #repeat(report: StepReport, eventId: string, merchant: Account): Promise<void> {
    const before = (await this.#sales(merchant)).length
    const again = await this.#replay(eventId, '--times', '2')
    const forged = await this.#replay(eventId, '--corrupt', 'signature')
    const answers = [...again.items, ...forged.items].flatMap((item) => item.answers).join(' ')
    const after = (await this.#sales(merchant)).length
    report.row('answers', answers, 'the same order twice more, then with a wrong signature')
    report.row('sales', `${before} before, ${after} after`)
    report.check('answers', answers, '200 200 401')
    report.check('sales after the repetitions', after, before)
  }

  async #compareViews(report: StepReport, { merchant, creator, other }: People): Promise<void> {
    const own = accepted(await this.#sales(merchant))
    const sales = await this.#sales(creator)
    const earned = accepted(sales)
    const none = await this.#sales(other)
    report.row(merchant.name, `${own.length} accepted sales`)
    report.row(creator.name, `${earned.length} accepted sales, platform fee not shown`)
    report.row(other.name, `${none.length} sales`)
    report.check('accepted sales that the creator sees', earned.length, own.length)
    report.check('sales that the other creator sees', none.length, 0)
    const fees = sales.filter((sale) => sale.platform_fee !== undefined)
    report.check('fees that the creator sees', fees.length, 0)
  }

  async #charge(report: StepReport, { token }: Account, { commission, fee }: Earned): Promise<void> {
    const service = this.#service
    const cycle = async () =>
      (await service.call('GET', '/billing-cycles', cyclePage, { token })).items.at(-1)
    await this.#processor.prepare(service)
    const open = await cycle()
    if (!open) throw new Error('the accepted sales opened no billing cycle')
    await service.command('billing', 'close', '--as-of', open.period_end)
    report.row('$', `affiliate billing close --as-of ${open.period_end}`)
    const charged = await service.until('the cycle to be charged', async () => {
      const found = await cycle()
      return found?.state === 'charged' ? found : null
    })
    report.row('commission', rupees(paisa(charged.commission_total)), addition(commission))
    report.row('platform fee', rupees(paisa(charged.fee_total)), addition(fee))
    report.row('charged', rupees(paisa(charged.amount_due)), this.#processor.confirmation)
    report.check('amount of the cycle', paisa(charged.amount_due), sum([...commission, ...fee]))
  }

  async #failPayout(report: StepReport, creator: Account, commission: readonly Paisa[]): Promise<void> {
    const { failure } = this.#processor
    if ('impossible' in failure) return report.row('skipped', failure.impossible)
    await failure.plan(this.#service)
    const failed = await this.#runPayouts('the first payout to fail', creator)
    report.row('$', 'affiliate payouts run')
    report.row('payout', rupees(paisa(failed.amount)), failed.state, failed.failure_reason ?? '')
    const { released } = await this.#balance(creator)
    report.row('released', rupees(paisa(released)), 'back in the balance')
    report.check('state of the first payout', failed.state, 'failed')
    report.check('reason of the failure', failed.failure_reason ?? 'none', failure.reason)
    report.check('balance after the failure', released, formatMoney(sum(commission)))
  }

  async #payOut(report: StepReport, creator: Account, commission: readonly Paisa[]): Promise<void> {
    const paid = await this.#runPayouts('the payout to be paid', creator)
    report.row('$', 'affiliate payouts run')
    report.row('payout', rupees(paisa(paid.amount)), paid.state, this.#processor.confirmation)
    const earned = sum(commission)
    report.check('state of the payout', paid.state, 'paid')
    report.check('amount of the payout', paisa(paid.amount), earned - (earned % this.#processor.payoutUnit))
  }

  /** Runs payouts until there is one more, and waits until it is settled. */
  async #runPayouts(what: string, { token }: Account) {
    const service = this.#service
    const newest = async () => (await service.call('GET', '/payouts', payoutPage, { token })).items
    const before = (await newest()).length
    return service.until(what, async () => {
      const payouts = await newest()
      if (payouts.length === before) {
        // A run asks the processor about a failed payout first; without an answer it leaves it for the next run.
        await service.command('payouts', 'run')
        return null
      }
      const [payout] = payouts
      return payout?.state === 'paid' || payout?.state === 'failed' ? payout : null
    })
  }

  /** Compares what the service and the journal hold with what the orders add up to. */
  async #close(
    report: StepReport,
    { merchant, creator }: People,
    first: Earned,
    later: Earned,
  ): Promise<Figures> {
    const service = this.#service
    const { items: accounts } = await service.command<Balances>('ledger', 'balances')
    const total = (name: string) =>
      sum(accounts.filter(({ account }) => account === name).map(({ balance }) => paisa(balance)))
    const sales = await this.#sales(merchant)
    const { token } = merchant
    const { items: cycles } = await service.call('GET', '/billing-cycles', cyclePage, { token })
    const due = (states: string[]) =>
      formatMoney(
        sum(cycles.filter(({ state }) => states.includes(state)).map((cycle) => paisa(cycle.amount_due))),
      )
    const { pending, released, in_transit, paid } = await this.#balance(creator)
    const figures: Figures = {
      merchant: {
        accepted: accepted(sales).length,
        rejected: sales.length - accepted(sales).length,
        unbilled: formatMoney(total('merchant_unbilled')),
        billed: due(['closed', 'charged']),
        paid: due(['charged']),
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
    const amount = (text: string) => rupees(paisa(text)).padStart(9)
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
    for (const [who, what, value, how] of rows) report.row(who, what, amount(value), how)
    const expected = this.#expectedFigures(first, later)
    for (const party of ['merchant', 'creator', 'platform'] as const)
      for (const [name, must] of Object.entries(expected[party]))
        report.check(
          `closing ${party} ${name}`,
          new Map(Object.entries(figures[party])).get(name) ?? 'none',
          must,
        )
    report.check('released in the journal', formatMoney(0 - total('creator_released')), released)
    report.check('unpaid invoices', total('merchant_receivable'), 0)
    return figures
  }

  /** By addition alone. */
  #expectedFigures(first: Earned, later: Earned): Figures {
    const commission = sum(first.commission)
    const fee = sum(first.fee)
    const openCommission = sum(later.commission)
    const openFee = sum(later.fee)
    const released = commission % this.#processor.payoutUnit
    const orders = Object.keys(FIRST_ORDERS).length + Object.keys(LATER_ORDER).length
    const accepted = first.commission.length + later.commission.length
    return {
      merchant: {
        accepted,
        rejected: orders - accepted,
        unbilled: formatMoney(openCommission + openFee),
        billed: formatMoney(commission + fee),
        paid: formatMoney(commission + fee),
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

  async #verify(report: StepReport) {
    const { ok, items } = await this.#service.command<Verdict>('ledger', 'verify')
    const broken = items.filter(({ breaches }) => breaches.length > 0)
    report.row('$', 'affiliate ledger verify')
    const all = sum(items.map((item) => item.rows))
    report.row('invariants', `${items.length - broken.length} of ${items.length} hold, over ${all} rows`)
    for (const { statement } of broken) report.row('broken', statement)
    report.check('ledger verify holds', String(ok && broken.length === 0), 'true')
    return items.map(({ name, statement, rows, breaches }) => ({ name, statement, rows, breaches }))
  }

  #replay(...args: string[]) {
    const { url } = this.#service
    return this.#service.command<Replays>('webhooks', 'replay', ...args, '--url', url)
  }

  async #sales({ token }: Account) {
    return (await this.#service.call('GET', '/sales?limit=100', salePage, { token })).items
  }

  async #balance({ token }: Account) {
    const { balance } = await this.#service.call('GET', '/me', user, { token })
    if (!balance) throw new Error('a creator has a balance')
    return balance
  }
}

function accepted(sales: readonly Sale[]): Sale[] {
  return sales.filter((sale) => sale.acceptance_status === 'accepted')
}
